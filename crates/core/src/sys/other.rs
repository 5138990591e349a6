//! Platforms without memfd and eventfd: every call returns `Unsupported`, and the package works over
//! its other channels.

use super::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use crate::error::{CoreError, Result};
use crate::sync::AtomicU32;
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
pub fn check_unsealable(_fd: BorrowedFd<'_>) -> Result<()> {
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
pub fn futex_wait(_word: &AtomicU32, _seen: u32, limit: Duration) {
    std::thread::sleep(limit);
}
pub fn futex_wake(_word: &AtomicU32) {}
pub fn eventfd() -> Result<OwnedFd> {
    unsupported("eventfd")
}
pub fn eventfd_ring(_fd: BorrowedFd<'_>) {}
pub fn eventfd_clear(_fd: BorrowedFd<'_>) -> bool {
    false
}
pub fn stream_ring(_fd: BorrowedFd<'_>) {}
pub fn stream_clear(_fd: BorrowedFd<'_>) -> Option<usize> {
    None
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
pub fn is_readable(_fd: BorrowedFd<'_>) -> bool {
    false
}
pub fn die_with_parent_thread() -> Result<()> {
    unsupported("pdeathsig")
}
pub fn exit_now(status: i32) -> ! {
    std::process::exit(status)
}
pub fn kill_self() -> ! {
    exit_now(137)
}
pub fn is_thread(_thread: u32) -> bool {
    true
}
pub fn stop_self() {}
pub fn pin_library() {}

#[derive(Debug)]
pub enum Accepted {
    Connection(OwnedFd),
    Empty,
    Again,
    Exhausted,
    Failed(i32),
}

pub fn accept_without_delay(_listener: BorrowedFd<'_>) {}

pub fn accept(_listener: BorrowedFd<'_>) -> Accepted {
    Accepted::Failed(0)
}

pub fn listen_shared(
    _address: std::net::SocketAddr,
    _backlog: i32,
    _is_v6_only: bool,
) -> Result<OwnedFd> {
    unsupported("SO_REUSEPORT")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    Level,
    Edge,
    Shared,
}

pub fn is_listening(_socket: BorrowedFd<'_>) -> Result<bool> {
    unsupported("sockets")
}

pub fn accept_queue(_socket: BorrowedFd<'_>) -> Option<u32> {
    None
}

#[derive(Debug)]
pub struct Poller(std::convert::Infallible);

impl Poller {
    pub fn new() -> Result<Poller> {
        unsupported("epoll")
    }
    pub fn add(&self, _fd: BorrowedFd<'_>, _number: u64, _trigger: Trigger) -> Result<()> {
        unsupported("epoll")
    }
    pub fn await_room(&self, _fd: BorrowedFd<'_>, _number: u64, _for_room: bool) -> Result<()> {
        unsupported("epoll")
    }
    pub fn remove(&self, _fd: BorrowedFd<'_>) {}
    pub fn wait(&mut self, _timeout: Option<Duration>) -> impl Iterator<Item = u64> {
        std::iter::empty()
    }
}

impl AsFd for Poller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self.0 {}
    }
}

pub fn now_ms() -> u32 {
    0
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    pub size: u64,
}

impl FileStamp {
    pub fn changed_ns(&self) -> i128 {
        0
    }
    pub fn modified_ns(&self) -> i128 {
        0
    }
    pub fn is_file(&self) -> bool {
        false
    }
}

pub fn stamp_of_path(_path: &std::path::Path) -> Option<FileStamp> {
    None
}
pub fn stamp_of_file(_file: BorrowedFd<'_>) -> Option<FileStamp> {
    None
}
pub fn read_exact_at(_file: BorrowedFd<'_>, _bytes: &mut [u8], _offset: u64) -> Result<()> {
    unsupported("files over descriptors")
}
pub fn descriptor_limit() -> u64 {
    0
}
pub fn real_time_ns() -> i128 {
    0
}
pub fn send_before_more(_socket: BorrowedFd<'_>, _bytes: &[u8]) -> Result<usize> {
    unsupported("sendfile")
}

pub fn socket_pair() -> Result<[OwnedFd; 2]> {
    unsupported("descriptors over sockets")
}
pub fn send_descriptors(_socket: BorrowedFd<'_>, _fds: &[BorrowedFd<'_>]) -> Result<()> {
    unsupported("descriptors over sockets")
}
pub fn receive_descriptors(_socket: BorrowedFd<'_>) -> Result<Vec<OwnedFd>> {
    unsupported("descriptors over sockets")
}

#[derive(Debug, PartialEq, Eq)]
pub enum Passed {
    Sent,
    Full,
    Gone,
}

pub fn send_connection(_control: BorrowedFd<'_>, _connection: BorrowedFd<'_>) -> Passed {
    Passed::Gone
}
pub fn control_socket_queue(_control: BorrowedFd<'_>) -> Option<u32> {
    None
}
#[derive(Debug)]
pub struct UnlockedMemory;

impl UnlockedMemory {
    pub fn take() -> UnlockedMemory {
        UnlockedMemory
    }
}

/// Nothing to block for.
#[derive(Debug)]
pub struct BlockedSignals;

impl BlockedSignals {
    pub fn take() -> BlockedSignals {
        BlockedSignals
    }
}

pub fn receive_connection(_control: BorrowedFd<'_>) -> Accepted {
    Accepted::Failed(0)
}
pub fn send_numbered(_control: BorrowedFd<'_>, _number: u8, _connection: BorrowedFd<'_>) -> Passed {
    Passed::Gone
}
pub fn receive_numbered(_control: BorrowedFd<'_>) -> (u8, Accepted) {
    (0, Accepted::Failed(0))
}

pub fn socket_cookie(_fd: RawFd) -> u64 {
    0
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    pub read: u64,
    pub unread: u32,
}

pub fn received(_fd: RawFd) -> Option<Received> {
    None
}
pub fn retain_readable(fds: &mut Vec<RawFd>) {
    fds.clear();
}
pub fn exchange(_epoll: RawFd, _fd: RawFd, _dead: BorrowedFd<'_>) -> Option<OwnedFd> {
    None
}
pub fn may_be_signalled(_thread: i32) -> bool {
    false
}

pub type OnSignal = fn(value: u64);

#[derive(Debug, Clone, Copy)]
pub struct OwnSignal(std::convert::Infallible);

impl OwnSignal {
    pub fn claim(_on_signal: OnSignal) -> Option<OwnSignal> {
        None
    }
    pub fn send(self, _thread: i32, _value: u64) -> bool {
        match self.0 {}
    }
}

pub fn yield_core() {
    std::thread::yield_now();
}

#[derive(Debug, PartialEq, Eq)]
pub enum Sent {
    Bytes(usize),
    Full,
}

pub fn send_file(
    _socket: BorrowedFd<'_>,
    _file: BorrowedFd<'_>,
    _offset: u64,
    _count: usize,
) -> Result<Sent> {
    unsupported("sendfile")
}
pub fn set_pipe_size(_pipe: BorrowedFd<'_>, _bytes: i32) -> Result<()> {
    unsupported("larger pipes")
}

#[derive(Debug, PartialEq, Eq)]
pub enum Reaped {
    Running,
    Ended(i32),
    Unknown,
}

pub fn reap(_pid: i32) -> Reaped {
    Reaped::Unknown
}
pub fn send_datagram(_path: &str, _bytes: &[u8]) -> Result<()> {
    unsupported("datagrams to Unix sockets")
}

/// Stands for both tracers: neither can be started.
macro_rules! no_tracer {
    ($name:ident, ($($parameter:ident: $type:ty),*)) => {
        #[derive(Debug)]
        pub struct $name(std::convert::Infallible);

        impl $name {
            pub fn start($($parameter: $type),*) -> Result<$name> {
                unsupported("bpf(2)")
            }
            pub fn follow(&mut self, _pid: u32) -> Result<()> {
                match self.0 {}
            }
            pub fn unfollow(&mut self, _pid: u32) -> Result<()> {
                match self.0 {}
            }
            pub fn read(&self) -> Result<Vec<crate::trace::RecordReading>> {
                match self.0 {}
            }
            pub fn own_time_ns(&self) -> Result<u64> {
                match self.0 {}
            }
        }
    };
}
no_tracer!(EbpfTracer, (_pids: &[u32], _per_thread_names: &[String]));
no_tracer!(RawTracer, (_pids: &[u32]));

pub fn enable_program_times() -> Result<OwnedFd> {
    unsupported("bpf(2)")
}

pub struct Peek(std::convert::Infallible);

impl Peek {
    pub fn open() -> Result<Peek> {
        unsupported("reading memory that may not exist")
    }
    pub fn words(&self, _address: usize, _count: usize) -> Vec<u64> {
        match self.0 {}
    }
    pub fn word(&self, _address: usize) -> Option<u64> {
        match self.0 {}
    }
}
