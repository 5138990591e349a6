//! The connections of one loop that are between two requests, by descriptor: a word for each, which the loop
//! writes with plain stores, at the start of a request and after its answer. Other threads of the process
//! read it, to take a connection from a loop that is blocked (rescue.rs).
//!
//! A number is a descriptor's number for as long as that is open, and then another one's. So the record beside
//! the word has the kernel's number of the socket (its cookie), written when the loop gets the connection.
//! JavaScript sees the words alone. A wrong word costs a connection of this loop at most: nothing is taken
//! without a matching cookie.

use super::acceptor::MAX_SOCKETS;
use crate::error::Result;
use crate::region::{Mapping, Region};
use crate::sync::AtomicU32;
use crate::sync::Ordering::Relaxed;
use crate::sys;
use crate::sys::fd::{AsFd, RawFd};

/// Descriptors below this number have a word.
pub const MAX_DESCRIPTORS: usize = 1 << 16;
const WORD_BYTES: usize = 4;
pub const WORDS_BYTES: usize = MAX_DESCRIPTORS * WORD_BYTES;
/// A record: the cookie in two words, the number of the listening socket, the time when the connection was
/// taken from another loop (0: it was not), and in two words the bytes that were read before.
const RECORD_BYTES: usize = 24;
/// The first three numbers are never those of connections. This one is 1 while the listener thread does not
/// check the words: the next request wakes it.
const ASLEEP_AT: usize = 0;
const FIRST_CONNECTION: usize = 3;
/// Connections in one call of poll(2).
const MAX_POLLED: usize = 4096;

/// An idle connection with input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    pub fd: RawFd,
    /// Number of the listening socket.
    pub socket: u32,
}

/// Time for which a connection stays where it is after it was taken.
#[derive(Debug, Clone, Copy)]
pub struct Rested {
    pub now_ms: u32,
    pub rest_ms: u32,
}

impl Rested {
    fn is_too_young(self, taken_at_ms: u32) -> bool {
        taken_at_ms != 0 && self.now_ms.wrapping_sub(taken_at_ms) < self.rest_ms
    }
}

#[derive(Debug)]
pub struct IdleConnections {
    mapping: Mapping,
    /// Behind the largest number so far.
    end: AtomicU32,
    /// Number with which the next search begins.
    next: AtomicU32,
}

impl IdleConnections {
    pub fn new() -> Result<IdleConnections> {
        let size_bytes = WORDS_BYTES + MAX_DESCRIPTORS * RECORD_BYTES;
        let fd = sys::sealed_memfd(c"manycore-idle", size_bytes as u64)?;
        let mapping = Mapping::of(fd.as_fd(), 0, size_bytes)?;
        Ok(IdleConnections { mapping, end: AtomicU32::new(0), next: AtomicU32::new(0) })
    }

    pub fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    #[cfg(test)]
    pub fn mapping_word(&self, fd: RawFd) -> &AtomicU32 {
        self.word(fd as usize)
    }

    fn word(&self, fd: usize) -> &AtomicU32 {
        self.mapping.word(fd * WORD_BYTES)
    }

    fn record(&self, fd: usize) -> [&AtomicU32; 6] {
        let at = WORDS_BYTES + fd * RECORD_BYTES;
        [0, 1, 2, 3, 4, 5].map(|word| self.mapping.word(at + word * WORD_BYTES))
    }

    /// For the loop's thread: a connection that it gets. `taken_at_ms` is not 0 when another loop had it.
    pub fn enter(&self, fd: RawFd, socket: u32, taken_at_ms: u32) {
        let Some(at) = index_of(fd) else { return };
        // The loop counts from 0, the kernel from the start of the connection. One that cannot be compared has no
        // cookie, and stays.
        let before = if taken_at_ms == 0 { Some(0) } else { read_before(fd) };
        let cookie = before.map_or(0, |_| sys::socket_cookie(fd));
        let [cookie_low, cookie_high] = halves(cookie);
        let [before_low, before_high] = halves(before.unwrap_or(0));
        let values = [cookie_low, cookie_high, socket, taken_at_ms, before_low, before_high];
        // Relaxed, here and below: the reader has made this thread stand (wake/pause.rs), or checks again
        // once it has.
        for (word, value) in self.record(at).into_iter().zip(values) {
            word.store(value, Relaxed);
        }
        self.word(at).store(0, Relaxed);
        self.end.fetch_max(at as u32 + 1, Relaxed);
    }

