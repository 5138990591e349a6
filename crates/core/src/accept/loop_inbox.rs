//! The inbox of one event loop at its process's listener thread: accepted connections that the loop has
//! not taken yet, and the doorbell that wakes it.
//!
//! Both sides are in one process, so a mutex and a queue are enough. The lock is held only while a few
//! descriptors are moved. The bell is rung only when the queue was empty, because a loop that was rung
//! takes all connections, or rings itself again.
//!
//! Where a loop accepts by itself (direct.rs), the sockets are in a poller that the loop watches. The
//! listener thread adds and removes them, even while the loop is blocked.
//!
//! Long (over 400 lines) with its tests.

use super::board::{Board, state, word};
use super::placement::Load;
use super::rescue::LoopThread;
use super::socket::Socket;
use crate::error::Result;
use crate::sync::AtomicU32;
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed};
use crate::sys::fd::{AsFd, BorrowedFd, OwnedFd};
use crate::sys::{self, Accepted, Poller, Trigger};
use crate::wake::doorbell::Doorbell;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An accepted connection.
#[derive(Debug)]
pub struct AcceptedConnection {
    /// The number of the listening socket.
    pub socket: u32,
    pub fd: OwnedFd,
    /// Time when it was placed, by `sys::now_ms`.
    pub at_ms: u32,
    /// Time when it was taken from another loop, 0 for a new one.
    pub taken_at_ms: u32,
}

/// Returns how long a loop has slept since it started, in ms; called from other threads.
pub type IdleClock = Box<dyn Fn() -> u64 + Send + Sync>;

pub struct LoopInbox {
    board: Arc<Board>,
    process: u32,
    index: u32,
    bell: Doorbell,
    idle_ms: IdleClock,
    /// `None`: its connections are not taken from it.
    thread: Option<LoopThread>,
    queue: Mutex<VecDeque<AcceptedConnection>>,
    /// Polls the sockets of `direct`.
    poller: Poller,
    direct: Mutex<DirectSockets>,
}

/// The sockets from which the loop accepts by itself.
#[derive(Default)]
struct DirectSockets {
    sockets: Vec<Arc<Socket>>,
    /// Index of the socket to begin with, so that none waits behind another for ever.
    turn: usize,
}

impl LoopInbox {
    /// Creates the inbox of row `[process][index]`; `bell` wakes its loop. `idle_ms` is called only
    /// while the listener thread holds the inbox.
    pub fn new(
        board: Arc<Board>,
        process: u32,
        index: u32,
        bell: Doorbell,
        idle_ms: IdleClock,
        thread: Option<LoopThread>,
    ) -> Result<LoopInbox> {
        let (queue, direct) = (Mutex::default(), Mutex::default());
        Ok(LoopInbox {
            board,
            process,
            index,
            bell,
            idle_ms,
            thread,
            queue,
            poller: Poller::new()?,
            direct,
        })
    }

    pub fn bell(&self) -> &Doorbell {
        &self.bell
    }

    pub fn thread(&self) -> Option<&LoopThread> {
        self.thread.as_ref()
    }

    pub fn index(&self) -> u32 {
        self.index
    }

    pub fn word(&self, offset: usize) -> &AtomicU32 {
        self.board.word(self.process, self.index, offset)
    }

    /// True: the loop takes connections of this socket.
    pub fn listens_to(&self, socket: u32) -> bool {
        // Acquire pairs with the loop's store: it is ready for the sockets in its row.
        self.listens() & (1 << socket) != 0
    }

    /// The sockets whose connections the loop takes, one bit each.
    pub fn listens(&self) -> u32 {
        let is_ready = self.word(word::STATE).load(Acquire) == state::READY;
        if is_ready { self.word(word::LISTENS).load(Acquire) } else { 0 }
    }

    /// The sockets for whose connections a loop that drains still has servers, until it leaves
    /// (`Acceptor::try_leave`).
    fn drains_for(&self) -> u32 {
        // Acquire: as in `listens`.
        let is_draining = self.word(word::STATE).load(Acquire) == state::DRAINING;
        if is_draining { self.word(word::LISTENS).load(Acquire) } else { 0 }
    }

    pub fn drains(&self) -> bool {
        self.drains_for() != 0
    }

