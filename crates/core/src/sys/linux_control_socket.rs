//! Passes descriptors from process to process over a Unix socket (SCM_RIGHTS).

use super::linux::{checked, duplicate, owned};
use super::linux_sockets::Accepted;
use crate::error::Result;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// Room for the control message of some descriptors, aligned as the kernel requires.
#[repr(align(8))]
struct Control([u8; 64]);

const CONTROL_SOCKET: &str = "a control socket";

/// Both ends of a non-blocking Unix socket over which descriptors pass.
pub fn socket_pair() -> Result<[OwnedFd; 2]> {
    let failed = |error: std::io::Error| refused(error.raw_os_error().unwrap_or(0));
    let (one, other) = UnixStream::pair().map_err(failed)?;
    one.set_nonblocking(true).map_err(failed)?;
    other.set_nonblocking(true).map_err(failed)?;
    Ok([one.into(), other.into()])
}

/// Descriptors in one message.
pub const MAX_DESCRIPTORS: usize = 8;

/// A message of one byte, with room for descriptors in `control`.
fn message_of(part: &mut libc::iovec, control: &mut Control, count: usize) -> libc::msghdr {
    // SAFETY: all-zero bytes are a valid `msghdr`.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    // SAFETY: plain arithmetic.
    message.msg_controllen = unsafe { libc::CMSG_SPACE((count * size_of::<i32>()) as u32) } as _;
    message
}

fn refused(errno: i32) -> crate::CoreError {
    crate::CoreError::Refused { what: CONTROL_SOCKET, errno }
}

/// Sends descriptors over a Unix socket, all in one message with one byte to carry them: all of them
/// arrive, or none.
pub fn send_descriptors(socket: BorrowedFd<'_>, fds: &[BorrowedFd<'_>]) -> Result<()> {
    send_with(1, socket, fds)
}

fn send_with(byte: u8, socket: BorrowedFd<'_>, fds: &[BorrowedFd<'_>]) -> Result<()> {
    if fds.is_empty() || fds.len() > MAX_DESCRIPTORS {
        return Err(refused(libc::EINVAL));
    }
    let mut byte = [byte];
    let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    let mut control = Control([0; 64]);
    let message = message_of(&mut part, &mut control, fds.len());
    // SAFETY: the message has room for one header.
    let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    // SAFETY: plain arithmetic.
    let length = unsafe { libc::CMSG_LEN((fds.len() * size_of::<i32>()) as u32) };
    // SAFETY: plain numbers; musl has padding that no name in this code sets.
    let mut head = unsafe { std::mem::zeroed::<libc::cmsghdr>() };
    head.cmsg_len = length as _;
    head.cmsg_level = libc::SOL_SOCKET;
    head.cmsg_type = libc::SCM_RIGHTS;
    // SAFETY: `header` points into `control`, which is aligned and large enough.
    unsafe { header.write(head) };
    // SAFETY: as above; the data follows the header.
    let data = unsafe { libc::CMSG_DATA(header) }.cast::<i32>();
    for (at, fd) in fds.iter().enumerate() {
        // SAFETY: there is room for `fds.len()` numbers.
        let place = unsafe { data.add(at) };
        // SAFETY: as above.
        unsafe { place.write_unaligned(fd.as_raw_fd()) };
    }
    // SAFETY: everything that `message` points to is live for the call.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) };
    checked(sent as i32, CONTROL_SOCKET)
}

/// Takes the descriptors of the next message from a Unix socket. Fails when no message waits, or when
/// it came without its descriptors (this process has too many open).
pub fn receive_descriptors(socket: BorrowedFd<'_>) -> Result<Vec<OwnedFd>> {
    receive_with(socket).map(|(_, fds)| fds)
}

fn receive_with(socket: BorrowedFd<'_>) -> Result<(u8, Vec<OwnedFd>)> {
    let mut byte = [0u8];
    let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    let mut control = Control([0; 64]);
    let mut message = message_of(&mut part, &mut control, MAX_DESCRIPTORS);
    let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT;
    // SAFETY: everything that `message` points to is live and exclusive for the call.
    let got = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) };
    checked(got as i32, CONTROL_SOCKET)?;
    // Before the header: a single descriptor without a free number leaves no header.
    let is_cut = message.msg_flags & libc::MSG_CTRUNC != 0;
    // SAFETY: the kernel has set the length of what it wrote.
    let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    if header.is_null() {
        return Err(refused(if is_cut { libc::EMFILE } else { libc::EBADMSG }));
    }
    // SAFETY: not null, so it points to a header that the kernel wrote.
    let head = unsafe { header.read() };
    // SAFETY: plain arithmetic.
    let empty = unsafe { libc::CMSG_LEN(0) } as usize;
    let count = (head.cmsg_len as usize).saturating_sub(empty) / size_of::<i32>();
    // SAFETY: as above; the data follows the header.
    let data = unsafe { libc::CMSG_DATA(header) }.cast::<i32>();
    let number = |at| {
        // SAFETY: the kernel wrote so many numbers there.
        let place = unsafe { data.add(at) };
        // SAFETY: as above; each is a descriptor that is ours from now on.
        unsafe { place.read_unaligned() }
    };
    let fds = (0..count).map(|at| owned(number(at), CONTROL_SOCKET)).collect::<Result<Vec<_>>>()?;
    if is_cut {
        return Err(refused(libc::EMFILE));
    }
    Ok((byte[0], fds))
}

/// Result of sending a connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Passed {
    Sent,
    /// The socket is full for now.
    Full,
    /// The other end is closed.
    Gone,
}

