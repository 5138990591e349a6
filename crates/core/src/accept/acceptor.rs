//! Handle of a process's listener thread, which accepts connections and gives each to the least loaded
//! live loop (listener.rs). Sockets and inboxes are added to the shared state; the thread copies the
//! state when it is rung. Once a removal has returned, the thread accepts nothing from that socket and
//! puts nothing into that inbox.
//!
//! Long (over 400 lines): most of it is tests of handle and thread together.

use super::board::{Board, word};
use super::files::{self, Files};
use super::listener::Listener;
use super::loop_inbox::{AcceptedConnection, IdleClock, LoopInbox};
use super::placement::Policy;
use super::rescue::{self, Handover, LoopThread};
pub use super::shared::Settings;
use super::shared::Shared;
use super::socket::Socket;
use crate::error::{CoreError, Result};
use crate::sync::Ordering::AcqRel;
use crate::sys::fd::OwnedFd;
use crate::wake::doorbell::Doorbell;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

/// A row has one bit for each listening socket.
pub const MAX_SOCKETS: u32 = 32;
const STACK_BYTES: usize = 128 * 1024;

/// The thread ends when this is dropped.
pub struct Acceptor {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    files_thread: Mutex<Option<JoinHandle<()>>>,
}

impl Acceptor {
    /// Starts the thread of `process`. `bells` has one doorbell for each process of the server. With
    /// `handover`, kept-alive connections leave loops that are blocked.
    pub fn start(
        board: Arc<Board>,
        process: u32,
        bells: Vec<Doorbell>,
        settings: Settings,
        handover: Option<Handover>,
    ) -> Result<Acceptor> {
        let is_sound = process < board.processes() && bells.len() == board.processes() as usize;
        if !is_sound {
            return Err(CoreError::Corrupt { what: "a process's number", value: process.into() });
        }
        let shared = Arc::new(Shared {
            board,
            process,
            settings,
            bells,
            handover,
            files: OnceLock::new(),
            state: Mutex::default(),
        });
        let thread = Listener::new(Arc::clone(&shared))?;
        let thread = std::thread::Builder::new()
            .name("manycore-accept".into())
            .stack_size(STACK_BYTES)
            .spawn(move || thread.run())
            .map_err(|error| CoreError::Refused {
                what: "a thread",
                errno: error.raw_os_error().unwrap_or(0),
            })?;
        Ok(Acceptor { shared, thread: Some(thread), files_thread: Mutex::default() })
    }

    /// Answers requests for files in a thread from now on (`files/mod.rs`), which also accepts. The first call of
    /// a process decides. `None`: where a router chooses the loop of each connection.
    pub fn serve_files(&self, keep_alive_s: u32) -> Result<Option<Arc<Files>>> {
        if self.shared.settings.policy == Policy::Sticky {
            return Ok(None);
        }
        let mut thread = self.files_thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(files) = self.shared.files.get() {
            return Ok(Some(Arc::clone(files)));
        }
        let files =
            Arc::new(Files::new(keep_alive_s, Arc::clone(self.board()), self.shared.process)?);
        *thread = Some(files::start(Arc::clone(&self.shared), Arc::clone(&files))?);
        let files = Arc::clone(self.shared.files.get_or_init(|| files));
        drop(thread);
        self.wake();
        Ok(Some(files))
    }

    /// True: kept-alive connections leave loops that are blocked.
    pub fn rescues(&self) -> bool {
        self.shared.handover.is_some()
    }

    #[cfg(test)]
    pub fn handover(&self) -> &Handover {
        self.shared.handover.as_ref().expect("it rescues")
    }

    #[cfg(test)]
    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    pub fn board(&self) -> &Arc<Board> {
        &self.shared.board
    }

    /// Adds a non-blocking listening socket, with the number that it has in all processes, or a control
    /// socket over which a router sends connections. Several sockets with one number share a port.
    pub fn add_socket(&self, number: u32, fd: OwnedFd) -> Result<()> {
        if number >= MAX_SOCKETS {
            return Err(CoreError::Corrupt { what: "a socket's number", value: number.into() });
        }
        self.shared.lock().sockets.push(Arc::new(Socket::new(number, fd)?));
        self.wake();
        Ok(())
    }

