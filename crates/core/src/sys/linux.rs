//! System calls of Linux, each wrapped in a safe function that owns or borrows its descriptors.

use crate::error::{CoreError, Result};
use crate::sync::AtomicU32;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::{NonNull, null_mut};
use std::time::Duration;

pub const EPERM: i32 = libc::EPERM;

fn last_error(what: &'static str) -> CoreError {
    let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
    CoreError::Refused { what, errno }
}

pub(super) fn owned(raw: RawFd, what: &'static str) -> Result<OwnedFd> {
    if raw < 0 {
        return Err(last_error(what));
    }
    // SAFETY: the kernel has just made this descriptor for us; no other value owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

pub(super) fn checked(status: i32, what: &'static str) -> Result<()> {
    if status < 0 { Err(last_error(what)) } else { Ok(()) }
}

/// A memfd of `size_bytes` whose size is sealed: no peer can make a mapped byte vanish.
pub fn sealed_memfd(name: &std::ffi::CStr, size_bytes: u64) -> Result<OwnedFd> {
    super::check_refusal("memfd")?;
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: `name` is a NUL-terminated string.
    let fd = owned(unsafe { libc::memfd_create(name.as_ptr(), flags) }, "memfd")?;
    let length = libc::off_t::try_from(size_bytes)
        .map_err(|_| CoreError::Refused { what: "memfd", errno: libc::EINVAL })?;
    // SAFETY: plain call on an owned descriptor.
    checked(unsafe { libc::ftruncate(fd.as_raw_fd(), length) }, "memfd")?;
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: plain call on an owned descriptor.
    checked(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, seals) }, "memfd")?;
    Ok(fd)
}

/// Size of the file behind `fd` when it is sealed against shrinking; an error otherwise.
pub fn sealed_size(fd: BorrowedFd<'_>) -> Result<u64> {
    // SAFETY: plain call on a borrowed descriptor.
    let seals = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GET_SEALS) };
    if seals < 0 || seals & libc::F_SEAL_SHRINK == 0 {
        return Err(CoreError::Corrupt {
            what: "the seal of the memfd",
            value: seals as u32 as u64,
        });
    }
    // SAFETY: all-zero bytes are a valid `stat`.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: `stat` is a live, exclusive out-parameter.
    checked(unsafe { libc::fstat(fd.as_raw_fd(), &mut stat) }, "fstat")?;
    Ok(stat.st_size as u64)
}

/// An error where `fd` could have seals.
pub fn check_unsealable(fd: BorrowedFd<'_>) -> Result<()> {
    // SAFETY: plain call on a borrowed descriptor.
    let seals = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GET_SEALS) };
    if seals >= 0 {
        let value = seals as u32 as u64;
        return Err(CoreError::Corrupt { what: "the seal of the segment", value });
    }
    Ok(())
}

/// Maps a part of `fd`, shared, without touching a page. The caller unmaps.
pub fn map_shared(fd: BorrowedFd<'_>, offset: u64, size_bytes: usize) -> Result<NonNull<u8>> {
    let offset = libc::off_t::try_from(offset)
        .map_err(|_| CoreError::Corrupt { what: "an offset", value: offset })?;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
    // SAFETY: no fixed address, so no existing mapping is touched.
    let at =
        unsafe { libc::mmap(null_mut(), size_bytes, protection, flags, fd.as_raw_fd(), offset) };
    if at == libc::MAP_FAILED {
        return Err(last_error("mmap"));
    }
    NonNull::new(at.cast()).ok_or(CoreError::Refused { what: "mmap", errno: libc::ENOMEM })
}

/// Unmaps a mapping of `map_shared`.
pub fn unmap(start: NonNull<u8>, size_bytes: usize) {
    // SAFETY: called once, by the owner of the mapping, with the numbers that `map_shared` was given.
    let status = unsafe { libc::munmap(start.as_ptr().cast(), size_bytes) };
    debug_assert_eq!(status, 0, "munmap of our own mapping");
}

/// Makes the pages present and writable, or fails where a touch would have raised SIGBUS.
/// The range must lie in a mapping of the caller.
pub fn populate(start: NonNull<u8>, size_bytes: usize) -> Result<()> {
    const MADV_POPULATE_WRITE: i32 = 23;
    loop {
        // SAFETY: populating changes no byte; the kernel checks the range.
        let status =
            unsafe { libc::madvise(start.as_ptr().cast(), size_bytes, MADV_POPULATE_WRITE) };
        if status == 0 {
            return Ok(());
        }
        match std::io::Error::last_os_error().raw_os_error().unwrap_or(0) {
            libc::EINTR | libc::EAGAIN => {}
            // Linux before 5.14: the first touch makes the pages.
            libc::EINVAL => return Ok(()),
            errno => return Err(CoreError::Refused { what: "memory", errno }),
        }
    }
}