/// Sends a connection to the reader of the other end of `control_socket`; it stays open here.
pub fn send_connection(control_socket: BorrowedFd<'_>, connection: BorrowedFd<'_>) -> Passed {
    send_numbered(control_socket, 1, connection)
}

/// Sends a connection with a number for the reader.
pub fn send_numbered(
    control_socket: BorrowedFd<'_>,
    number: u8,
    connection: BorrowedFd<'_>,
) -> Passed {
    match send_with(number, control_socket, &[connection]).map_err(|error| error.errno()) {
        Ok(()) => Passed::Sent,
        // unix(7): too many descriptors of this user are on their way.
        Err(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::ETOOMANYREFS | libc::EINTR) => {
            Passed::Full
        }
        Err(_) => Passed::Gone,
    }
}

/// Number of connections on their way in a control socket: each is a message of one byte (unix(7),
/// `SIOCINQ`).
pub fn control_socket_queue(control_socket: BorrowedFd<'_>) -> Option<u32> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: writes an int to `bytes`, which is live for the call.
    let status = unsafe { libc::ioctl(control_socket.as_raw_fd(), libc::FIONREAD, &raw mut bytes) };
    if status == 0 { u32::try_from(bytes).ok() } else { None }
}

/// Takes the next connection out of a control socket, with the results of `accept`.
pub fn receive_connection(control_socket: BorrowedFd<'_>) -> Accepted {
    receive_numbered(control_socket).1
}

/// Takes the next connection, and the number that came with it, or 0.
pub fn receive_numbered(control_socket: BorrowedFd<'_>) -> (u8, Accepted) {
    // The kernel closes a descriptor for which no number is free, so this reserves one. If another
    // thread takes it in between, that connection is lost.
    let room = duplicate(control_socket);
    if room.is_err() {
        return (0, Accepted::Exhausted);
    }
    drop(room);
    match receive_with(control_socket) {
        Ok((number, mut fds)) => (number, fds.pop().map_or(Accepted::Again, Accepted::Connection)),
        Err(error) => match error.errno() {
            libc::EAGAIN => (0, Accepted::Empty),
            libc::EINTR => (0, Accepted::Again),
            libc::EMFILE => (0, Accepted::Exhausted),
            errno => (0, Accepted::Failed(errno)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;

    #[test]
    fn descriptors_arrive_open_at_the_other_end() {
        let [near, far] = socket_pair().expect("a pair");
        let pairs: Vec<_> = (0..4).map(|_| UnixStream::pair().expect("a pair")).collect();
        let sent: Vec<_> = pairs.iter().map(|(_, sent)| sent.as_fd()).collect();
        send_descriptors(near.as_fd(), &sent).expect("sent");
        send_descriptors(near.as_fd(), &sent[..1]).expect("sent");
        let arrived = receive_descriptors(far.as_fd()).expect("received");
        assert_eq!(arrived.len(), 4);
        for ((mut kept, sent), arrived) in pairs.into_iter().zip(arrived) {
            drop(sent);
            kept.write_all(b"!").expect("open");
            let mut byte = [0];
            UnixStream::from(arrived).read_exact(&mut byte).expect("open");
            assert_eq!(&byte, b"!");
        }
        assert_eq!(receive_descriptors(far.as_fd()).expect("received").len(), 1);
    }

    #[test]
    fn no_more_descriptors_go_than_one_message_has_room_for() {
        let [near, far] = socket_pair().expect("a pair");
        assert!(send_descriptors(near.as_fd(), &[]).is_err());
        assert!(send_descriptors(near.as_fd(), &[far.as_fd(); MAX_DESCRIPTORS + 1]).is_err());
        send_descriptors(near.as_fd(), &[far.as_fd(); MAX_DESCRIPTORS]).expect("sent");
        let arrived = receive_descriptors(far.as_fd()).expect("received");
        assert_eq!(arrived.len(), MAX_DESCRIPTORS);
    }

    #[test]
    fn connections_pass_until_there_is_no_room_and_then_again() {
        let [near, far] = socket_pair().expect("a pair");
        let (connection, _peer) = UnixStream::pair().expect("a pair");
        let mut sent = 0;
        while send_connection(near.as_fd(), connection.as_fd()) == Passed::Sent {
            sent += 1;
        }
        assert_eq!(send_connection(near.as_fd(), connection.as_fd()), Passed::Full);
        assert_eq!(control_socket_queue(far.as_fd()), Some(sent));
        for _ in 0..sent {
            assert!(matches!(receive_connection(far.as_fd()), Accepted::Connection(_)));
        }
        assert!(matches!(receive_connection(far.as_fd()), Accepted::Empty));
        assert_eq!(send_connection(near.as_fd(), connection.as_fd()), Passed::Sent);
        drop(near);
        assert!(matches!(receive_connection(far.as_fd()), Accepted::Connection(_)));
        assert!(matches!(receive_connection(far.as_fd()), Accepted::Failed(_)));
    }

    #[test]
    fn a_socket_without_a_reader_takes_nothing() {
        let [near, far] = socket_pair().expect("a pair");
        drop(far);
        assert_eq!(send_connection(near.as_fd(), near.as_fd()), Passed::Gone);
    }

    #[test]
    fn without_a_descriptor_on_the_way_there_is_an_error_and_no_wait() {
        let [_near, far] = socket_pair().expect("a pair");
        assert_eq!(receive_descriptors(far.as_fd()).expect_err("none").code(), "NATIVE_REFUSED");
    }
}
