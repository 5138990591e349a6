//! Clients that stay with one loop of a server: by their address, or by a value in the first request of a
//! connection. The router (`router.rs`) sends each connection over the control socket of the process
//! that the loop is in, with the number of the loop.
//!
//! A value names a loop when that loop has made it (`mark_of`): the cookie of the server, an id from
//! `stickyId`. Any other value belongs to the live loop with the highest hash of value and row
//! (rendezvous hashing), so that the end of a loop moves only its own clients. A connection without a
//! value goes to the least loaded loop.
//!
//! The router holds both ends of each control socket. When a process leaves, no connection is sent to it
//! any more, and the router takes back those that it has not taken.
//!
//! Long (over 400 lines) with its tests.

use super::board::Board;
use super::loop_inbox::{load_of, now_ms};
use super::placement::{self, Load, Policy, Turn};
use crate::sync::AtomicU32;
use crate::sync::Ordering::Relaxed;
use crate::sys::fd::{AsFd, OwnedFd};
use crate::sys::{self, Accepted, Passed};
use std::net::{IpAddr, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Part of a connection that selects its loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// Address of the client, without its port.
    Address,
    Cookie(String),
    Header(String),
    /// Parameter in the query of the request's target.
    Query(String),
}

impl Key {
    /// `None` for an unknown kind.
    pub fn named(kind: &str, name: String) -> Option<Key> {
        match kind {
            "address" => Some(Key::Address),
            "cookie" => Some(Key::Cookie(name)),
            "header" => Some(Key::Header(name)),
            "query" => Some(Key::Query(name)),
            _ => None,
        }
    }
}

/// Value of a connection for the choice of its loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    Value(Vec<u8>),
    Any,
}

/// Control socket of one process.
struct Target {
    process: u32,
    /// Number of the listening socket in all processes.
    socket: u32,
    near: OwnedFd,
    /// The end from which the process receives.
    far: OwnedFd,
}

#[derive(Default)]
struct Targets {
    live: Vec<Arc<Target>>,
    /// Targets of processes that leave, until the router has taken back what is in them.
    left: Vec<Arc<Target>>,
}

/// The processes of one server.
pub struct Sticky {
    board: Arc<Board>,
    key: Key,
    targets: Mutex<Targets>,
    /// Row whose turn it is among equally loaded ones.
    turn: AtomicU32,
}

/// A loop that takes connections.
struct Candidate<'a> {
    target: &'a Arc<Target>,
    index: u32,
    load: Load,
}

impl Sticky {
    pub fn new(board: Arc<Board>, key: Key) -> Sticky {
        Sticky { board, key, targets: Mutex::default(), turn: AtomicU32::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, Targets> {
        self.targets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the control socket of `process`, which accepts from `far` as from the listening socket with
    /// this number. Neither end blocks.
    pub fn add(&self, process: u32, socket: u32, near: OwnedFd, far: OwnedFd) {
        if process < self.board.processes() {
            let target = Target { process, socket, near, far };
            self.lock().live.push(Arc::new(target));
        }
    }

    /// Sends nothing to `process` any more. The caller wakes the router, which calls `take_back`.
    pub fn leave(&self, process: u32) {
        let mut targets = self.lock();
        let (left, live) = targets.live.drain(..).partition(|target| target.process == process);
        targets.live = live;
        targets.left.extend::<Vec<_>>(left);
    }

    /// Sends nothing to any process any more.
    pub fn leave_all(&self) {
        let Targets { live, left } = &mut *self.lock();
        left.append(live);
    }

    /// True: `take_back` has returned all.
    pub fn has_left(&self) -> bool {
        self.lock().left.is_empty()
    }

    /// For the router: takes connections back that processes which leave have not taken.
    pub fn take_back(&self) -> Vec<OwnedFd> {
        let mut connections = Vec::new();
        self.lock().left.retain(|target| {
            loop {
                match sys::receive_connection(target.far.as_fd()) {
                    Accepted::Connection(fd) => connections.push(fd),
                    Accepted::Again => {}
                    Accepted::Empty | Accepted::Failed(_) => return false,
                    Accepted::Exhausted => return true, // later, when a descriptor is closed
                }
            }
        });
        connections
    }

    /// True: the choice needs the head of the first request.
    pub fn needs_head(&self) -> bool {
        self.key != Key::Address
    }

    /// The value of a connection whose first bytes are `bytes`; `None`: more bytes are needed.
    pub fn wanted(&self, stream: &TcpStream, bytes: &[u8]) -> Option<Wanted> {
        match &self.key {
            Key::Address => Some(address_of(stream)),
            _ if bytes.first().is_some_and(|&first| first == TLS_HANDSHAKE) => {
                Some(address_of(stream))
            }
            key => value_in(key, bytes),
        }
    }

    /// Sends a connection to its loop. False: it has to wait for room, or for a loop.
    pub fn send(&self, stream: &TcpStream, wanted: &Wanted) -> bool {
        let targets = self.lock();
        let loads = self.candidates(&targets.live);
        let Some(chosen) = self.choose(&loads, wanted) else { return false };
        if chosen.load.open >= chosen.load.limit {
            return false;
        }
        let control_socket = chosen.target.near.as_fd();
        let loop_index = u8::try_from(chosen.index).unwrap_or(u8::MAX);
        sys::send_numbered(control_socket, loop_index, stream.as_fd()) != Passed::Full
    }

    fn candidates<'a>(&self, live: &'a [Arc<Target>]) -> Vec<Candidate<'a>> {
        let now = now_ms();
        let of_target = |target: &'a Arc<Target>| {
            let Target { process, socket, .. } = **target;
            (0..self.board.loops()).filter_map(move |index| {
                let load = load_of(&self.board, process, index, socket, now)?;
                Some(Candidate { target, index, load })
            })
        };
        live.iter().flat_map(of_target).collect()
    }

