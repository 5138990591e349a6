//! Answers for connections that reach no loop, from native threads. A connection that no loop takes for
//! long gets 503, so that clients and load balancers need no timeout to notice. A request for an
//! unknown name gets 421, or its counterpart in TLS.
//!
//! Closing a socket with unread input resets its connection, and the client may never see the answer.
//! So answered connections are read for a moment longer, until the client closes ("lingering close", as
//! nginx and Apache do).

use crate::sys::fd::OwnedFd;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

pub const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    Retry-After: 1\r\n\
    Connection: close\r\n\
    Content-Type: text/plain\r\n\
    Content-Length: 29\r\n\
    \r\n\
    The server is busy, try later";

/// RFC 9110, section 15.5.20.
pub const MISDIRECTED: &[u8] = b"HTTP/1.1 421 Misdirected Request\r\n\
    Connection: close\r\n\
    Content-Type: text/plain\r\n\
    Content-Length: 25\r\n\
    \r\n\
    No app here has this name";

/// The answers that Node gives to such requests, byte for byte.
pub const BAD_REQUEST: &[u8] = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
pub const TOO_LARGE: &[u8] =
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\n\r\n";
pub const TIMED_OUT: &[u8] = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n";

/// The fatal alert `decode_error` (RFC 8446, section 6.2).
pub const BAD_HELLO: &[u8] = &[21, 3, 3, 0, 2, 2, 50];

/// The fatal alert `unrecognized_name` (RFC 6066, section 3).
pub const UNRECOGNIZED_NAME: &[u8] = &[21, 3, 3, 0, 2, 2, 112];

const LINGER: Duration = Duration::from_secs(1);
/// Beyond this number the oldest are closed at once.
const MAX_LINGERING: usize = 256;
/// Reads from one client before the next one has its turn.
const MAX_READS: usize = 16;

/// Connections that were answered and are not closed yet.
#[derive(Debug, Default)]
pub struct TurnedAway {
    lingering: VecDeque<(TcpStream, Instant)>,
}

impl TurnedAway {
    /// Sends `answer`, which is short, to the client of a non-blocking connection.
    pub fn answer(&mut self, connection: OwnedFd, answer: &[u8]) {
        // Only calls of any stream socket are used: a Unix socket works, too.
        let mut stream = TcpStream::from(connection);
        // A client that is gone or reads nothing gets no answer: there is no other way to reach it.
        if stream.write(answer).is_err() || stream.shutdown(Shutdown::Write).is_err() {
            return;
        }
        if self.lingering.len() == MAX_LINGERING {
            self.lingering.pop_front();
        }
        self.lingering.push_back((stream, Instant::now()));
    }

    pub fn is_empty(&self) -> bool {
        self.lingering.is_empty()
    }

    /// Closes connections whose client has closed, and those answered long ago.
    pub fn settle(&mut self) {
        self.lingering.retain_mut(|(stream, since)| since.elapsed() < LINGER && !has_ended(stream));
    }
}

/// Reads input and drops it. True: the connection has ended.
pub fn has_ended(stream: &mut TcpStream) -> bool {
    let mut buffer = [0; 4096];
    for _ in 0..MAX_READS {
        match stream.read(&mut buffer) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() != ErrorKind::WouldBlock,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn pair() -> (TcpStream, OwnedFd) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let client = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        let (server, _) = listener.accept().expect("a client");
        server.set_nonblocking(true).expect("non-blocking");
        (client, server.into())
    }

    #[test]
    fn the_answers_have_the_right_content_length() {
        for answer in [BUSY, MISDIRECTED] {
            let text = std::str::from_utf8(answer).expect("ASCII");
            let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
            assert!(head.contains(&format!("Content-Length: {}", body.len())), "{}", body.len());
        }
    }

    #[test]
    fn a_client_that_has_sent_its_request_reads_the_whole_answer() {
        let (mut client, server) = pair();
        client.write_all(b"POST / HTTP/1.1\r\n\r\n").expect("sent");
        let mut turned_away = TurnedAway::default();
        turned_away.answer(server, BUSY);
        client.write_all(&[b'x'; 10_000]).expect("sent");
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).expect("no reset");
        assert_eq!(answer, BUSY);
        turned_away.settle();
        assert!(!turned_away.is_empty(), "until the client closes");
        drop(client);
        let deadline = Instant::now() + LINGER / 2;
        while !turned_away.is_empty() {
            assert!(Instant::now() < deadline);
            turned_away.settle();
        }
    }

    #[test]
    fn lingering_is_bounded_in_time_and_number() {
        let mut turned_away = TurnedAway::default();
        let mut clients = Vec::new();
        for _ in 0..=MAX_LINGERING {
            let (client, server) = pair();
            clients.push(client);
            turned_away.answer(server, BUSY);
        }
        assert_eq!(turned_away.lingering.len(), MAX_LINGERING);
        std::thread::sleep(LINGER);
        turned_away.settle();
        assert!(turned_away.is_empty());
    }
}