    pub fn set_asleep(&self, is_asleep: bool) {
        self.word(ASLEEP_AT).store(is_asleep.into(), Relaxed);
    }

    pub fn is_asleep(&self) -> bool {
        self.word(ASLEEP_AT).load(Relaxed) != 0
    }

    /// Connections that may be taken, by what this thread sees while the loop runs: at most `max`, and none
    /// that was taken after `rested`.
    pub fn candidates(&self, max: usize, rested: Rested) -> Vec<Candidate> {
        let end = (self.end.load(Relaxed) as usize).min(MAX_DESCRIPTORS);
        let count = end.saturating_sub(FIRST_CONNECTION);
        let first = self.next.load(Relaxed) as usize;
        let numbers = (0..count).map(|step| FIRST_CONNECTION + (first + step) % count);
        let mut fds: Vec<RawFd> = numbers
            .filter(|&at| noted(self.word(at).load(Relaxed)).is_some())
            .take(MAX_POLLED)
            .map(|at| at as RawFd)
            .collect();
        let last = fds.last().map_or(0, |&fd| fd as usize + 1 - FIRST_CONNECTION);
        self.next.store(if fds.len() < MAX_POLLED { 0 } else { last as u32 }, Relaxed);
        if fds.is_empty() {
            return Vec::new();
        }
        sys::retain_readable(&mut fds);
        fds.into_iter().filter_map(|fd| self.takeable(fd, rested)).take(max).collect()
    }

    /// The connection with this number, if nothing of its next request was read and some of it waits.
    /// Final only while the loop stands. Allocates nothing.
    pub fn takeable(&self, fd: RawFd, rested: Rested) -> Option<Candidate> {
        let at = index_of(fd)?;
        let read = noted(self.word(at).load(Relaxed))?;
        let [low, high, socket, taken_at_ms, before_low, before_high] =
            self.record(at).map(|word| word.load(Relaxed));
        let (cookie, before) = (whole(low, high), whole(before_low, before_high));
        if rested.is_too_young(taken_at_ms)
            || socket >= MAX_SOCKETS
            || cookie == 0
            || sys::socket_cookie(fd) != cookie
        {
            return None;
        }
        let received = sys::received(fd)?;
        (received.unread > 0 && received.read == before.wrapping_add(read.into()))
            .then_some(Candidate { fd, socket })
    }

    /// While the loop stands: a connection that was taken is the loop's no more.
    pub fn forget(&self, fd: RawFd) {
        if let Some(at) = index_of(fd) {
            self.word(at).store(0, Relaxed);
        }
    }
}

fn halves(value: u64) -> [u32; 2] {
    [value as u32, (value >> 32) as u32]
}

