//! Platforms without memfd, eventfd and cross-process futex: every call answers `Unsupported`, and
//! the package works over its other channels.

use crate::error::{CoreError, Result};
use crate::sync::AtomicU32;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::time::Duration;

pub const EPERM: i32 = 1;

fn unsupported<T>(what: &'static str) -> Result<T> {
    Err(CoreError::Unsupported { what })
}

pub fn sealed_memfd(_name: &std::ffi::CStr, _size_bytes: u64) -> Result<OwnedFd> {
    unsupported("memfd")
}
pub fn sealed_size(_fd: BorrowedFd<'_>) -> Result<u64> {
    unsupported("memfd")
}
pub fn map_shared(_fd: BorrowedFd<'_>, _offset: u64, _size_bytes: usize) -> Result<NonNull<u8>> {
    unsupported("memfd")
}
pub fn unmap(_start: NonNull<u8>, _size_bytes: usize) {}
pub fn populate(_start: NonNull<u8>, _size_bytes: usize) -> Result<()> {
    unsupported("memfd")
}
pub fn punch_hole(_fd: BorrowedFd<'_>, _offset: u64, _size_bytes: u64) -> Result<()> {
    unsupported("memfd")
}
pub fn eventfd() -> Result<OwnedFd> {
    unsupported("eventfd")
}
pub fn eventfd_ring(_fd: BorrowedFd<'_>) {}
pub fn eventfd_clear(_fd: BorrowedFd<'_>) -> bool {
    false
}
pub fn duplicate(_fd: BorrowedFd<'_>) -> Result<OwnedFd> {
    unsupported("memfd")
}
pub fn adopt(_raw: RawFd) -> Result<OwnedFd> {
    unsupported("memfd")
}
pub fn current_cpu() -> Option<u32> {
    None
}
pub fn affinity() -> Result<Vec<u32>> {
    unsupported("affinity")
}
pub fn set_affinity(_cpus: &[u32]) -> Result<()> {
    unsupported("affinity")
}
pub fn futex_wait(_word: &AtomicU32, _expected: u32, _timeout: Duration) -> Result<()> {
    unsupported("futex")
}
pub fn futex_wake(_word: &AtomicU32) {}
pub fn parent_pid() -> i32 {
    0
}
pub fn thread_id() -> i32 {
    0
}
pub fn has_thread(_pid: i32, _thread: i32) -> bool {
    true
}
pub fn pidfd(_pid: i32) -> Result<OwnedFd> {
    unsupported("pidfd")
}
pub fn wait_readable(_fd: BorrowedFd<'_>) {}
pub fn die_with_parent_thread() -> Result<()> {
    unsupported("pdeathsig")
}
pub fn exit_now(status: i32) -> ! {
    std::process::exit(status)
}
pub fn pin_library() {}