    fn choose<'a, 'b>(
        &self,
        loops: &'b [Candidate<'a>],
        wanted: &Wanted,
    ) -> Option<&'b Candidate<'a>> {
        match wanted {
            Wanted::Value(value) => {
                let made_by = mark_of(value);
                let hash = hash_of(value);
                let maker = loops.iter().find(|each| Some(each.load.row) == made_by);
                maker.or_else(|| loops.iter().max_by_key(|each| rank(hash, each.load.row)))
            }
            Wanted::Any => {
                // Relaxed: only the router's thread uses it.
                let first = self.turn.fetch_add(1, Relaxed) as usize % loops.len().max(1);
                let turn = Turn { row: 0, rows: 1 };
                let score =
                    |each: &Candidate<'_>| placement::score(Policy::LeastLoaded, turn, each.load);
                let scores: Vec<_> = loops.iter().map(score).collect();
                let open: Vec<_> = loops.iter().map(|each| Some(each.load.open)).collect();
                let (at, _) =
                    placement::best(&scores, first).or_else(|| placement::best(&open, first))?;
                loops.get(at)
            }
        }
    }
}

/// First byte of a TLS connection: its requests cannot be read.
const TLS_HANDSHAKE: u8 = 22;

fn address_of(stream: &TcpStream) -> Wanted {
    match stream.peer_addr().map(|address| address.ip().to_canonical()) {
        Ok(IpAddr::V4(address)) => Wanted::Value(address.octets().to_vec()),
        Ok(IpAddr::V6(address)) => Wanted::Value(address.octets().to_vec()),
        Err(_) => Wanted::Any, // it is gone
    }
}

/// The value of `key` in the head of a request; `None`: the head is not complete, and has no value yet.
fn value_in(key: &Key, bytes: &[u8]) -> Option<Wanted> {
    let mut lines = bytes.split_inclusive(|&byte| byte == b'\n');
    let mut next_line =
        || lines.next().and_then(|line| line.strip_suffix(b"\n")).map(<[u8]>::trim_ascii_end);
    let mut request_line = next_line()?;
    while request_line.is_empty() {
        request_line = next_line()?; // RFC 9112, section 2.2
    }
    if let Key::Query(name) = key {
        return Some(value_or_any(query_value(request_line, name)));
    }
    loop {
        let line = next_line()?;
        if line.is_empty() {
            return Some(Wanted::Any);
        }
        let Some(at) = line.iter().position(|&byte| byte == b':') else { continue };
        let (field, value) = (&line[..at], line[at + 1..].trim_ascii());
        let found = match key {
            Key::Header(name) if field.eq_ignore_ascii_case(name.as_bytes()) => Some(value),
            Key::Cookie(name) if field.eq_ignore_ascii_case(b"cookie") => {
                pair_in(value, b';', name)
            }
            _ => None,
        };
        if found.is_some() {
            return Some(value_or_any(found));
        }
    }
}

fn value_or_any(value: Option<&[u8]>) -> Wanted {
    value.filter(|value| !value.is_empty()).map_or(Wanted::Any, |value| Wanted::Value(value.into()))
}

fn query_value<'a>(request_line: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let target = request_line.split(|&byte| byte == b' ').nth(1)?;
    let start = target.iter().position(|&byte| byte == b'?')?;
    pair_in(&target[start + 1..], b'&', name)
}

