//! System calls with which a connection is taken from a thread that is blocked: the state of a socket,
//! the exchange of a descriptor, and a signal that makes one thread of this process stand still.
//!
//! What runs while the other thread stands (`received`, `exchange`) allocates nothing and takes no lock:
//! that thread may hold any of them.

use super::linux::owned;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::OnceLock;

/// The same on every platform with prebuilt binaries (include/uapi/asm-generic/socket.h).
const SO_COOKIE: libc::c_int = 57;

/// Number of a socket that the kernel gives to no other one; 0: `fd` is no socket.
pub fn socket_cookie(fd: RawFd) -> u64 {
    let mut cookie = 0u64;
    let mut size = size_of::<u64>() as libc::socklen_t;
    let (level, name) = (libc::SOL_SOCKET, SO_COOKIE);
    // SAFETY: writes at most `size` bytes to `cookie`, which is live for the call.
    let status =
        unsafe { libc::getsockopt(fd, level, name, (&raw mut cookie).cast(), &raw mut size) };
    if status == 0 { cookie } else { 0 }
}

/// Bytes that a TCP connection has received in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Read by this process.
    pub read: u64,
    /// Waiting in the kernel.
    pub unread: u32,
}

/// Start of the kernel's `tcp_info` (include/uapi/linux/tcp.h), whose layout only grows.
#[repr(C)]
struct TcpInfo {
    state: u8,
    others: [u8; 127],
    bytes_received: u64,
}
const _: () = assert!(std::mem::offset_of!(TcpInfo, bytes_received) == 128);

/// `None` for anything but an established TCP connection whose other end has not closed it.
pub fn received(fd: RawFd) -> Option<Received> {
    const ESTABLISHED: u8 = 1;
    let mut unread: libc::c_int = 0;
    // The waiting bytes come first. Bytes that arrive in between count as read, and the caller finds too
    // many; in the other order it could find as many as it expects.
    // SAFETY: writes an int to `unread`, which is live for the call.
    if unsafe { libc::ioctl(fd, libc::FIONREAD, &raw mut unread) } != 0 {
        return None;
    }
    let mut info = TcpInfo { state: 0, others: [0; 127], bytes_received: 0 };
    let mut size = size_of::<TcpInfo>() as libc::socklen_t;
    let (level, name) = (libc::IPPROTO_TCP, libc::TCP_INFO);
    // SAFETY: writes at most `size` bytes to `info`, which is live for the call.
    let status =
        unsafe { libc::getsockopt(fd, level, name, (&raw mut info).cast(), &raw mut size) };
    let is_whole = status == 0 && size as usize == size_of::<TcpInfo>();
    if !is_whole || info.state != ESTABLISHED {
        return None;
    }
    let unread = u32::try_from(unread).ok()?;
    Some(Received { read: info.bytes_received.checked_sub(unread.into())?, unread })
}

/// Keeps of `fds` those with input.
pub fn retain_readable(fds: &mut Vec<RawFd>) {
    let poll = |&fd: &RawFd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut polled: Vec<libc::pollfd> = fds.iter().map(poll).collect();
    // SAFETY: `polled` has so many live, exclusive entries.
    let count = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, 0) };
    fds.clear();
    if count > 0 {
        let has_input = |polled: &&libc::pollfd| polled.revents & libc::POLLIN != 0;
        fds.extend(polled.iter().filter(has_input).map(|polled| polled.fd));
    }
}

/// Puts `dead` behind the number `fd`, which `epoll` watches for input, and returns the connection that was
/// there. `None`: nothing has changed.
///
/// The number stays watched: libuv changes its entry later, and aborts the process when there is none.
pub fn exchange(epoll: RawFd, fd: RawFd, dead: BorrowedFd<'_>) -> Option<OwnedFd> {
    // SAFETY: plain call; a number that is not open is refused.
    let raw = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3) };
    let connection = owned(raw, "dup").ok()?;
    // SAFETY: a null event is allowed for DEL.
    if unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_DEL, fd, std::ptr::null_mut()) } != 0 {
        return None;
    }
    // SAFETY: plain call; closes the first descriptor of the connection, of which there are two.
    let put = unsafe { libc::dup3(dead.as_raw_fd(), fd, libc::O_CLOEXEC) };
    // libuv finds the handle by this number (src/unix/linux.c).
    let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: fd as u64 };
    // SAFETY: `event` is live for the call. It has room: an entry was removed above.
    unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &raw mut event) };
    (put == fd).then_some(connection)
}

