//! System calls of a listener thread: epoll, accept.

use super::linux::{checked, owned};
use crate::error::{CoreError, Result};
use socket2::{Domain, SockRef, Socket, Type};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// Result of `accept`.
#[derive(Debug)]
pub enum Accepted {
    Connection(OwnedFd),
    /// No connection waits any more.
    Empty,
    /// The client went away before it was accepted, or a signal came: try again.
    Again,
    /// No descriptor or no memory is left: the connection stays in the kernel's queue.
    Exhausted,
    /// The socket cannot accept any more.
    Failed(i32),
}

/// Sets TCP_NODELAY for connections that a listening socket accepts from now on: they inherit it. Otherwise the
/// second of two small answers waits until the client acknowledges the first, which clients delay. No effect on
/// a Unix socket.
pub fn accept_without_delay(listener: BorrowedFd<'_>) {
    let _ = SockRef::from(&listener).set_tcp_nodelay(true);
}

/// Takes one connection from a listening socket; the connection does not block and is closed on exec.
pub fn accept(listener: BorrowedFd<'_>) -> Accepted {
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: null addresses ask for none.
    let raw = unsafe {
        libc::accept4(listener.as_raw_fd(), std::ptr::null_mut(), std::ptr::null_mut(), flags)
    };
    match owned(raw, "accept") {
        Ok(fd) => Accepted::Connection(fd),
        Err(error) => match error.errno() {
            libc::EAGAIN => Accepted::Empty,
            libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::ENOBUFS => Accepted::Exhausted,
            libc::EBADF | libc::EINVAL | libc::ENOTSOCK | libc::EOPNOTSUPP | libc::EFAULT => {
                Accepted::Failed(error.errno())
            }
            // accept(2): errors of the network belong to the connection, and to no other.
            _ => Accepted::Again,
        },
    }
}

/// A listening socket, non-blocking and closed on exec, that shares its port with others of the same
/// user that were made this way. The kernel spreads connections over them (SO_REUSEPORT, socket(7)).
pub fn listen_shared(address: SocketAddr, backlog: i32, is_v6_only: bool) -> Result<OwnedFd> {
    let listen = || -> std::io::Result<OwnedFd> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM.nonblocking(), None)?;
        if address.is_ipv6() {
            socket.set_only_v6(is_v6_only)?;
        }
        socket.set_reuse_address(true)?; // as libuv does
        socket.set_reuse_port(true)?;
        socket.bind(&address.into())?;
        socket.listen(backlog)?;
        Ok(socket.into())
    };
    listen().map_err(|error| CoreError::Refused {
        what: "a listening socket",
        errno: error.raw_os_error().unwrap_or(0),
    })
}

/// Condition under which a poller reports a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// Reports while there is input.
    Level,
    /// When new input has come.
    Edge,
    /// Like `Level`; the kernel wakes one of all processes that watch it.
    Shared,
}

/// True: connections can be accepted from a socket.
pub fn is_listening(socket: BorrowedFd<'_>) -> Result<bool> {
    SockRef::from(&socket).is_listener().map_err(|error| CoreError::Refused {
        what: "a socket",
        errno: error.raw_os_error().unwrap_or(0),
    })
}

/// Number of connections that wait in a listening TCP socket; `None` for any other descriptor.
pub fn accept_queue(socket: BorrowedFd<'_>) -> Option<u32> {
    // SAFETY: plain integers, for which zeros are a value.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut size = size_of::<libc::tcp_info>() as libc::socklen_t;
    let value = (&raw mut info).cast();
    // SAFETY: writes at most `size` bytes to `info`.
    let status = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, value, &mut size)
    };
    // tcp(7) does not document it; net/ipv4/tcp.c (tcp_get_info) puts the queue there.
    (status == 0).then_some(info.tcpi_unacked)
}

/// Waits for several descriptors at once. Each has a number.
#[derive(Debug)]
pub struct Poller {
    epoll: OwnedFd,
    events: Vec<libc::epoll_event>,
}

