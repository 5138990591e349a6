//! One connection of the thread: what it does next, after its socket is ready.

use super::super::turn_away::has_ended;
use super::file::CachedFile;
use super::request;
use super::thread::Answers;
use crate::error::{CoreError, Result};
use crate::sys::fd::{AsFd, BorrowedFd, OwnedFd};
use crate::sys::{self, Sent};
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;

/// Bytes of a file in one call: so that other connections get their share.
const TURN_BYTES: u64 = 1 << 20;

pub struct Connection {
    /// Only calls of any stream socket are used: it may be a Unix socket.
    stream: TcpStream,
    /// Number of the listening socket.
    pub socket: u32,
    /// Time of the last answer, or of the start.
    pub since_ms: u32,
    /// True: at least one request was answered, here or by a loop.
    pub has_answered: bool,
    /// Requests answered here.
    pub answers: u32,
    /// Bytes sent here.
    pub written: u64,
    output: Option<Output>,
    /// True: the last answer was sent, and the client has to close.
    pub lingers: bool,
}

/// An answer that is being sent.
struct Output {
    file: Arc<CachedFile>,
    head: String,
    start: u64,
    count: u64,
    /// Bytes of head and file.
    sent: u64,
    closes: bool,
}

/// Reason for which a connection waits.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    Input,
    /// The client has to read.
    Room,
    /// A loop has to answer. The size of the request, if it is whole and nothing follows it.
    Loop(Option<usize>),
    Close,
}

impl Connection {
    pub fn new(fd: OwnedFd, socket: u32, since_ms: u32, has_answered: bool) -> Connection {
        let stream = TcpStream::from(fd);
        Connection {
            stream,
            socket,
            since_ms,
            has_answered,
            answers: 0,
            written: 0,
            output: None,
            lingers: false,
        }
    }

    pub fn into_fd(self) -> OwnedFd {
        self.stream.into()
    }

    /// True: an answer is not sent to its end.
    pub fn writes(&self) -> bool {
        self.output.is_some()
    }

    /// Goes on until the socket is not ready. `closes`: with the next answer.
    pub fn advance(&mut self, answers: &mut Answers, buffer: &mut [u8], closes: bool) -> Next {
        if self.lingers {
            return if has_ended(&mut self.stream) { Next::Close } else { Next::Input };
        }
        if self.output.is_some() {
            return self.write(answers.now_ms());
        }
        let bytes = match self.stream.peek(buffer) {
            Ok(0) => return Next::Close,
            Ok(count) => &buffer[..count],
            Err(error) if is_passing(&error) => return Next::Input,
            Err(_) => return Next::Close,
        };
        let Some(request) = request::parse(bytes) else { return Next::Loop(None) };
        let (size, is_all) = (request.size, request.size == bytes.len());
        let found = answers.find(&request);
        let answered = found.and_then(|file| Some((file.answer(&request)?, file)));
        let Some((answer, file)) = answered else { return Next::Loop(is_all.then_some(size)) };
        // It was peeked, so it is there.
        if !matches!(self.stream.read(&mut buffer[..size]), Ok(count) if count == size) {
            return Next::Close;
        }
        let mut head = answer.head;
        head.push_str(answers.last_fields(closes));
        let (start, count) = (answer.start, answer.count);
        self.output = Some(Output { file, head, start, count, sent: 0, closes });
        self.write(answers.now_ms())
    }

    fn write(&mut self, now_ms: u32) -> Next {
        let Some(output) = &mut self.output else { return Next::Input };
        let before = output.sent;
        let result = output.send(&mut self.stream);
        self.written += output.sent - before;
        match result {
            Err(_) => return Next::Close,
            Ok(false) => return Next::Room,
            Ok(true) => {}
        }
        let closes = output.closes;
        self.output = None;
        self.has_answered = true;
        self.answers = self.answers.wrapping_add(1);
        self.since_ms = now_ms;
        if closes {
            self.lingers = true;
            if self.stream.shutdown(Shutdown::Write).is_err() {
                return Next::Close;
            }
        }
        Next::Input
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Output {
    /// Sends what the socket has room for, of a large file a part. True: all is sent.
    fn send(&mut self, stream: &mut TcpStream) -> Result<bool> {
        let all = self.head.len() as u64 + self.count;
        let file = Arc::clone(&self.file);
        match file.memory() {
            Some(bytes) => {
                let body = &bytes[self.start as usize..(self.start + self.count) as usize];
                while self.sent < all {
                    let head = &self.head.as_bytes()[self.head.len().min(self.sent as usize)..];
                    let rest = &body[(self.sent as usize).saturating_sub(self.head.len())..];
                    match stream.write_vectored(&[IoSlice::new(head), IoSlice::new(rest)]) {
                        Ok(count) => self.sent += count as u64,
                        Err(error) if error.kind() == ErrorKind::Interrupted => {}
                        Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                        Err(error) => {
                            let errno = error.raw_os_error().unwrap_or(0);
                            return Err(CoreError::Refused { what: "writev", errno });
                        }
                    }
                }
                Ok(true)
            }
            None => self.send_file(stream, all),
        }
    }

    fn send_file(&mut self, stream: &TcpStream, all: u64) -> Result<bool> {
        while self.sent < self.head.len() as u64 {
            let rest = &self.head.as_bytes()[self.sent as usize..];
            match sys::send_before_more(stream.as_fd(), rest)? {
                0 => return Ok(false),
                count => self.sent += count as u64,
            }
        }
        let file = Arc::clone(&self.file);
        let Some(fd) = file.file() else { return Ok(true) };
        let end = all.min(self.sent + TURN_BYTES);
        while self.sent < end {
            let at = self.start + self.sent - self.head.len() as u64;
            match sys::send_file(stream.as_fd(), fd, at, (end - self.sent) as usize)? {
                // The file has become shorter: the client notices the missing bytes.
                Sent::Bytes(0) => return Err(CoreError::Corrupt { what: "a file", value: at }),
                Sent::Bytes(count) => self.sent += count as u64,
                Sent::Full => return Ok(false),
            }
        }
        Ok(self.sent == all)
    }
}

fn is_passing(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