/// Frees the memory behind a range of `fd`; its bytes read as zero afterwards.
pub fn punch_hole(fd: BorrowedFd<'_>, offset: u64, size_bytes: u64) -> Result<()> {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: plain call on a borrowed descriptor.
    let status = unsafe {
        libc::fallocate(fd.as_raw_fd(), mode, offset as libc::off_t, size_bytes as libc::off_t)
    };
    checked(status, "fallocate")
}

pub fn eventfd() -> Result<OwnedFd> {
    super::check_refusal("eventfd")?;
    // SAFETY: plain call.
    owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) }, "eventfd")
}

/// Adds 1 to an eventfd. A full counter means that the reader is already awake: not an error.
pub fn eventfd_ring(fd: BorrowedFd<'_>) {
    let one = 1u64.to_ne_bytes();
    loop {
        // SAFETY: `one` is 8 live bytes.
        let written = unsafe { libc::write(fd.as_raw_fd(), one.as_ptr().cast(), one.len()) };
        let interrupted =
            written < 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR);
        if !interrupted {
            return;
        }
    }
}

/// Sets an eventfd back to 0; true when it had been rung.
pub fn eventfd_clear(fd: BorrowedFd<'_>) -> bool {
    let mut count = [0u8; 8];
    // SAFETY: `count` is 8 live, exclusive bytes.
    unsafe { libc::read(fd.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) == 8 }
}

/// Writes one byte into a non-blocking stream. A full one means that its reader has been rung: not an error.
/// Without SIGPIPE, which Node ignores; `send` has a flag for that, but no partition may call it.
pub fn stream_ring(fd: BorrowedFd<'_>) {
    let byte = [1u8];
    loop {
        // SAFETY: `byte` is one live byte.
        let written = unsafe { libc::write(fd.as_raw_fd(), byte.as_ptr().cast(), 1) };
        if written >= 0 || errno() != libc::EINTR {
            return;
        }
    }
}

/// Takes bytes of `stream_ring`, at most 4096 of them, and returns how many; `None` at the end of the stream.
pub fn stream_clear(fd: BorrowedFd<'_>) -> Option<usize> {
    let mut bytes = [0u8; 4096];
    // SAFETY: `bytes` is live and exclusive.
    let count = unsafe { libc::read(fd.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len()) };
    match count {
        0 => None,
        1.. => Some(count as usize),
        _ if matches!(errno(), libc::EAGAIN | libc::EINTR) => Some(0),
        _ => None,
    }
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// A second descriptor of the same file, closed on exec.
pub fn duplicate(fd: BorrowedFd<'_>) -> Result<OwnedFd> {
    // SAFETY: plain call on a borrowed descriptor.
    owned(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 3) }, "dup")
}

/// Takes over a descriptor that the parent passed by number: checks that it is open and keeps it
/// from being inherited further.
pub fn adopt(raw: RawFd) -> Result<OwnedFd> {
    // SAFETY: plain call; a number that is not open answers EBADF.
    checked(unsafe { libc::fcntl(raw, libc::F_SETFD, libc::FD_CLOEXEC) }, "the descriptor")?;
    // SAFETY: it is open, and the ticket gives its ownership to the caller.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// The core that this thread runs on now.
pub fn current_cpu() -> Option<u32> {
    // SAFETY: plain call.
    u32::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// The cores that this thread may run on.
pub fn affinity() -> Result<Vec<u32>> {
    // SAFETY: all-zero bytes are an empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is a live, exclusive out-parameter of the size given.
    checked(unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) }, "affinity")?;
    let is_in = |cpu: usize| {
        // SAFETY: `cpu` is below CPU_SETSIZE, the number of bits of the set.
        unsafe { libc::CPU_ISSET(cpu, &set) }
    };
    Ok((0..libc::CPU_SETSIZE as usize).filter(|&cpu| is_in(cpu)).map(|cpu| cpu as u32).collect())
}