impl Poller {
    pub fn new() -> Result<Poller> {
        // SAFETY: plain call.
        let epoll = owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) }, "epoll")?;
        Ok(Poller { epoll, events: vec![libc::epoll_event { events: 0, u64: 0 }; 16] })
    }

    /// Watches `fd` for input.
    pub fn add(&self, fd: BorrowedFd<'_>, number: u64, trigger: Trigger) -> Result<()> {
        let how = match trigger {
            Trigger::Level => 0,
            Trigger::Edge => libc::EPOLLET,
            Trigger::Shared => libc::EPOLLEXCLUSIVE,
        };
        let mut event = libc::epoll_event { events: (libc::EPOLLIN | how) as u32, u64: number };
        let (epoll, fd) = (self.epoll.as_raw_fd(), fd.as_raw_fd());
        // SAFETY: `event` is live for the call.
        checked(unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &raw mut event) }, "epoll")
    }

    /// Watches `fd`, which was added with `Trigger::Level`, for room in its output, or again for input.
    pub fn await_room(&self, fd: BorrowedFd<'_>, number: u64, for_room: bool) -> Result<()> {
        let events = if for_room { libc::EPOLLOUT } else { libc::EPOLLIN };
        let mut event = libc::epoll_event { events: events as u32, u64: number };
        let (epoll, fd) = (self.epoll.as_raw_fd(), fd.as_raw_fd());
        // SAFETY: `event` is live for the call.
        checked(unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_MOD, fd, &raw mut event) }, "epoll")
    }

    pub fn remove(&self, fd: BorrowedFd<'_>) {
        let (epoll, fd) = (self.epoll.as_raw_fd(), fd.as_raw_fd());
        // SAFETY: a null event is allowed for DEL.
        unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_DEL, fd, std::ptr::null_mut()) };
    }

    /// The numbers of descriptors with input; none at the timeout, or when a signal came.
    pub fn wait(&mut self, timeout: Option<Duration>) -> impl Iterator<Item = u64> {
        let timeout_ms = timeout.map_or(-1, |timeout| {
            i32::try_from(timeout.as_micros().div_ceil(1000)).unwrap_or(i32::MAX)
        });
        let (events, room) = (self.events.as_mut_ptr(), self.events.len() as i32);
        // SAFETY: `events` has room for as many.
        let count = unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), events, room, timeout_ms) };
        let count = usize::try_from(count).unwrap_or(0);
        self.events[..count].iter().map(|event| event.u64)
    }
}

/// Readable while one of its descriptors has input.
impl AsFd for Poller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

/// Monotonic time in ms, cut to 32 bits: for words that other processes compare with theirs.
pub fn now_ms() -> u32 {
    // SAFETY: all-zero bytes are a valid `timespec`.
    let mut time: libc::timespec = unsafe { std::mem::zeroed() };
    // SAFETY: `time` is a live out-parameter.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    (time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000) as u32
}

/// Result of one call of `send_file`.
#[derive(Debug, PartialEq, Eq)]
pub enum Sent {
    /// Number of bytes; 0 at the end of the file.
    Bytes(usize),
    /// The peer has to read first.
    Full,
}

/// Sends up to `count` bytes of a file from `offset` on into a non-blocking socket, without a copy in
/// this process: sendfile(2).
pub fn send_file(
    socket: BorrowedFd<'_>,
    file: BorrowedFd<'_>,
    offset: u64,
    count: usize,
) -> Result<Sent> {
    loop {
        let mut at = offset as libc::off64_t;
        let (socket, file) = (socket.as_raw_fd(), file.as_raw_fd());
        // SAFETY: `at` is a live in-out parameter.
        let sent = unsafe { libc::sendfile64(socket, file, &raw mut at, count) };
        match usize::try_from(sent) {
            Ok(bytes) => return Ok(Sent::Bytes(bytes)),
            Err(_) => match std::io::Error::last_os_error().raw_os_error().unwrap_or(0) {
                libc::EINTR => {}
                libc::EAGAIN => return Ok(Sent::Full),
                errno => return Err(crate::CoreError::Refused { what: "sendfile", errno }),
            },
        }
    }
}

/// Makes the buffer of a pipe this large; the kernel may refuse beyond /proc/sys/fs/pipe-max-size.
pub fn set_pipe_size(pipe: BorrowedFd<'_>, bytes: i32) -> Result<()> {
    // SAFETY: plain call.
    let set = unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETPIPE_SZ, bytes) };
    checked(set.min(0), "a larger pipe")
}

/// Result of reaping a child process.
#[derive(Debug, PartialEq, Eq)]
pub enum Reaped {
    Running,
    /// Status as of wait(2).
    Ended(i32),
    /// It is no child of this process, or was reaped before.
    Unknown,
}

/// Reaps a child if it has ended.
pub fn reap(pid: i32) -> Reaped {
    let mut status = 0;
    // SAFETY: `status` is a live out-parameter.
    match unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) } {
        0 => Reaped::Running,
        -1 => Reaped::Unknown,
        _ => Reaped::Ended(status),
    }
}