/// The value of the first `name=value` in a list.
fn pair_in<'a>(list: &'a [u8], separator: u8, name: &str) -> Option<&'a [u8]> {
    let value_of = |pair: &'a [u8]| pair.trim_ascii().strip_prefix(name.as_bytes());
    list.split(|&byte| byte == separator)
        .filter_map(value_of)
        .find_map(|rest| rest.strip_prefix(b"="))
}

/// Row of the loop that has made a value: `mc`, the number of its row, `-`, any text.
fn mark_of(value: &[u8]) -> Option<u32> {
    let rest = value.strip_prefix(b"mc")?;
    let end = rest.iter().position(|&byte| byte == b'-')?;
    std::str::from_utf8(&rest[..end]).ok()?.parse().ok()
}

/// FNV-1a.
fn hash_of(value: &[u8]) -> u64 {
    let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    value.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Rank of a row for a value: the finalizer of splitmix64 over both.
fn rank(hash: u64, row: u32) -> u64 {
    let mixed = hash ^ (u64::from(row) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accept::board::{state, word};
    use std::collections::BTreeMap;

    const SOCKET: u32 = 3;

    struct Served {
        sticky: Sticky,
        far: Vec<OwnedFd>,
        peer: TcpStream,
        _listener: std::net::TcpListener,
    }

    /// Two loops in each of `processes` processes; all are ready.
    fn serve(processes: u32, key: Key) -> Served {
        let (board, _) = Board::create(processes, 2).expect("memfd");
        let sticky = Sticky::new(Arc::new(board), key);
        let mut far = Vec::new();
        for process in 0..processes {
            for index in 0..2 {
                let set = |offset, value| {
                    sticky.board.word(process, index, offset).store(value, Relaxed);
                };
                set(word::STATE, state::READY);
                set(word::LISTENS, 1 << SOCKET);
                set(word::LIMIT, 100);
            }
            let [near, other] = sys::socket_pair().expect("a pair");
            far.push(sys::duplicate(other.as_fd()).expect("dup"));
            sticky.add(process, SOCKET, near, other);
        }
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let peer = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        Served { sticky, far, peer, _listener: listener }
    }

    impl Served {
        /// Row of the loop that gets a connection with this value.
        fn row_of(&self, wanted: &Wanted) -> Option<u32> {
            if !self.sticky.send(&self.peer, wanted) {
                return None;
            }
            let got = |far: &OwnedFd| match sys::receive_numbered(far.as_fd()) {
                (index, Accepted::Connection(_)) => Some(u32::from(index)),
                _ => None,
            };
            let mut found = self.far.iter().enumerate();
            found.find_map(|(process, far)| got(far).map(|index| process as u32 * 2 + index))
        }

        fn set(&self, row: u32, offset: usize, value: u32) {
            self.sticky.board.word(row / 2, row % 2, offset).store(value, Relaxed);
        }
    }

    fn value(text: &str) -> Wanted {
        Wanted::Value(text.into())
    }

    #[test]
    fn values_are_spread_and_the_end_of_a_loop_moves_only_its_own() {
        let served = serve(2, Key::Address);
        let names: Vec<_> = (0..400).map(|number| format!("client {number}")).collect();
        let place = || -> Vec<_> {
            names.iter().map(|name| served.row_of(&value(name)).expect("a loop")).collect()
        };
        let before = place();
        assert_eq!(place(), before);
        let mut counts = BTreeMap::new();
        for row in &before {
            *counts.entry(*row).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 4);
        assert!(counts.values().all(|&count| count > 60), "{counts:?}");
        served.set(2, word::STATE, state::DRAINING);
        let after = place();
        assert!(!after.contains(&2));
        for (one, other) in before.iter().zip(&after).filter(|(one, _)| **one != 2) {
            assert_eq!(one, other);
        }
        served.set(2, word::STATE, state::READY);
        assert_eq!(place(), before);
        served.sticky.leave(0);
        assert!(place().iter().all(|&row| row >= 2), "its process leaves");
    }

    #[test]
    fn a_value_that_a_loop_has_made_leads_to_it_while_it_lives() {
        let served = serve(2, Key::Address);
        for row in 0..4 {
            for number in 0..20 {
                assert_eq!(served.row_of(&value(&format!("mc{row}-{number}"))), Some(row));
            }
        }
        served.set(1, word::STATE, state::FREE);
        let rows: std::collections::BTreeSet<_> =
            (0..40).map(|number| served.row_of(&value(&format!("mc1-{number}")))).collect();
        assert_eq!(rows, [0, 2, 3].map(Some).into());
        for odd in ["mc-", "mc1", "mc99999999999-", "mc-1-", "mc900-"] {
            assert!(served.row_of(&value(odd)).is_some(), "{odd}");
        }
    }

    #[test]
    fn a_connection_without_a_value_goes_to_the_least_loaded_loop() {
        let served = serve(2, Key::Address);
        for row in 0..3 {
            served.set(row, word::OPEN, 5);
        }
        assert_eq!(served.row_of(&Wanted::Any), Some(3));
        served.set(3, word::OPEN, 5);
        let rows: std::collections::BTreeSet<_> =
            (0..4).map(|_| served.row_of(&Wanted::Any)).collect();
        assert_eq!(rows.len(), 4, "equals in turn");
    }

    #[test]
    fn a_connection_waits_for_a_full_loop_and_for_any_loop() {
        let served = serve(1, Key::Address);
        let row = served.row_of(&value("a")).expect("a loop");
        served.set(row, word::OPEN, 100);
        assert_eq!(served.row_of(&value("a")), None);
        served.set(row, word::OPEN, 99);
        assert_eq!(served.row_of(&value("a")), Some(row));
        for each in 0..2 {
            served.set(each, word::STATE, state::DRAINING);
        }
        assert_eq!(served.row_of(&value("a")), None);
        assert_eq!(served.row_of(&Wanted::Any), None);
    }

    #[test]
    fn connections_that_a_leaving_process_has_not_taken_come_back_once() {
        let served = serve(1, Key::Address);
        for _ in 0..3 {
            assert!(served.sticky.send(&served.peer, &Wanted::Any));
        }
        assert!(matches!(sys::receive_connection(served.far[0].as_fd()), Accepted::Connection(_)));
        assert!(served.sticky.take_back().is_empty());
        served.sticky.leave(0);
        assert_eq!(served.sticky.take_back().len(), 2);
        assert!(served.sticky.take_back().is_empty());
        assert!(!served.sticky.send(&served.peer, &Wanted::Any));
        let served = serve(2, Key::Address);
        for row in 0..4 {
            assert!(served.sticky.send(&served.peer, &value(&format!("mc{row}-"))));
        }
        served.sticky.leave(0);
        served.sticky.leave(1);
        assert_eq!(served.sticky.take_back().len(), 4, "of both");
    }

    #[test]
    fn the_value_comes_from_the_head_of_the_first_request() {
        let head = b"\r\nGET /a?b=1&sid=x-y&sid=z HTTP/1.1\r\nHost: a\r\nX-User:  bob \r\n\
            Cookie: no=1; yes=2\r\nsid: 3\r\n\r\nsid=body";
        let query = |name: &str| Key::Query(name.into());
        let header = |name: &str| Key::Header(name.into());
        let cookie = |name: &str| Key::Cookie(name.into());
        for (key, expected) in [
            (query("sid"), value("x-y")),
            (query("id"), Wanted::Any),
            (header("x-user"), value("bob")),
            (header("x-none"), Wanted::Any),
            (cookie("yes"), value("2")),
            (cookie("es"), Wanted::Any),
            (cookie("sid"), Wanted::Any),
        ] {
            assert_eq!(value_in(&key, head), Some(expected), "{key:?}");
        }
        assert_eq!(value_in(&query("sid"), b"GET /?sid=1 HT"), None);
        assert_eq!(value_in(&query("sid"), b"GET /?sid= HTTP/1.1\n"), Some(Wanted::Any));
        assert_eq!(value_in(&query("sid"), b"GET\n"), Some(Wanted::Any));
        assert_eq!(value_in(&cookie("a"), b"GET / HTTP/1.1\r\nHost: a\r\n"), None);
        assert_eq!(value_in(&cookie("a"), b"\r\n"), None);
    }

    #[test]
    fn a_client_that_speaks_tls_is_known_by_its_address() {
        let served = serve(1, Key::Cookie("a".into()));
        let wanted = |bytes: &[u8]| served.sticky.wanted(&served.peer, bytes);
        assert_eq!(wanted(&[22, 3, 1]), Some(Wanted::Value(vec![127, 0, 0, 1])));
        assert_eq!(wanted(b"GET"), None);
        assert!(served.sticky.needs_head());
        let by_address = serve(1, Key::Address);
        assert!(!by_address.sticky.needs_head());
        let own = by_address.sticky.wanted(&by_address.peer, b"");
        assert_eq!(own, Some(Wanted::Value(vec![127, 0, 0, 1])));
    }
}