    /// Removes the listening sockets with this number. Nothing is accepted from them any more when this
    /// returns.
    pub fn remove_socket(&self, number: u32) {
        let mut state = self.shared.lock();
        state.sockets.retain(|socket| socket.number() != number);
        for inbox in &state.inboxes {
            inbox.make_direct(&[]);
        }
        drop(state);
        self.wake();
    }

    /// Adds the inbox for loop `index`. It gets connections once the loop's row lists sockets and
    /// `wake` was called.
    pub fn add_inbox(
        &self,
        index: u32,
        bell: Doorbell,
        idle_ms: IdleClock,
        thread: Option<LoopThread>,
    ) -> Result<Arc<LoopInbox>> {
        let mut state = self.shared.lock();
        let is_free = state.inboxes.iter().all(|inbox| inbox.index() != index);
        if index >= self.shared.board.loops() || !is_free {
            return Err(CoreError::Corrupt { what: "a loop's number", value: index.into() });
        }
        let board = Arc::clone(&self.shared.board);
        let inbox =
            Arc::new(LoopInbox::new(board, self.shared.process, index, bell, idle_ms, thread)?);
        state.inboxes.push(Arc::clone(&inbox));
        Ok(inbox)
    }

    /// Closes the inbox of a draining loop. False: a connection waits in it, which the loop has to take
    /// first.
    pub fn try_leave(&self, inbox: &Arc<LoopInbox>) -> bool {
        let mut state = self.shared.lock();
        if inbox.is_any_untaken() {
            return false;
        }
        // The last loop is needed for requests that the thread does not answer.
        let is_last = state.inboxes.iter().all(|other| Arc::ptr_eq(other, inbox));
        if is_last && self.shared.files.get().is_some_and(|files| files.held() > 0) {
            return false;
        }
        if is_last && rescue::take_rest(&self.shared, inbox) {
            return false;
        }
        state.inboxes.retain(|other| !Arc::ptr_eq(other, inbox));
        inbox.make_direct(&[]);
        true
    }

    /// True: no connection of `socket` waits for the loop, and none will come. Call it once the loop's
    /// row does not list the socket any more.
    pub fn is_done_with(&self, inbox: &LoopInbox, socket: u32) -> bool {
        // Placing a connection holds this lock from reading the row to the hand-over.
        let _state = self.shared.lock();
        !inbox.has_untaken(socket)
    }

    /// Removes the inbox of a loop that has ended; its untaken connections go to other loops of this
    /// process.
    pub fn remove_inbox(&self, inbox: &Arc<LoopInbox>) {
        let mut state = self.shared.lock();
        state.inboxes.retain(|other| !Arc::ptr_eq(other, inbox));
        inbox.make_direct(&[]);
        for connection in inbox.reclaim() {
            self.shared.put_into_best(&state.inboxes, connection);
        }
        drop(state);
        self.wake();
    }

    /// Hands a connection that an ending loop cannot take any more to another loop of this process.
    pub fn reassign(&self, inbox: &Arc<LoopInbox>, socket: u32, fd: OwnedFd) {
        let state = self.shared.lock();
        inbox.word(word::OPEN).fetch_sub(1, AcqRel);
        let is_other = |other: &&Arc<LoopInbox>| !Arc::ptr_eq(other, inbox);
        let others: Vec<_> = state.inboxes.iter().filter(is_other).cloned().collect();
        self.shared
            .put_into_best(&others, AcceptedConnection { socket, fd, at_ms: 0, taken_at_ms: 0 });
    }