/// Sends one datagram to a Unix socket; a path that begins with `@` is an abstract one.
pub fn send_datagram(path: &str, bytes: &[u8]) -> Result<()> {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};
    let send = || {
        let address = match path.strip_prefix('@') {
            Some(name) => SocketAddr::from_abstract_name(name)?,
            None => SocketAddr::from_pathname(path)?,
        };
        UnixDatagram::unbound()?.send_to_addr(bytes, &address)
    };
    send().map(|_| ()).map_err(|error| crate::CoreError::Refused {
        what: "a datagram",
        errno: error.raw_os_error().unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_file_is_sent_until_the_peer_has_to_read() {
        let (near, mut far) = UnixStream::pair().expect("a pair");
        near.set_nonblocking(true).expect("non-blocking");
        let file = file_of(&[7; 4 << 20]);
        let mut sent = 0;
        while let Sent::Bytes(bytes) =
            send_file(near.as_fd(), file.as_fd(), sent, 1 << 20).expect("sent")
        {
            assert!(bytes > 0, "the file is larger than any buffer");
            sent += bytes as u64;
        }
        drop(near);
        let mut got = Vec::new();
        far.read_to_end(&mut got).expect("read");
        assert_eq!(got.len() as u64, sent);
        assert!(got.iter().all(|&byte| byte == 7));
    }

    #[test]
    fn behind_its_end_a_file_has_nothing_to_send() {
        let (near, _far) = UnixStream::pair().expect("a pair");
        let file = file_of(&[7; 10]);
        let part = send_file(near.as_fd(), file.as_fd(), 4, 100).expect("sent");
        assert_eq!(part, Sent::Bytes(6));
        assert_eq!(send_file(near.as_fd(), file.as_fd(), 10, 5).expect("sent"), Sent::Bytes(0));
    }

    fn file_of(bytes: &[u8]) -> std::fs::File {
        let path = std::env::temp_dir().join(format!("manycore-{}", bytes.len()));
        std::fs::write(&path, bytes).expect("written");
        let file = std::fs::File::open(&path).expect("open");
        std::fs::remove_file(&path).expect("removed");
        file
    }

    #[test]
    #[expect(clippy::zombie_processes, reason = "reap is what is tested here")]
    fn a_child_is_reaped_once_it_has_ended() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("cat");
        let pid = child.id() as i32;
        assert_eq!(reap(pid), Reaped::Running);
        drop(child.stdin.take());
        let mut reaped = reap(pid);
        while reaped == Reaped::Running {
            std::thread::sleep(Duration::from_millis(1));
            reaped = reap(pid);
        }
        assert_eq!(reaped, Reaped::Ended(0));
        assert_eq!(reap(pid), Reaped::Unknown);
    }

    #[test]
    fn a_pipe_grows() {
        let (reader, _writer) = std::io::pipe().expect("a pipe");
        set_pipe_size(reader.as_fd(), 1 << 18).expect("below the limit of every user");
        // SAFETY: plain call.
        let size = unsafe { libc::fcntl(reader.as_raw_fd(), libc::F_GETPIPE_SZ) };
        assert_eq!(size, 1 << 18);
        assert!(set_pipe_size(reader.as_fd(), -1).is_err());
    }

    #[test]
    fn a_datagram_arrives_at_a_path_and_at_an_abstract_name() {
        use std::os::linux::net::SocketAddrExt;
        use std::os::unix::net::{SocketAddr, UnixDatagram};
        let name = format!("manycore-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("a name");
        let socket = UnixDatagram::bind_addr(&address).expect("bound");
        send_datagram(&format!("@{name}"), b"READY=1").expect("sent");
        let mut buffer = [0; 16];
        let count = socket.recv(&mut buffer).expect("received");
        assert_eq!(&buffer[..count], b"READY=1");
        assert!(send_datagram("/no/such/socket", b"").is_err());
    }

    #[test]
    fn a_poller_reports_readable_descriptors() {
        let mut poller = Poller::new().expect("epoll");
        let (mut near, far) = UnixStream::pair().expect("a pair");
        poller.add(far.as_fd(), 7, Trigger::Level).expect("added");
        assert_eq!(poller.wait(Some(Duration::ZERO)).count(), 0);
        near.write_all(b"!").expect("open");
        assert_eq!(poller.wait(None).collect::<Vec<_>>(), [7]);
        poller.remove(far.as_fd());
        assert_eq!(poller.wait(Some(Duration::ZERO)).count(), 0);
    }
}