/// Restricts this thread to `cpus`.
pub fn set_affinity(cpus: &[u32]) -> Result<()> {
    // SAFETY: all-zero bytes are an empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &cpu in cpus {
        if cpu >= libc::CPU_SETSIZE as u32 {
            return Err(CoreError::Refused { what: "affinity", errno: libc::EINVAL });
        }
        // SAFETY: `cpu` is below CPU_SETSIZE, the number of bits of the set.
        unsafe { libc::CPU_SET(cpu as usize, &mut set) };
    }
    // SAFETY: `set` is a live set of the size given.
    checked(unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) }, "affinity")
}

/// Sleeps while the word is `seen`, until it is woken or for `limit`. The word may be in memory of several processes.
pub fn futex_wait(word: &AtomicU32, seen: u32, limit: Duration) {
    let limit = libc::timespec {
        tv_sec: limit.as_secs() as libc::time_t,
        tv_nsec: limit.subsec_nanos() as libc::c_long,
    };
    // SAFETY: the word and the time are live; the kernel reads both alone. Every result means: check again.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, seen, &raw const limit);
    }
}

/// Wakes all that sleep on the word, in any process.
pub fn futex_wake(word: &AtomicU32) {
    // SAFETY: the kernel takes the address of the live word alone.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX);
    }
}

/// Process id of the parent.
pub fn parent_pid() -> i32 {
    // SAFETY: plain call that cannot fail.
    unsafe { libc::getppid() }
}

/// Number of this thread, unique in the system.
pub fn thread_id() -> i32 {
    // SAFETY: plain call that cannot fail.
    unsafe { libc::gettid() }
}

/// True: process `pid` has the thread `thread`.
pub fn has_thread(pid: i32, thread: i32) -> bool {
    // SAFETY: signal 0 is not delivered; the call only checks whether it could be.
    unsafe { libc::syscall(libc::SYS_tgkill, pid, thread, 0) == 0 }
}

/// A descriptor that becomes readable when process `pid` ends.
pub fn pidfd(pid: i32) -> Result<OwnedFd> {
    super::check_refusal("pidfd")?;
    // SAFETY: plain call.
    let raw = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    owned(raw as RawFd, "pidfd")
}

/// Sleeps until `fd` is readable.
pub fn wait_readable(fd: BorrowedFd<'_>) {
    let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    loop {
        // SAFETY: `poll` is one live, exclusive entry.
        let ready = unsafe { libc::poll(&raw mut poll, 1, -1) };
        if ready > 0 {
            return;
        }
    }
}

/// True: `fd` is readable now.
pub fn is_readable(fd: BorrowedFd<'_>) -> bool {
    let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: `poll` is one live, exclusive entry.
    unsafe { libc::poll(&raw mut poll, 1, 0) == 1 }
}

/// Makes the kernel kill this process when the thread that started it ends.
pub fn die_with_parent_thread() -> Result<()> {
    // SAFETY: plain call.
    checked(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) }, "pdeathsig")
}

/// Ends the process at once: no destructor, no exit handler.
pub fn exit_now(status: i32) -> ! {
    // SAFETY: does not return; nothing of ours is observed afterwards.
    unsafe { libc::_exit(status) }
}

/// Ends this process as a signal from outside does, for tests.
pub fn kill_self() -> ! {
    // SAFETY: plain call that cannot fail.
    let own = unsafe { libc::getpid() };
    // SAFETY: plain call; the signal cannot be caught.
    unsafe { libc::kill(own, libc::SIGKILL) };
    exit_now(137)
}

/// True: the system has a thread of this number, whoever may see it.
pub fn is_thread(thread: u32) -> bool {
    let Ok(thread) = libc::pid_t::try_from(thread) else { return false };
    // SAFETY: plain call; signal 0 is none.
    let status = unsafe { libc::kill(thread, 0) };
    status == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

/// Stops this process until another one lets it go on, for tests.
pub fn stop_self() {
    // SAFETY: plain call; the signal cannot be caught.
    unsafe { libc::raise(libc::SIGSTOP) };
}

/// Keeps this library mapped for good: a worker thread whose end unloads it must not pull code from under a
/// thread or a finalizer that still runs it.
pub fn pin_library() {
    let inside: *const libc::c_void = (pin_library as fn()) as *const libc::c_void;
    // SAFETY: all-null is a valid `Dl_info`.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: `inside` is an address of this library, `info` a live out-parameter.
    let found = unsafe { libc::dladdr(inside, &mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return;
    }
    // SAFETY: the name comes from the loader; NOLOAD only changes the flags of what is loaded.
    unsafe {
        libc::dlopen(info.dli_fname, libc::RTLD_NOLOAD | libc::RTLD_NODELETE | libc::RTLD_NOW)
    };
}