fn whole(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// Bytes that were read from a connection which nobody reads now. `None`: they change all the time, or it has ended.
fn read_before(fd: RawFd) -> Option<u64> {
    // Bytes that come between two calls of `received` are counted as read by one of them alone.
    (0..8).find_map(|_| {
        let first = sys::received(fd)?;
        (sys::received(fd)? == first).then_some(first.read)
    })
}

/// Bytes that were read by the end of the last request, of a word that says `idle`. A connection has no such
/// word once it has received 2 GiB.
fn noted(word: u32) -> Option<u32> {
    (word & 1 != 0).then_some(word >> 1)
}

fn index_of(fd: RawFd) -> Option<usize> {
    usize::try_from(fd).ok().filter(|at| (FIRST_CONNECTION..MAX_DESCRIPTORS).contains(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    fn at(now_ms: u32) -> Rested {
        Rested { now_ms, rest_ms: 1000 }
    }

    fn connected() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let client = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        (client, listener.accept().expect("accepted").0)
    }

    fn idle_after(table: &IdleConnections, server: &TcpStream, read: u32) {
        table.word(server.as_raw_fd() as usize).store(read << 1 | 1, Relaxed);
    }

    /// Candidates once the first has come; empty when none comes.
    fn found(table: &IdleConnections) -> Vec<Candidate> {
        for _ in 0..100 {
            let found = table.candidates(9, at(5000));
            if !found.is_empty() {
                return found;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        Vec::new()
    }

    #[test]
    fn a_connection_that_was_read_before_it_came_is_found_as_well() {
        let table = IdleConnections::new().expect("memfd");
        let (mut client, mut server) = connected();
        client.write_all(b"before").expect("written");
        server.read_exact(&mut [0; 6]).expect("read");
        table.enter(server.as_raw_fd(), 7, 1);
        idle_after(&table, &server, 0);
        client.write_all(b"next").expect("written");
        assert_eq!(found(&table), [Candidate { fd: server.as_raw_fd(), socket: 7 }]);
        server.read_exact(&mut [0; 2]).expect("read");
        assert!(found(&table).is_empty(), "a part of it was read");
        server.read_exact(&mut [0; 2]).expect("read");
        idle_after(&table, &server, 4);
        client.write_all(b"last").expect("written");
        assert_eq!(found(&table).len(), 1);
    }

    #[test]
    fn an_idle_connection_with_a_request_is_a_candidate() {
        let table = IdleConnections::new().expect("memfd");
        let (mut client, mut server) = connected();
        let fd = server.as_raw_fd();
        table.enter(fd, 3, 0);
        client.write_all(b"GET").expect("written");
        assert!(table.candidates(9, at(5000)).is_empty(), "the loop has not said that it is idle");
        idle_after(&table, &server, 0);
        assert_eq!(found(&table), [Candidate { fd, socket: 3 }]);
        server.read_exact(&mut [0; 3]).expect("read");
        idle_after(&table, &server, 3);
        assert!(table.candidates(9, at(5000)).is_empty(), "nothing waits");
        client.write_all(b"GET").expect("written");
        assert_eq!(found(&table).len(), 1);
        assert!(table.candidates(0, at(5000)).is_empty());
    }

    #[test]
    fn a_connection_of_which_a_byte_was_read_is_left_alone() {
        let table = IdleConnections::new().expect("memfd");
        let (mut client, mut server) = connected();
        table.enter(server.as_raw_fd(), 3, 0);
        idle_after(&table, &server, 0);
        client.write_all(b"GET").expect("written");
        assert_eq!(found(&table).len(), 1);
        server.read_exact(&mut [0; 1]).expect("read");
        assert!(table.takeable(server.as_raw_fd(), at(5000)).is_none());
    }

    #[test]
    fn a_number_that_belongs_to_another_socket_now_is_left_alone() {
        let table = IdleConnections::new().expect("memfd");
        let (_first_client, first) = connected();
        let fd = first.as_raw_fd();
        table.enter(fd, 3, 0);
        let (mut client, second) = connected();
        client.write_all(b"GET").expect("written");
        // SAFETY: both are open; the number stays the first stream's.
        assert_eq!(unsafe { libc::dup2(second.as_raw_fd(), fd) }, fd);
        idle_after(&table, &first, 0);
        assert!(found(&table).is_empty());
        table.enter(fd, 3, 0);
        idle_after(&table, &first, 0);
        assert_eq!(found(&table).len(), 1);
    }

    #[test]
    fn a_connection_rests_after_it_was_taken_and_one_that_its_client_closes_stays() {
        let table = IdleConnections::new().expect("memfd");
        let (mut client, server) = connected();
        let fd = server.as_raw_fd();
        table.enter(fd, 3, 4500);
        idle_after(&table, &server, 0);
        client.write_all(b"GET").expect("written");
        assert!(found(&table).is_empty());
        assert!(table.takeable(fd, at(5500)).is_some());
        client.shutdown(Shutdown::Write).expect("closed");
        assert!(found(&table).is_empty());
        assert!(table.takeable(fd, at(6500)).is_none());
        table.forget(fd);
        assert!(noted(table.word(fd as usize).load(Relaxed)).is_none());
    }

    #[test]
    fn numbers_without_a_word_and_unix_sockets_are_ignored() {
        let table = IdleConnections::new().expect("memfd");
        for fd in [-1, 0, 1, 2, MAX_DESCRIPTORS as RawFd, RawFd::MAX] {
            table.enter(fd, 0, 0);
            assert!(table.takeable(fd, at(5000)).is_none());
        }
        let (mut near, far) = std::os::unix::net::UnixStream::pair().expect("a pair");
        near.write_all(b"GET").expect("written");
        table.enter(far.as_raw_fd(), 0, 0);
        table.word(far.as_raw_fd() as usize).store(1, Relaxed);
        assert!(table.candidates(9, at(5000)).is_empty());
    }
}