    /// Makes the thread read the rows of this process again, to watch the sockets that are wanted now.
    pub fn wake(&self) {
        self.shared.ring(self.shared.process);
        if let Some(files) = self.shared.files.get() {
            files.wake();
        }
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.shared.lock().is_closing = true;
        self.wake();
        let files = self.files_thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        for thread in [self.thread.take(), files].into_iter().flatten() {
            // A panic of the thread has been printed; there is nothing to do about it here.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accept::board::state;
    use crate::accept::placement::{BLOCKED_MS, Policy};
    use crate::sync::Ordering::{Acquire, Relaxed, Release};
    use crate::sys;
    use crate::sys::fd::AsFd;
    use std::fs::File;
    use std::io::Read;
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::time::{Duration, Instant};

    const SOCKET: u32 = 2;

    /// Several server processes in one: each has a listener thread, and all share one listening socket.
    struct Server {
        board: Arc<Board>,
        acceptors: Vec<Acceptor>,
        inboxes: Vec<Vec<Arc<LoopInbox>>>,
        address: SocketAddr,
        clients: Vec<TcpStream>,
    }

    fn bells(of: &[Doorbell]) -> Vec<Doorbell> {
        of.iter().map(|bell| Doorbell::from_fd(bell.duplicate().expect("dup"))).collect()
    }

    fn serve(processes: u32, loops: u32) -> Server {
        serve_with(processes, loops, Settings { policy: Policy::LeastLoaded, patience: None })
    }

    fn serve_with(processes: u32, loops: u32, settings: Settings) -> Server {
        let (board, _) = Board::create(processes, loops).expect("memfd");
        let board = Arc::new(board);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("non-blocking");
        let address = listener.local_addr().expect("bound");
        let own_bells: Vec<_> = (0..processes).map(|_| Doorbell::new().expect("eventfd")).collect();
        let start = |process| {
            let acceptor =
                Acceptor::start(Arc::clone(&board), process, bells(&own_bells), settings, None);
            let acceptor = acceptor.expect("a thread");
            let fd = sys::duplicate(listener.as_fd()).expect("dup");
            acceptor.add_socket(SOCKET, fd).expect("a free number");
            acceptor
        };
        let acceptors: Vec<_> = (0..processes).map(start).collect();
        let sit = |acceptor: &Acceptor| {
            let inbox = |index| {
                let bell = Doorbell::new().expect("eventfd");
                acceptor.add_inbox(index, bell, Box::new(|| 5), None).expect("a free inbox")
            };
            (0..loops).map(inbox).collect::<Vec<_>>()
        };
        let inboxes: Vec<_> = acceptors.iter().map(sit).collect();
        Server { board, acceptors, inboxes, address, clients: Vec::new() }
    }

    impl Server {
        fn listen(&self, process: usize, index: usize) {
            let inbox = &self.inboxes[process][index];
            inbox.word(word::LIMIT).store(1000, Relaxed);
            inbox.word(word::LISTENS).store(1 << SOCKET, Release);
            inbox.word(word::STATE).store(state::READY, Release);
            self.acceptors[process].wake();
        }

        fn connect(&mut self, count: usize) {
            for _ in 0..count {
                self.clients.push(TcpStream::connect(self.address).expect("the kernel's queue"));
            }
        }

        /// Connections open at a loop. Answers pings on the way, as a running loop does.
        fn open(&self, process: u32, index: u32) -> u32 {
            for inbox in self.inboxes.iter().flatten() {
                inbox.answer_ping();
            }
            self.board.word(process, index, word::OPEN).load(Acquire)
        }
    }

    fn wait_until(what: &str, is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !is_so() {
            assert!(Instant::now() < deadline, "{what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn connections_are_spread_over_loops_that_take_them() {
        let mut server = serve(1, 2);
        server.listen(0, 0);
        server.listen(0, 1);
        for round in 1..=4 {
            server.connect(2);
            wait_until("all placed", || server.open(0, 0) + server.open(0, 1) == 2 * round);
            for inbox in &server.inboxes[0] {
                while inbox.take().is_some() {}
            }
        }
        // Not exactly: a loop that had no core for a moment is passed over.
        assert!(server.open(0, 0) >= 2 && server.open(0, 1) >= 2, "{}", server.open(0, 0));
    }

    #[test]
    fn a_connection_without_a_listening_loop_stays_in_the_kernels_queue() {
        let mut server = serve(1, 1);
        server.connect(1);
        assert_eq!(server.open(0, 0), 0);
        server.listen(0, 0);
        wait_until("placed", || server.open(0, 0) == 1);
    }

    #[test]
    fn untaken_connections_of_a_blocked_loop_go_to_another() {
        let mut server = serve(1, 2);
        server.listen(0, 0);
        server.connect(3);
        wait_until("all at the blocked loop", || server.open(0, 0) == 3 || server.open(0, 0) == 1);
        server.listen(0, 1);
        let live = Arc::clone(&server.inboxes[0][1]);
        let taken = std::cell::Cell::new(0);
        wait_until("rescued", || {
            taken.set(taken.get() + usize::from(live.take().is_some()));
            taken.get() == 3
        });
        assert_eq!((server.open(0, 0), server.open(0, 1)), (0, 3));
    }

    #[test]
    fn a_connection_of_a_router_goes_to_its_loop_however_loaded_and_stays_there() {
        let mut server = serve_with(1, 2, Settings { policy: Policy::Sticky, patience: None });
        server.connect(1);
        let [near, far] = sys::socket_pair().expect("a pair");
        server.acceptors[0].remove_socket(SOCKET);
        server.acceptors[0].add_socket(SOCKET, far).expect("a free number");
        server.listen(0, 0);
        server.listen(0, 1);
        server.board.word(0, 1, word::OPEN).store(500, Release);
        let send = |index| sys::send_numbered(near.as_fd(), index, server.clients[0].as_fd());
        for count in 1..=3 {
            assert_eq!(send(1), sys::Passed::Sent);
            wait_until("placed", || server.open(0, 1) == 500 + count);
        }
        // Longer than the time after which others get such connections.
        std::thread::sleep(Duration::from_millis(20));
        server.inboxes[0][0].bell().clear();
        assert_eq!((server.open(0, 0), server.open(0, 1)), (0, 503));
        server.inboxes[0][1].word(word::STATE).store(state::DRAINING, Release);
        assert_eq!(send(1), sys::Passed::Sent);
        wait_until("at the other loop", || server.open(0, 0) == 1);
    }

    #[test]
    fn a_process_leaves_connections_to_one_with_less_to_do() {
        let mut server = serve(2, 1);
        server.listen(0, 0);
        server.listen(1, 0);
        // Connections of earlier clients, according to the scoreboard.
        server.board.word(0, 0, word::OPEN).store(500, Release);
        for round in 1..=20 {
            server.connect(1);
            wait_until("placed", || server.open(0, 0) + server.open(1, 0) == 500 + round);
            for process in [0, 1] {
                while server.inboxes[process][0].take().is_some() {}
            }
        }
        // Not all: when the other process gets no core for too long, this one takes the connection
        // after all.
        assert!(server.open(1, 0) > server.open(0, 0) - 500, "{}", server.open(1, 0));
    }

    #[test]
    fn a_silent_process_is_not_waited_for_at_each_connection() {
        let mut server = serve(2, 1);
        server.listen(0, 0);
        // By its row process 1 is idle, but it has no thread that would accept.
        server.acceptors.pop();
        let word = |offset| server.board.word(1, 0, offset);
        word(word::LIMIT).store(1000, Relaxed);
        word(word::LISTENS).store(1 << SOCKET, Release);
        word(word::STATE).store(state::READY, Release);
        server.board.word(0, 0, word::OPEN).store(500, Release);
        let bell = server.acceptors[0].shared.bells[1].duplicate().expect("dup");
        for count in 1..=30 {
            server.connect(1);
            wait_until("placed after all", || {
                while server.inboxes[0][0].take().is_some() {}
                server.open(0, 0) == 500 + count
            });
        }
        let mut rings = [0; 8];
        File::from(bell).read_exact(&mut rings).expect("rung once");
        assert!(u64::from_ne_bytes(rings) < 30, "it is not waited for at each connection");
    }

    #[test]
    fn a_loop_that_holds_connections_is_pinged() {
        let mut server = serve(1, 1);
        server.listen(0, 0);
        server.connect(1);
        wait_until("placed", || server.inboxes[0][0].take().is_some());
        let pinged = server.board.word(0, 0, word::PINGED_SINCE);
        wait_until("asked", || pinged.load(Acquire) != 0);
        server.inboxes[0][0].answer_ping();
        wait_until("asked again", || pinged.load(Acquire) != 0);
    }

    #[test]
    fn a_closed_inbox_hands_its_untaken_connections_to_another_loop() {
        let mut server = serve(1, 2);
        server.listen(0, 0);
        server.connect(1);
        wait_until("placed", || server.open(0, 0) == 1);
        server.listen(0, 1);
        let leaving = server.inboxes[0].remove(0);
        leaving.word(word::STATE).store(state::DRAINING, Release);
        server.acceptors[0].remove_inbox(&leaving);
        wait_until("given to the other", || server.open(0, 1) == 1);
        assert!(server.inboxes[0][0].take().is_some());
    }

    #[test]
    fn a_connection_of_a_closed_inbox_waits_for_a_blocked_loop_where_there_is_no_other() {
        let mut server = serve(1, 2);
        server.listen(0, 0);
        server.connect(1);
        wait_until("placed", || server.open(0, 0) == 1);
        server.listen(0, 1);
        let leaving = server.inboxes[0].remove(0);
        leaving.word(word::STATE).store(state::DRAINING, Release);
        let long_ago = sys::now_ms().wrapping_sub(60_000).max(1);
        server.inboxes[0][0].word(word::PINGED_SINCE).store(long_ago, Release);
        server.acceptors[0].remove_inbox(&leaving);
        assert_eq!(server.open(0, 1), 1);
        assert!(server.inboxes[0][0].take().is_some());
    }

    #[test]
    fn a_loop_may_leave_only_when_nothing_waits_for_it() {
        let mut server = serve(1, 1);
        server.listen(0, 0);
        server.connect(1);
        wait_until("placed", || server.open(0, 0) == 1);
        let inbox = &server.inboxes[0][0];
        inbox.word(word::STATE).store(state::DRAINING, Release);
        assert!(!server.acceptors[0].try_leave(inbox));
        assert!(inbox.take().is_some());
        assert!(server.acceptors[0].try_leave(inbox));
    }

    #[test]
    fn a_loop_is_done_with_a_socket_when_nothing_of_it_waits() {
        let mut server = serve(1, 1);
        server.listen(0, 0);
        server.connect(1);
        wait_until("placed", || server.open(0, 0) == 1);
        let inbox = &server.inboxes[0][0];
        inbox.word(word::LISTENS).store(0, Release);
        assert!(!server.acceptors[0].is_done_with(inbox, SOCKET));
        assert!(server.acceptors[0].is_done_with(inbox, SOCKET + 1), "another socket");
        assert!(inbox.take().is_some());
        assert!(server.acceptors[0].is_done_with(inbox, SOCKET));
    }

    #[test]
    fn all_sockets_with_one_number_are_accepted_from() {
        let mut server = serve(1, 1);
        let listen = |port| {
            let address = SocketAddr::from(([127, 0, 0, 1], port));
            TcpListener::from(sys::listen_shared(address, 64, false).expect("a socket"))
        };
        let first = listen(0);
        let address = first.local_addr().expect("bound");
        let second = listen(address.port());
        assert!(TcpListener::bind(address).is_err(), "in use for all others");
        for each in [first, second] {
            server.acceptors[0].add_socket(SOCKET, each.into()).expect("a number");
        }
        server.listen(0, 0);
        server.address = address;
        server.connect(40); // the kernel gives some to each
        wait_until("placed", || {
            while server.inboxes[0][0].take().is_some() {}
            server.open(0, 0) == 40
        });
        server.acceptors[0].remove_socket(SOCKET);
        wait_until("both are closed", || TcpStream::connect(address).is_err());
    }

    #[test]
    fn in_turn_each_loop_of_each_process_gets_as_many() {
        let policy = Policy::RoundRobin;
        let mut server = serve_with(2, 2, Settings { policy, patience: None });
        for (process, index) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            server.listen(process, index);
        }
        // By load all would go to the others.
        server.board.word(0, 0, word::OPEN).store(500, Release);
        let all = |server: &Server| {
            [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(process, index)| server.open(process, index))
        };
        for round in 1..=20 {
            server.connect(1);
            wait_until("placed", || all(&server).iter().sum::<u32>() == 500 + round);
            for inbox in server.inboxes.iter().flatten() {
                while inbox.take().is_some() {}
            }
        }
        // Not exactly five each: when a process gets no core for too long, another takes its turn.
        assert!(server.open(0, 0) > 500, "{:?}", all(&server));
        assert!(all(&server).iter().all(|&open| open > 0), "{:?}", all(&server));
    }

    #[test]
    fn clients_of_http_that_wait_too_long_are_turned_away() {
        use std::io::Read;
        let patience = Some(Duration::from_millis(50));
        let mut server = serve_with(1, 1, Settings { policy: Policy::LeastLoaded, patience });
        let turned_away =
            |server: &Server| server.board.word(0, 0, word::TURNED_AWAY).load(Relaxed);
        server.listen(0, 0);
        // Never taken: the loop is blocked. It gets the first, the others stay in the kernel's queue.
        server.connect(1);
        wait_until("placed", || server.open(0, 0) == 1);
        std::thread::sleep(Duration::from_millis(200));
        server.connect(2);
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(turned_away(&server), 0, "not known to speak HTTP");
        server.inboxes[0][0].word(word::SPEAKS_HTTP).store(1 << SOCKET, Relaxed);
        wait_until("all turned away", || turned_away(&server) == 3);
        assert_eq!(server.open(0, 0), 0);
        let mut answer = String::new();
        server.clients[0].read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("Retry-After"), "{answer}");
    }

    #[test]
    fn the_full_patience_applies_to_late_clients() {
        let patience = Duration::from_millis(200);
        let settings = Settings { policy: Policy::LeastLoaded, patience: Some(patience) };
        let mut server = serve_with(1, 1, settings);
        let board = Arc::clone(&server.board);
        let turned_away = board.word(0, 0, word::TURNED_AWAY);
        server.inboxes[0][0].word(word::SPEAKS_HTTP).store(1 << SOCKET, Relaxed);
        server.listen(0, 0);
        board.word(0, 0, word::PINGED_SINCE).store(sys::now_ms().max(1), Relaxed); // it is blocked
        std::thread::sleep(Duration::from_millis(BLOCKED_MS.into()));
        server.connect(2);
        wait_until("turned away", || turned_away.load(Relaxed) == 2);
        for count in 3..=5 {
            let began = Instant::now();
            server.connect(1);
            wait_until("turned away", || turned_away.load(Relaxed) == count);
            assert!(began.elapsed() >= patience, "after {:?}", began.elapsed());
        }
    }

    /// Number of clients turned away while the loop of the first process runs one callback after the
    /// other. Clients wait all the time, but each for less than the server's patience. Loops of other
    /// processes are blocked. `None`: this thread had no core for so long that clients waited in vain.
    fn turned_away_while_one_loop_is_busy(processes: u32) -> Option<u32> {
        let patience = Duration::from_millis(200);
        let settings = Settings { policy: Policy::LeastLoaded, patience: Some(patience) };
        let mut server = serve_with(processes, 1, settings);
        for process in 0..processes as usize {
            let inbox = &server.inboxes[process][0];
            inbox.word(word::SPEAKS_HTTP).store(1 << SOCKET, Relaxed);
            server.listen(process, 0);
        }
        for blocked in server.inboxes[1..].iter().flatten() {
            blocked.word(word::PINGED_SINCE).store(sys::now_ms().max(1), Relaxed);
        }
        std::thread::sleep(Duration::from_millis(BLOCKED_MS.into()));
        let mut turned_at = Instant::now();
        for _ in 0..20 {
            server.connect(1); // it gets this one
            std::thread::sleep(Duration::from_millis(30));
            server.connect(2); // no loop takes these
            std::thread::sleep(Duration::from_millis(20));
            turn(&server.inboxes[0][0]);
            if turned_at.elapsed() > patience / 2 {
                return None;
            }
            turned_at = Instant::now();
        }
        let turned_away = |process| server.board.word(process, 0, word::TURNED_AWAY).load(Relaxed);
        Some((0..processes).map(turned_away).sum())
    }

    /// That number in the first run without such a pause.
    fn turned_away_in_a_run_without_pauses(processes: u32) -> u32 {
        let runs = std::iter::repeat_with(|| turned_away_while_one_loop_is_busy(processes));
        runs.take(30).flatten().next().expect("no run of 30 without a pause of 100 ms")
    }

    #[test]
    fn a_moving_queue_turns_no_client_away() {
        assert_eq!(turned_away_in_a_run_without_pauses(1), 0);
    }

    #[test]
    fn a_queue_that_another_process_drains_turns_no_client_away() {
        assert_eq!(turned_away_in_a_run_without_pauses(2), 0);
    }

    /// One turn of a loop: takes the connections placed in its inbox and, where it may, accepts waiting
    /// ones. Closes all of them at once.
    fn turn(inbox: &LoopInbox) -> (u32, u32) {
        let given = std::iter::from_fn(|| inbox.take()).count() as u32;
        let accepted = std::iter::from_fn(|| inbox.accept()).count() as u32;
        inbox.answer_ping();
        inbox.word(word::OPEN).fetch_sub(given + accepted, Relaxed);
        (given, accepted)
    }

    fn is_direct(inbox: &LoopInbox) -> bool {
        inbox.word(word::DIRECT).load(Relaxed) == 1
    }

    /// Acts like a loop that never sleeps and gets many connections, until `is_over`.
    fn storm(server: &Server, what: &str, mut is_over: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !is_over() {
            assert!(Instant::now() < deadline, "{what}");
            server.inboxes[0][0].word(word::PLACED).fetch_add(1000, Relaxed);
            server.acceptors[0].wake();
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// A server whose first loop accepts by itself.
    fn serve_directly(processes: u32, loops: u32) -> (Server, Arc<LoopInbox>) {
        let server = serve(processes, loops);
        server.listen(0, 0);
        let inbox = Arc::clone(&server.inboxes[0][0]);
        storm(&server, "it accepts by itself", || is_direct(&inbox));
        (server, inbox)
    }

    #[test]
    fn a_loop_that_gets_many_connections_accepts_by_itself_until_they_become_few() {
        let (mut server, inbox) = serve_directly(1, 1);
        let mut by_itself = 0;
        storm(&server, "most are left to the loop", || {
            let _client = TcpStream::connect(server.address).expect("the kernel's queue");
            by_itself += turn(&inbox).1;
            by_itself >= 100
        });
        wait_until("the listener thread accepts again", || !is_direct(&inbox));
        server.connect(1);
        wait_until("given", || turn(&inbox) == (1, 0));
    }

    #[test]
    fn connections_that_a_loop_does_not_accept_by_itself_go_to_another() {
        let (mut server, _blocked) = serve_directly(1, 2);
        server.listen(0, 1);
        server.connect(20);
        let live = Arc::clone(&server.inboxes[0][1]);
        let taken = std::cell::Cell::new(0);
        wait_until("taken", || {
            let (given, accepted) = turn(&live);
            taken.set(taken.get() + given + accepted);
            taken.get() == 20
        });
    }

    #[test]
    fn connections_are_placed_again_when_one_loop_holds_far_more_than_another() {
        let (server, inbox) = serve_directly(2, 1);
        server.listen(1, 0);
        server.board.word(0, 0, word::OPEN).store(500, Release);
        storm(&server, "it accepts by itself for ever", || !is_direct(&inbox));
    }

    #[test]
    fn nothing_is_accepted_from_a_socket_that_was_removed() {
        let (server, inbox) = serve_directly(1, 1);
        server.acceptors[0].remove_socket(SOCKET);
        assert!(!is_direct(&inbox) && inbox.accept().is_none());
        wait_until("the port is closed", || TcpStream::connect(server.address).is_err());
    }

    #[test]
    fn a_loop_that_leaves_or_closes_accepts_nothing_by_itself() {
        for leaves in [true, false] {
            let (mut server, inbox) = serve_directly(1, 1);
            if leaves {
                // The listener thread may have placed one more between the two.
                wait_until("left", || {
                    turn(&inbox);
                    server.acceptors[0].try_leave(&inbox)
                });
            } else {
                server.acceptors[0].remove_inbox(&inbox);
            }
            server.connect(3);
            assert!(!is_direct(&inbox) && inbox.accept().is_none());
        }
    }

    #[test]
    fn a_reassigned_connection_goes_to_another_loop() {
        let mut server = serve(1, 2);
        server.listen(0, 0);
        server.connect(1);
        wait_until("placed", || server.inboxes[0][0].is_any_untaken());
        let connection = server.inboxes[0][0].take().expect("one");
        server.listen(0, 1);
        server.acceptors[0].reassign(&server.inboxes[0][0], connection.socket, connection.fd);
        assert_eq!((server.open(0, 0), server.open(0, 1)), (0, 1));
        assert!(server.inboxes[0][1].take().is_some());
    }

    #[test]
    fn a_ring_publishes_how_long_loops_have_slept() {
        let server = serve(1, 1);
        let slept = server.board.word(0, 0, word::IDLE_MS);
        wait_until("written", || {
            server.acceptors[0].wake();
            slept.load(Relaxed) == 5
        });
    }

    #[test]
    fn numbers_that_are_taken_or_too_large_are_refused() {
        let server = serve(1, 1);
        let fd = sys::eventfd().expect("eventfd");
        assert!(server.acceptors[0].add_socket(MAX_SOCKETS, fd).is_err());
        let bell = || Doorbell::new().expect("eventfd");
        assert!(server.acceptors[0].add_inbox(0, bell(), Box::new(|| 0), None).is_err());
        assert!(server.acceptors[0].add_inbox(1, bell(), Box::new(|| 0), None).is_err());
    }
}