/// True: a signal makes no call fail that thread `thread` of this process is in. A thread that computes
/// is in none; a few calls go on after a handler (signal(7)), or are repeated by everybody who makes them.
pub fn may_be_signalled(thread: i32) -> bool {
    let read = |name| std::fs::read_to_string(format!("/proc/self/task/{thread}/{name}"));
    let Ok(stat) = read("stat") else { return false };
    // The name of the thread before it may hold anything, parentheses too.
    match stat.rsplit(") ").next().and_then(|rest| rest.chars().next()) {
        Some('R') => true,
        Some('S') => {
            let call = read("syscall").unwrap_or_default();
            let number = call.split(' ').next().and_then(|number| number.parse().ok());
            number.is_some_and(|number: libc::c_long| SIGNALLED.contains(&number))
        }
        _ => false,
    }
}

const SIGNALLED: [libc::c_long; 5] = [
    libc::SYS_futex,
    libc::SYS_epoll_pwait,
    libc::SYS_wait4,
    libc::SYS_waitid,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
    #[cfg(not(target_arch = "x86_64"))]
    libc::SYS_epoll_pwait2,
];

/// The kernel's `siginfo_t` of a queued signal, where pointers have 64 bits.
#[repr(C)]
struct QueuedSignal {
    signal: i32,
    errno: i32,
    code: i32,
    gap: i32,
    pid: i32,
    uid: u32,
    value: u64,
    others: [u32; 24],
}
const _: () = assert!(size_of::<QueuedSignal>() == 128);
const _: () = assert!(size_of::<libc::siginfo_t>() == 128);

/// Handles the signal in its thread, with the number that came with it. Runs between any two
/// instructions of the thread: it must not allocate or take a lock.
pub type OnSignal = fn(value: u64);

/// A signal of this process for one purpose.
#[derive(Debug, Clone, Copy)]
pub struct OwnSignal(libc::c_int);

static ON_SIGNAL: OnceLock<OnSignal> = OnceLock::new();

extern "C" fn handle(
    _signal: libc::c_int,
    info: *mut libc::siginfo_t,
    _context: *mut libc::c_void,
) {
    // SAFETY: the address of this thread's errno, valid as long as the thread.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let errno = unsafe { place.read() };
    // SAFETY: the kernel passes a whole `siginfo_t` (SA_SIGINFO).
    let queued = unsafe { info.cast::<QueuedSignal>().read() };
    if let Some(on_signal) = ON_SIGNAL.get() {
        on_signal(queued.value);
    }
    // SAFETY: as above.
    unsafe { place.write(errno) };
}

impl OwnSignal {
    /// Takes a real-time signal that has no handler yet, once for the process. The handler stays: a signal
    /// may be on its way to a thread that blocks it, and without a handler it ends the process. `None`:
    /// none is free, or the kernel refuses.
    pub fn claim(on_signal: OnSignal) -> Option<OwnSignal> {
        static CLAIMED: OnceLock<Option<OwnSignal>> = OnceLock::new();
        *CLAIMED.get_or_init(|| {
            ON_SIGNAL.set(on_signal).ok()?;
            // The last ones are those of debuggers, the first ones those of other runtimes (.NET, musl).
            ((libc::SIGRTMIN() + 4)..(libc::SIGRTMAX() - 3)).rev().find_map(OwnSignal::install)
        })
    }

    fn install(signal: libc::c_int) -> Option<OwnSignal> {
        if action_of(signal)?.sa_sigaction != libc::SIG_DFL {
            return None;
        }
        // SAFETY: all-zero bytes are a valid `sigaction`: an empty mask, no flags.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = handle;
        action.sa_sigaction = handler as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
        // SAFETY: `action` is live for the call; the library with the handler stays mapped (`pin_library`).
        let status = unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
        (status == 0).then_some(OwnSignal(signal))
    }

    /// True: nobody has replaced the handler.
    fn is_own(self) -> bool {
        let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = handle;
        action_of(self.0).is_some_and(|action| action.sa_sigaction == handler as libc::sighandler_t)
    }

    /// Makes a thread of this process run the handler with `value`. False: it gets no signal.
    pub fn send(self, thread: i32, value: u64) -> bool {
        if !self.is_own() {
            return false;
        }
        let info = QueuedSignal {
            signal: self.0,
            errno: 0,
            code: libc::SI_QUEUE,
            gap: 0,
            pid: std::process::id() as i32,
            // SAFETY: plain call that cannot fail.
            uid: unsafe { libc::getuid() },
            value,
            others: [0; 24],
        };
        let process = std::process::id();
        // SAFETY: the kernel reads `info`, which is live for the call, and nothing else.
        let status = unsafe {
            libc::syscall(libc::SYS_rt_tgsigqueueinfo, process, thread, self.0, &raw const info)
        };
        status == 0
    }
}

fn action_of(signal: libc::c_int) -> Option<libc::sigaction> {
    // SAFETY: all-zero bytes are a valid `sigaction`.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: a null action changes nothing; `action` is a live out-parameter.
    let status = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) };
    (status == 0).then_some(action)
}

/// Lets another thread run on this core.
pub fn yield_core() {
    // SAFETY: plain call.
    unsafe { libc::sched_yield() };
}