    pub fn drains_with(&self, socket: u32) -> bool {
        self.drains_for() & (1 << socket) != 0
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<AcceptedConnection>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection and wakes the loop when the queue was empty.
    pub fn put(&self, connection: AcceptedConnection) {
        // AcqRel: the loop subtracts closed connections; the word is a counter for both.
        self.word(word::OPEN).fetch_add(1, AcqRel);
        let mut queue = self.lock();
        queue.push_back(connection);
        self.publish(&queue);
        let must_ring = queue.len() == 1;
        drop(queue);
        if must_ring {
            self.bell.ring();
        }
    }

    /// For the loop: takes the next connection.
    pub fn take(&self) -> Option<AcceptedConnection> {
        let mut queue = self.lock();
        let connection = queue.pop_front();
        self.publish(&queue);
        connection
    }

    /// Readable while the loop accepts by itself and a connection waits.
    pub fn poller(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }

    fn lock_direct(&self) -> MutexGuard<'_, DirectSockets> {
        self.direct.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For the listener thread: lets the loop accept by itself from those of `sockets` that it listens
    /// to, and from no others.
    pub fn make_direct(&self, sockets: &[Arc<Socket>]) {
        let is_in = |socket: &Arc<Socket>, of: &[Arc<Socket>]| {
            of.iter().any(|other| Arc::ptr_eq(other, socket))
        };
        let mut direct = self.lock_direct();
        direct.sockets.retain(|socket| {
            let stays = is_in(socket, sockets) && self.listens_to(socket.number());
            if !stays {
                self.poller.remove(socket.as_fd());
            }
            stays
        });
        for socket in sockets {
            if !is_in(socket, &direct.sockets)
                && self.listens_to(socket.number())
                && self.poller.add(socket.as_fd(), 0, Trigger::Level).is_ok()
            {
                direct.sockets.push(Arc::clone(socket));
            }
        }
        // Relaxed: for the status. Stored only when it changes: the loop's processor caches this line,
        // too.
        let (shown, is_direct) = (self.word(word::DIRECT), u32::from(!direct.sockets.is_empty()));
        if shown.load(Relaxed) != is_direct {
            shown.store(is_direct, Relaxed);
        }
    }

    /// For the loop: accepts a connection by itself when one waits and the loop may have one more.
    pub fn accept(&self) -> Option<(u32, OwnedFd)> {
        let mut direct = self.lock_direct();
        let count = direct.sockets.len();
        let first = direct.turn;
        (0..count).map(|step| (first + step) % count).find_map(|at| {
            let socket = Arc::clone(&direct.sockets[at]);
            let fd = self.accept_from(&socket)?;
            direct.turn = at + 1;
            Some((socket.number(), fd))
        })
    }

    fn accept_from(&self, socket: &Socket) -> Option<OwnedFd> {
        let open = self.word(word::OPEN);
        // Relaxed: this thread writes both, except for a connection that is being put in at this
        // moment.
        let is_full = open.load(Relaxed) >= self.word(word::LIMIT).load(Relaxed);
        if is_full || !self.listens_to(socket.number()) {
            return None;
        }
        let fd = loop {
            match socket.accept() {
                Accepted::Connection(fd) => break fd,
                Accepted::Again => {}
                // The listener thread detects that waiting connections are not taken, and finds out
                // why.
                Accepted::Exhausted => {
                    // Relaxed: a counter.
                    self.word(word::EXHAUSTED).fetch_add(1, Relaxed);
                    return None;
                }
                Accepted::Empty | Accepted::Failed(_) => return None,
            }
        };
        // AcqRel: see `put`.
        open.fetch_add(1, AcqRel);
        // Relaxed: a counter.
        self.word(word::PLACED).fetch_add(1, Relaxed);
        Some(fd)
    }

    /// For the listener thread: reclaims all untaken connections, to place them at other loops.
    pub fn reclaim(&self) -> Vec<AcceptedConnection> {
        let mut queue = self.lock();
        let connections: Vec<_> = queue.drain(..).collect();
        self.publish(&queue);
        drop(queue);
        self.word(word::OPEN).fetch_sub(connections.len() as u32, AcqRel);
        connections
    }

    /// For the listener thread: reclaims untaken connections that were placed at least `age_ms` ago and
    /// speak HTTP.
    pub fn reclaim_old(&self, age_ms: u32, now_ms: u32) -> Vec<AcceptedConnection> {
        let speaks_http = self.word(word::SPEAKS_HTTP).load(Relaxed);
        let mut queue = self.lock();
        let is_old = |connection: &AcceptedConnection| {
            self::age_ms(connection.at_ms.max(1), now_ms) >= age_ms
                && speaks_http & (1 << connection.socket) != 0
        };
        let (old, young): (Vec<_>, Vec<_>) = queue.drain(..).partition(is_old);
        *queue = young.into();
        self.publish(&queue);
        drop(queue);
        self.word(word::OPEN).fetch_sub(old.len() as u32, AcqRel);
        old
    }

    /// Time for which the loop has slept since it started. May be called under the same condition as
    /// `publish_idle`.
    pub fn slept_ms(&self) -> u64 {
        (self.idle_ms)()
    }

    /// Writes into the row how long the loop has slept. Pings a loop that has not slept since the last
    /// update, also when it holds no connection.
    pub fn publish_idle(&self, now_ms: u32) {
        // Relaxed: for status and plans. Cut to 32 bits: readers take differences.
        let slept = self.slept_ms() as u32;
        let before = self.word(word::IDLE_MS).swap(slept, Relaxed);
        let was_written = self.word(word::IDLE_WRITTEN_AT).swap(now_ms.max(1), Relaxed) != 0;
        if was_written && slept == before {
            self.ping_always(now_ms);
        }
    }

    pub fn is_any_untaken(&self) -> bool {
        !self.lock().is_empty()
    }

    /// True: a connection of this socket waits to be taken.
    pub fn has_untaken(&self, socket: u32) -> bool {
        self.lock().iter().any(|connection| connection.socket == socket)
    }

    /// Time for which the loop has left a connection untaken or a ping unanswered.
    pub fn silent_ms(&self, now_ms: u32) -> u32 {
        let age = |offset| age_ms(self.word(offset).load(Relaxed), now_ms);
        age(word::UNTAKEN_SINCE).max(age(word::PINGED_SINCE))
    }

    /// Pings the loop, unless a ping is unanswered already or the loop holds no connection.
    pub fn ping(&self, now_ms: u32) {
        if self.is_in_use() {
            self.ping_always(now_ms);
        }
    }

    fn ping_always(&self, now_ms: u32) {
        // Relaxed: hints for placement and status.
        let pinged = self.word(word::PINGED_SINCE);
        if pinged.load(Relaxed) == 0 {
            pinged.store(now_ms.max(1), Relaxed);
            self.bell.ring();
        }
    }

    /// True: the loop holds connections.
    pub fn is_in_use(&self) -> bool {
        self.word(word::OPEN).load(Relaxed) > 0
    }

    /// For the loop, whenever it was rung: answers the ping, if there is one.
    pub fn answer_ping(&self) {
        let pinged = self.word(word::PINGED_SINCE);
        let since = pinged.load(Relaxed);
        if since != 0 {
            pinged.store(0, Relaxed);
            self.word(word::LAG_MS).store(age_ms(since, now_ms()), Relaxed);
        }
    }

    /// Called under the lock, so that the words belong together.
    fn publish(&self, queue: &VecDeque<AcceptedConnection>) {
        let since = queue.front().map_or(0, |oldest| oldest.at_ms.max(1));
        // Relaxed: hints for placement and status.
        self.word(word::UNTAKEN).store(queue.len() as u32, Relaxed);
        self.word(word::UNTAKEN_SINCE).store(since, Relaxed);
    }
}

/// Load in row `[process][index]`; `None` when its loop takes no connection of `socket`.
pub fn load_of(board: &Board, process: u32, index: u32, socket: u32, now_ms: u32) -> Option<Load> {
    let read = |offset| board.word(process, index, offset).load(Acquire);
    if read(word::STATE) != state::READY || read(word::LISTENS) & (1 << socket) == 0 {
        return None;
    }
    Some(Load {
        row: process * board.loops() + index,
        open: read(word::OPEN),
        in_flight: read(word::IN_FLIGHT),
        limit: read(word::LIMIT),
        silent_ms: age_ms(read(word::UNTAKEN_SINCE), now_ms)
            .max(age_ms(read(word::PINGED_SINCE), now_ms)),
    })
}

/// Age of a time by `sys::now_ms`, 0 for none. A time ahead of now was written just now, by a process
/// that read its clock later.
fn age_ms(since_ms: u32, now_ms: u32) -> u32 {
    let age = now_ms.wrapping_sub(since_ms);
    if since_ms == 0 || age > u32::MAX / 2 { 0 } else { age }
}

/// The current time, for `AcceptedConnection::at_ms`.
pub fn now_ms() -> u32 {
    sys::now_ms()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    fn inbox() -> LoopInbox {
        let (board, _) = Board::create(1, 1).expect("memfd");
        let bell = Doorbell::new().expect("eventfd");
        LoopInbox::new(Arc::new(board), 0, 0, bell, Box::new(|| (1 << 32) + 7), None)
            .expect("epoll")
    }

    fn connection(at_ms: u32) -> AcceptedConnection {
        let (fd, _) = UnixStream::pair().expect("a pair");
        AcceptedConnection { socket: 3, fd: fd.into(), at_ms, taken_at_ms: 0 }
    }

    #[test]
    fn connections_come_in_order_and_ring_once() {
        let inbox = inbox();
        inbox.put(connection(10));
        inbox.put(connection(11));
        assert!(inbox.bell().clear());
        assert_eq!(inbox.word(word::OPEN).load(Relaxed), 2);
        assert_eq!(inbox.silent_ms(15), 5);
        assert_eq!(inbox.take().expect("the first").at_ms, 10);
        assert_eq!(inbox.silent_ms(15), 4);
        assert_eq!(inbox.take().expect("the second").at_ms, 11);
        assert!(inbox.take().is_none());
        assert_eq!(inbox.silent_ms(15), 0);
        assert!(!inbox.bell().clear());
        inbox.put(connection(12));
        assert!(inbox.bell().clear());
    }

    #[test]
    fn a_loop_with_connections_is_pinged_and_silent_until_it_answers() {
        let inbox = inbox();
        inbox.ping(10);
        assert!(!inbox.bell().clear(), "an idle loop is left alone");
        inbox.word(word::OPEN).store(1, Relaxed);
        inbox.ping(10);
        assert!(inbox.bell().clear());
        inbox.ping(20);
        assert!(!inbox.bell().clear(), "asked once");
        assert_eq!(inbox.silent_ms(25), 15);
        inbox.answer_ping();
        assert_eq!(inbox.silent_ms(25), 0);
        let now = now_ms();
        inbox.ping(now - 300);
        inbox.answer_ping();
        let lag_ms = inbox.word(word::LAG_MS).load(Relaxed);
        assert!(lag_ms >= 300, "{lag_ms}");
        inbox.answer_ping();
        assert_eq!(inbox.word(word::LAG_MS).load(Relaxed), lag_ms, "nothing was asked");
    }

    #[test]
    fn reclaimed_connections_are_not_counted() {
        let inbox = inbox();
        inbox.put(connection(10));
        inbox.put(connection(11));
        assert_eq!(inbox.reclaim().len(), 2);
        assert_eq!(inbox.word(word::OPEN).load(Relaxed), 0);
        assert!(inbox.take().is_none());
    }

    #[test]
    fn only_old_connections_that_speak_http_are_reclaimed_to_be_answered() {
        let inbox = inbox();
        for at_ms in [10, 90] {
            inbox.put(connection(at_ms));
        }
        assert!(inbox.reclaim_old(50, 100).is_empty(), "not known to speak HTTP");
        inbox.word(word::SPEAKS_HTTP).store(1 << 3, Relaxed);
        assert_eq!(inbox.reclaim_old(50, 100).len(), 1);
        assert_eq!(inbox.word(word::OPEN).load(Relaxed), 1);
        assert_eq!(inbox.take().expect("the young one").at_ms, 90);
    }

    #[test]
    fn a_loop_accepts_by_itself_what_it_listens_to_and_as_much_as_it_may_hold() {
        let inbox = inbox();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("non-blocking");
        let connect = || std::net::TcpStream::connect(listener.local_addr().expect("bound"));
        let _clients = [connect(), connect(), connect()];
        let socket =
            Arc::new(Socket::new(3, listener.try_clone().expect("dup").into()).expect("a socket"));
        inbox.word(word::LIMIT).store(2, Relaxed);
        let read = |offset| inbox.word(offset).load(Relaxed);
        inbox.make_direct(std::slice::from_ref(&socket));
        assert!(
            !sys::is_readable(inbox.poller()) && inbox.accept().is_none(),
            "it does not listen"
        );
        inbox.word(word::STATE).store(state::READY, Relaxed);
        inbox.word(word::LISTENS).store(1 << 3, Relaxed);
        for _ in 0..2 {
            inbox.make_direct(std::slice::from_ref(&socket));
            assert!(sys::is_readable(inbox.poller()) && read(word::DIRECT) == 1);
        }
        assert!(inbox.accept().is_some_and(|(number, _)| number == 3) && inbox.accept().is_some());
        assert!(inbox.accept().is_none(), "the third is too much");
        assert_eq!((read(word::OPEN), read(word::PLACED)), (2, 2));
        inbox.word(word::LIMIT).store(9, Relaxed);
        inbox.word(word::STATE).store(state::DRAINING, Relaxed);
        assert!(inbox.accept().is_none(), "it drains");
        inbox.word(word::STATE).store(state::READY, Relaxed);
        assert!(inbox.accept().is_some() && inbox.accept().is_none());
        let _client = connect();
        inbox.make_direct(&[]);
        assert!(!sys::is_readable(inbox.poller()) && read(word::DIRECT) == 0);
        assert!(socket.has_waiting() && inbox.accept().is_none());
    }

    #[test]
    fn several_sockets_are_accepted_from_in_turn() {
        let inbox = inbox();
        inbox.word(word::LIMIT).store(9, Relaxed);
        inbox.word(word::STATE).store(state::READY, Relaxed);
        inbox.word(word::LISTENS).store(0b11, Relaxed);
        let mut clients = Vec::new();
        let sockets = [0, 1].map(|number| {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
            listener.set_nonblocking(true).expect("non-blocking");
            let address = listener.local_addr().expect("bound");
            clients.extend((0..2).map(|_| std::net::TcpStream::connect(address)));
            Arc::new(Socket::new(number, listener.into()).expect("a socket"))
        });
        inbox.make_direct(&sockets);
        let numbers: Vec<_> =
            std::iter::from_fn(|| inbox.accept()).map(|(number, _)| number).collect();
        assert_eq!(numbers, [0, 1, 0, 1]);
    }

    #[test]
    fn the_time_slept_is_written_into_the_row() {
        let inbox = inbox();
        inbox.publish_idle(12);
        assert_eq!(inbox.word(word::IDLE_MS).load(Relaxed), 7);
        assert_eq!(inbox.word(word::IDLE_WRITTEN_AT).load(Relaxed), 12);
    }

    #[test]
    fn a_loop_that_has_not_slept_since_the_last_check_is_pinged() {
        let inbox = inbox();
        inbox.publish_idle(1000);
        assert!(!inbox.bell().clear(), "nothing to compare with");
        inbox.publish_idle(2000);
        assert!(inbox.bell().clear());
        assert_eq!(inbox.silent_ms(2500), 500);
        inbox.answer_ping();
        inbox.word(word::IDLE_MS).store(6, Relaxed);
        inbox.publish_idle(3000);
        assert!(!inbox.bell().clear(), "it has slept");
    }

    #[test]
    fn a_time_that_lies_ahead_or_behind_the_end_of_the_clock_is_no_age() {
        assert_eq!(age_ms(12, 10), 0);
        assert_eq!(age_ms(u32::MAX, 4), 5);
        assert_eq!(age_ms(0, 4), 0);
    }

    #[test]
    fn only_a_ready_loop_that_listens_has_a_load() {
        let inbox = inbox();
        assert_eq!(load_of(&inbox.board, 0, 0, 3, 1), None);
        inbox.word(word::STATE).store(state::READY, Relaxed);
        inbox.word(word::LISTENS).store(1 << 3, Relaxed);
        assert!(inbox.listens_to(3) && !inbox.listens_to(2));
        assert!(load_of(&inbox.board, 0, 0, 3, 1).is_some());
        assert_eq!(load_of(&inbox.board, 0, 0, 2, 1), None);
        inbox.word(word::STATE).store(state::DRAINING, Relaxed);
        assert_eq!(load_of(&inbox.board, 0, 0, 3, 1), None);
    }
}
