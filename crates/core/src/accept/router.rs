//! One listening socket for several apps, each with names of its own. A thread accepts, peeks at the
//! first bytes (`server_name.rs`), and passes the connection to the processes of the app whose name the
//! client requests. So the choice is made before a byte is read: no process of one app sees bytes for
//! another, which may belong to another user.
//!
//! Each app has a control socket, a Unix socket. Descriptors go in here; the listener threads of its
//! processes (`acceptor.rs`) take them out as they would accept. A connection that finds the control
//! socket full waits in a queue of that app's own. When that is full too, it is closed, as by a kernel.
//!
//! Where clients stay with one loop, an app has a control socket for each process instead
//! (`sticky.rs`). An app without names gets every connection of its port.
//!
//! Clients that request an unknown name get 421 or the alert `unrecognized_name`. A malformed request
//! gets 400, one whose name does not come within its first 16 KiB 431, and a slow one 408.
//!
//! At an upgrade of the server the thread of another process goes on (`hand_over`). It gets every
//! connection that no process has taken, over a Unix socket, and reads it from its first byte. So
//! nothing is lost that waits for a name, for room, or in a control socket.
//!
//! Long (over 400 lines) with its tests.

use super::server_name::{Requested, is_match, is_tls, requested_name};
use super::sticky::{Sticky, Wanted};
use super::turn_away::{
    BAD_HELLO, BAD_REQUEST, MISDIRECTED, TIMED_OUT, TOO_LARGE, TurnedAway, UNRECOGNIZED_NAME,
};
use crate::error::{CoreError, Result};
use crate::sys::fd::{AsFd, OwnedFd};
use crate::sys::{self, Accepted, Passed, Poller, Trigger};
use crate::wake::doorbell::Doorbell;
use std::collections::{BTreeMap, VecDeque};
use std::io::ErrorKind;
use std::net::TcpStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const STACK_BYTES: usize = 128 * 1024;
/// Connections accepted before the thread handles other events.
const BATCH: usize = 16;
/// Bytes within which the name has to come; Node's limit for a head is the same.
const MAX_HEAD_BYTES: usize = 16 * 1024;
/// Connections of one app that wait for room in its control socket.
const MAX_OVERFLOW: usize = 1024;
/// Time between two attempts to send over a full control socket.
const FULL_PAUSE: Duration = Duration::from_millis(5);
/// Pause when no descriptor is left: one has to be closed first.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);
/// Time between two checks of clients that were answered.
const LINGERING_PAUSE: Duration = Duration::from_millis(50);
/// Time for passing connections on to a successor.
const HAND_OVER_TIME: Duration = Duration::from_secs(10);

/// Limits for clients that have not sent a name yet.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Time for sending the name.
    patience: Duration,
    /// Number of clients; beyond it the one that has waited longest is closed.
    max_waiting: usize,
}

const LIMITS: Limits = Limits { patience: Duration::from_secs(10), max_waiting: 4096 };

/// See `exhausted_count`. One for all routers: descriptors are the process's.
static EXHAUSTED: AtomicU32 = AtomicU32::new(0);

const LISTENER: u64 = u64::MAX;
const BELL: u64 = u64::MAX - 1;
const PREDECESSOR: u64 = u64::MAX - 2;

/// Way to the processes of one app.
pub enum Way {
    /// Both ends of a Unix socket that do not block; all of them receive from `far`.
    ControlSocket {
        near: OwnedFd,
        far: OwnedFd,
    },
    Sticky(Arc<Sticky>),
}

/// Names of one app, and the way to it. Without names: all connections.
struct Route {
    key: u32,
    names: Vec<String>,
    way: Way,
}

#[derive(Default)]
struct State {
    routes: Vec<Arc<Route>>,
    next_key: u32,
    is_closing: bool,
    /// False: clients stay in the kernel's queue, or with a predecessor.
    is_accepting: bool,
    /// True: a successor gets the connections, and nothing is added or removed.
    is_handing_over: bool,
    /// Unix socket to the successor, until the thread has it.
    successor: Option<OwnedFd>,
}

struct Shared {
    bell: Doorbell,
    state: Mutex<State>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Handle of the thread. Dropping it ends the thread and closes the socket, except in a hand-over, which
/// goes on without the handle.
pub struct Router {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Router {
    /// Accepts from `listener`, a listening TCP socket that does not block, once `accept` is called.
    /// Takes connections from `predecessor`, a Unix socket, until its other end is closed.
    pub fn start(listener: OwnedFd, predecessor: Option<OwnedFd>) -> Result<Router> {
        Router::start_with(listener, predecessor, LIMITS)
    }

    fn start_with(
        listener: OwnedFd,
        predecessor: Option<OwnedFd>,
        limits: Limits,
    ) -> Result<Router> {
        let shared = Arc::new(Shared { bell: Doorbell::new()?, state: Mutex::default() });
        let poller = Poller::new()?;
        poller.add(shared.bell.as_fd(), BELL, Trigger::Level)?;
        if let Some(predecessor) = &predecessor {
            poller.add(predecessor.as_fd(), PREDECESSOR, Trigger::Level)?;
        }
        let router_thread = RouterThread {
            shared: Arc::clone(&shared),
            listener: Some(listener),
            is_accepting: false,
            predecessor,
            limits,
            poller,
            waiting: BTreeMap::new(),
            overflow: Vec::new(),
            next_number: 0,
            turned_away: TurnedAway::default(),
        };
        let thread = std::thread::Builder::new()
            .name("manycore-route".into())
            .stack_size(STACK_BYTES)
            .spawn(move || router_thread.run())
            .map_err(|error| CoreError::Refused {
                what: "a thread",
                errno: error.raw_os_error().unwrap_or(0),
            })?;
        Ok(Router { shared, thread: Some(thread) })
    }

    /// Sends clients of any of `names` to an app from now on; without names all clients. `None`: one of
    /// the names could also mean a registered app.
    pub fn add(&self, names: Vec<String>, way: Way) -> Option<u32> {
        let mut state = self.shared.lock();
        let is_taken = |name: &String| {
            let known = state.routes.iter().flat_map(|route| &route.names);
            known.clone().any(|other| is_match(other, name) || is_match(name, other))
        };
        let gets_all = |names: &[String]| names.is_empty();
        let is_any_for_all = state.routes.iter().any(|route| gets_all(&route.names));
        let is_alone = state.routes.is_empty();
        if is_any_for_all || (gets_all(&names) && !is_alone) || names.iter().any(is_taken) {
            return None;
        }
        let key = state.next_key;
        state.next_key += 1;
        state.routes.push(Arc::new(Route { key, names, way }));
        Some(key)
    }

    /// Makes the thread take back the connections of processes that have left (`Sticky::leave`).
    pub fn wake(&self) {
        self.shared.bell.ring();
    }

    pub fn remove(&self, key: u32) {
        let mut state = self.shared.lock();
        if !state.is_handing_over {
            state.routes.retain(|route| route.key != key);
        }
    }

    /// Accepts from now on.
    pub fn accept(&self) {
        self.shared.lock().is_accepting = true;
        self.shared.bell.ring();
    }

    /// Accepts nothing any more. Passes all connections that no process has taken on over `successor`, a
    /// Unix socket that does not block; then the thread ends.
    pub fn hand_over(&self, successor: OwnedFd) {
        let mut state = self.shared.lock();
        if !state.is_handing_over {
            state.is_handing_over = true;
            state.successor = Some(successor);
        }
        drop(state);
        self.shared.bell.ring();
    }

    /// True: the thread has ended.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if state.is_handing_over {
            return;
        }
        state.is_closing = true;
        drop(state);
        self.shared.bell.ring();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed; there is nothing to do about it here.
            let _ = thread.join();
        }
    }
}

/// A client that has not sent a name yet.
struct Client {
    stream: TcpStream,
    since: Instant,
}

/// Next step for a client.
enum Next {
    /// More bytes are needed.
    Wait,
    Go(Arc<Route>, Wanted),
    Answer(&'static [u8]),
    Close,
}

type Waiting = VecDeque<(TcpStream, Wanted)>;

/// State of the thread.
struct RouterThread {
    shared: Arc<Shared>,
    /// `None`: a successor accepts.
    listener: Option<OwnedFd>,
    /// True: the listener is in the poller.
    is_accepting: bool,
    /// Source of the connections that a predecessor has accepted; `None`: it has passed all on.
    predecessor: Option<OwnedFd>,
    limits: Limits,
    poller: Poller,
    /// In the order of their arrival.
    waiting: BTreeMap<u64, Client>,
    /// Connections that wait for room in their app's control socket, in order.
    overflow: Vec<(Arc<Route>, Waiting)>,
    next_number: u64,
    turned_away: TurnedAway,
}

impl RouterThread {
    fn run(mut self) {
        let mut buffer = vec![0; MAX_HEAD_BYTES];
        while let Some(successor) = self.refresh_state() {
            if let Some(successor) = successor {
                return self.hand_over(&successor);
            }
            let limit = self.time_to_sleep();
            let ready: Vec<u64> = self.poller.wait(limit).collect();
            for number in ready {
                match number {
                    LISTENER => self.accept(&mut buffer),
                    PREDECESSOR => self.take_over(&mut buffer),
                    BELL => {
                        self.shared.bell.clear();
                    }
                    client => self.examine(client, &mut buffer),
                }
            }
            self.take_back(&mut buffer);
            self.forward_overflow();
            self.close_overdue();
            self.turned_away.settle();
        }
    }

    /// `None`: the thread has to end. A successor, once there is one, gets all connections.
    fn refresh_state(&mut self) -> Option<Option<OwnedFd>> {
        let mut state = self.shared.lock();
        if state.is_closing {
            return None;
        }
        let successor = state.successor.take();
        if state.is_accepting && !self.is_accepting {
            let added = self
                .listener
                .as_ref()
                .map(|listener| self.poller.add(listener.as_fd(), LISTENER, Trigger::Level));
            // Without memory for it now: the next event tries again.
            self.is_accepting = !matches!(added, Some(Err(_)));
        }
        Some(successor)
    }

    fn time_to_sleep(&self) -> Option<Duration> {
        if !self.overflow.is_empty() {
            return Some(FULL_PAUSE);
        }
        let oldest = self.waiting.values().next();
        let patience =
            oldest.map(|client| self.limits.patience.saturating_sub(client.since.elapsed()));
        if self.turned_away.is_empty() {
            patience
        } else {
            Some(patience.unwrap_or(LINGERING_PAUSE).min(LINGERING_PAUSE))
        }
    }

    fn accept(&mut self, buffer: &mut [u8]) {
        for _ in 0..BATCH {
            let Some(listener) = &self.listener else { return };
            match sys::accept(listener.as_fd()) {
                Accepted::Connection(fd) => self.admit(fd, buffer),
                Accepted::Again => {}
                Accepted::Empty => return,
                // Clients that wait here for that long would wait in the kernel otherwise.
                Accepted::Exhausted => return pause_exhausted(),
                Accepted::Failed(_) => return self.poller.remove(listener.as_fd()),
            }
        }
    }

    /// Takes connections of the predecessor as if they were new: nothing of them was read.
    fn take_over(&mut self, buffer: &mut [u8]) {
        for _ in 0..BATCH {
            match self.next_of_predecessor() {
                Accepted::Connection(fd) => self.admit(fd, buffer),
                Accepted::Again => {}
                Accepted::Exhausted => return pause_exhausted(),
                Accepted::Empty | Accepted::Failed(_) => return,
            }
        }
    }

    fn next_of_predecessor(&mut self) -> Accepted {
        let Some(predecessor) = &self.predecessor else { return Accepted::Empty };
        let next = sys::receive_connection(predecessor.as_fd());
        if matches!(next, Accepted::Failed(_)) {
            self.poller.remove(predecessor.as_fd());
            self.predecessor = None; // it has ended
        }
        next
    }

    /// Passes everything on that no process has taken. Connections are taken out of the control sockets
    /// while processes still receive from them: each goes to one side.
    fn hand_over(mut self, successor: &OwnedFd) {
        let since = Instant::now();
        // The successor has the same sockets: closing them here would leave them in this poller.
        if let Some(listener) = self.listener.take() {
            self.poller.remove(listener.as_fd());
        }
        let waiting = std::mem::take(&mut self.waiting).into_values().map(|client| client.stream);
        let overflow = std::mem::take(&mut self.overflow).into_iter().flat_map(|(_, queue)| queue);
        let mut connections: VecDeque<OwnedFd> =
            waiting.chain(overflow.map(|(stream, _)| stream)).map(OwnedFd::from).collect();
        for connection in &connections {
            self.poller.remove(connection.as_fd());
        }
        let routes = self.shared.lock().routes.clone();
        for route in &routes {
            if let Way::Sticky(sticky) = &route.way {
                sticky.leave_all();
            }
        }
        while since.elapsed() < HAND_OVER_TIME {
            let mut is_all = true;
            for route in &routes {
                is_all &= match &route.way {
                    Way::ControlSocket { far, .. } => take_all(far, &mut connections),
                    Way::Sticky(sticky) => {
                        connections.extend(sticky.take_back());
                        sticky.has_left()
                    }
                };
            }
            while let Accepted::Connection(fd) = self.next_of_predecessor() {
                connections.push_back(fd);
            }
            while let Some(connection) = connections.front() {
                match sys::send_connection(successor.as_fd(), connection.as_fd()) {
                    Passed::Sent => drop(connections.pop_front()),
                    Passed::Full => break,
                    Passed::Gone => return, // the successor has ended, and the server with it
                }
            }
            self.turned_away.settle();
            let is_over = is_all && connections.is_empty() && self.predecessor.is_none();
            if is_over && self.turned_away.is_empty() {
                return;
            }
            let pause = if is_over { LINGERING_PAUSE } else { FULL_PAUSE };
            self.shared.bell.clear();
            self.poller.wait(Some(pause)).count();
        }
    }

    fn admit(&mut self, fd: OwnedFd, buffer: &mut [u8]) {
        let stream = TcpStream::from(fd);
        let next = self.next_of(&stream, buffer);
        if !matches!(next, Next::Wait) {
            return self.settle(stream, next);
        }
        // Added after the peek: epoll reports at once what came in between.
        let number = self.next_number;
        if self.poller.add(stream.as_fd(), number, Trigger::Edge).is_err() {
            return;
        }
        if self.waiting.len() == self.limits.max_waiting {
            self.waiting.pop_first();
        }
        self.next_number += 1;
        self.waiting.insert(number, Client { stream, since: Instant::now() });
    }

    fn examine(&mut self, number: u64, buffer: &mut [u8]) {
        let Some(client) = self.waiting.get(&number) else { return };
        let next = self.next_of(&client.stream, buffer);
        if matches!(next, Next::Wait) {
            return;
        }
        let Some(Client { stream, .. }) = self.waiting.remove(&number) else { return };
        // The app gets the same socket: closing the descriptor here would leave it in our epoll.
        self.poller.remove(stream.as_fd());
        self.settle(stream, next);
    }

    fn settle(&mut self, stream: TcpStream, next: Next) {
        match next {
            Next::Go(route, wanted) => self.forward(stream, route, wanted),
            Next::Answer(answer) => self.turned_away.answer(stream.into(), answer),
            Next::Wait | Next::Close => {}
        }
    }

    fn next_of(&self, stream: &TcpStream, buffer: &mut [u8]) -> Next {
        let for_all = self.route_for_all();
        if let Some(route) = &for_all {
            let wanted = match &route.way {
                Way::ControlSocket { .. } => Some(Wanted::Any),
                Way::Sticky(sticky) if sticky.needs_head() => None,
                Way::Sticky(sticky) => sticky.wanted(stream, &[]),
            };
            if let Some(wanted) = wanted {
                return Next::Go(Arc::clone(route), wanted);
            }
        }
        let bytes = match stream.peek(buffer) {
            Ok(0) => return Next::Close,
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Next::Wait,
            Err(_) => return Next::Close,
        };
        let is_all = bytes == buffer.len();
        let head = &buffer[..bytes];
        if let Some(route) = for_all {
            return next_at(route, stream, head, is_all);
        }
        let (name, refusal) = match requested_name(&buffer[..bytes]) {
            Requested::Unfinished if bytes < buffer.len() => return Next::Wait,
            Requested::Unfinished if !is_tls(buffer) => return Next::Answer(TOO_LARGE),
            Requested::Unfinished | Requested::BadHello => return Next::Answer(BAD_HELLO),
            Requested::BadRequest => return Next::Answer(BAD_REQUEST),
            Requested::Http(name) => (name, MISDIRECTED),
            Requested::Tls(name) => (name, UNRECOGNIZED_NAME),
        };
        let state = self.shared.lock();
        let is_named = |route: &&Arc<Route>| {
            let asked = name.as_deref().unwrap_or_default();
            route.names.iter().any(|own| is_match(own, asked))
        };
        state
            .routes
            .iter()
            .find(is_named)
            .map_or(Next::Answer(refusal), |route| next_at(Arc::clone(route), stream, head, is_all))
    }

    /// The app that gets all connections.
    fn route_for_all(&self) -> Option<Arc<Route>> {
        let state = self.shared.lock();
        state.routes.iter().find(|route| route.names.is_empty()).cloned()
    }

    /// Places connections again that processes have left behind.
    fn take_back(&mut self, buffer: &mut [u8]) {
        let routes = self.shared.lock().routes.clone();
        for route in routes {
            let Way::Sticky(sticky) = &route.way else { continue };
            for connection in sticky.take_back() {
                self.admit(connection, buffer);
            }
        }
    }

    /// Sends a connection to its app, or queues it behind others that wait for room.
    fn forward(&mut self, stream: TcpStream, route: Arc<Route>, wanted: Wanted) {
        let queue = self.overflow.iter_mut().find(|(other, _)| Arc::ptr_eq(other, &route));
        if let Some((_, queue)) = queue {
            // Sticky clients may wait for different loops.
            let waits = match route.way {
                Way::ControlSocket { .. } => true,
                Way::Sticky(_) => is_full(&route, &stream, &wanted),
            };
            if waits && queue.len() < MAX_OVERFLOW {
                queue.push_back((stream, wanted));
            }
        } else if is_full(&route, &stream, &wanted) {
            self.overflow.push((route, VecDeque::from([(stream, wanted)])));
        }
    }

    fn forward_overflow(&mut self) {
        for (route, queue) in &mut self.overflow {
            match route.way {
                Way::ControlSocket { .. } => {
                    let is_sent =
                        |(stream, wanted): &(TcpStream, Wanted)| !is_full(route, stream, wanted);
                    while queue.front().is_some_and(is_sent) {
                        queue.pop_front();
                    }
                }
                // Each may wait for another loop.
                Way::Sticky(_) => queue.retain(|(stream, wanted)| is_full(route, stream, wanted)),
            }
        }
        self.overflow.retain(|(_, queue)| !queue.is_empty());
    }

    /// Ends clients that have sent no name within the patience, with 408 if they have begun a request.
    fn close_overdue(&mut self) {
        let patience = self.limits.patience;
        while let Some(first) = self.waiting.first_entry() {
            if first.get().since.elapsed() < patience {
                return;
            }
            let stream = first.remove().stream;
            let mut begin = [0];
            if matches!(stream.peek(&mut begin), Ok(1)) && !is_tls(&begin) {
                self.poller.remove(stream.as_fd());
                self.turned_away.answer(stream.into(), TIMED_OUT);
            }
        }
    }
}

/// Times that a router of this process had no descriptor left for a connection.
pub fn exhausted_count() -> u32 {
    EXHAUSTED.load(Ordering::Relaxed) // a counter
}

fn pause_exhausted() {
    EXHAUSTED.fetch_add(1, Ordering::Relaxed); // a counter
    std::thread::sleep(EXHAUSTED_PAUSE);
}

/// Takes the connections out of a control socket. False: some may be left.
fn take_all(far: &OwnedFd, connections: &mut VecDeque<OwnedFd>) -> bool {
    loop {
        match sys::receive_connection(far.as_fd()) {
            Accepted::Connection(fd) => connections.push_back(fd),
            Accepted::Again => {}
            Accepted::Empty | Accepted::Failed(_) => return true,
            Accepted::Exhausted => return false,
        }
    }
}

/// Passes a connection on. True: there is no room for it. A connection to an app that has ended is
/// dropped.
fn is_full(route: &Route, stream: &TcpStream, wanted: &Wanted) -> bool {
    match &route.way {
        Way::ControlSocket { near, .. } => {
            sys::send_connection(near.as_fd(), stream.as_fd()) == Passed::Full
        }
        Way::Sticky(sticky) => !sticky.send(stream, wanted),
    }
}

/// Next step for a client of this app, by its first bytes; `is_all`: no more of them can be read.
fn next_at(route: Arc<Route>, stream: &TcpStream, head: &[u8], is_all: bool) -> Next {
    let wanted = match &route.way {
        Way::ControlSocket { .. } => Some(Wanted::Any),
        Way::Sticky(sticky) => sticky.wanted(stream, head),
    };
    match wanted.or_else(|| is_all.then_some(Wanted::Any)) {
        Some(wanted) => Next::Go(route, wanted),
        None => Next::Wait,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accept::board::{Board, state, word};
    use crate::accept::sticky::Key;
    use crate::sync::Ordering::Relaxed;
    use std::io::{Read, Write};
    use std::net::{Shutdown, SocketAddr, TcpListener};

    struct Served {
        router: Router,
        address: SocketAddr,
    }

    fn serve() -> Served {
        serve_with(LIMITS)
    }

    fn serve_with(limits: Limits) -> Served {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("non-blocking");
        let address = listener.local_addr().expect("bound");
        let router = Router::start_with(listener.into(), None, limits).expect("a thread");
        router.accept();
        Served { router, address }
    }

    impl Served {
        /// The end of the control socket that belongs to the app's listener threads.
        fn app(&self, names: &[&str]) -> OwnedFd {
            app_of(&self.router, names)
        }

        fn client(&self, says: &[u8]) -> TcpStream {
            let mut client = TcpStream::connect(self.address).expect("connected");
            client.set_read_timeout(Some(Duration::from_secs(10))).expect("a deadline");
            client.write_all(says).expect("sent");
            client
        }
    }

    /// The end of the control socket that belongs to the listener threads of an app.
    fn app_of(router: &Router, names: &[&str]) -> OwnedFd {
        let (way, far) = control_socket();
        let names = names.iter().map(|&name| name.into()).collect();
        router.add(names, way).expect("names that are free");
        far
    }

    fn control_socket() -> (Way, OwnedFd) {
        let [near, far] = sys::socket_pair().expect("a pair");
        let copy = sys::duplicate(far.as_fd()).expect("dup");
        (Way::ControlSocket { near, far: copy }, far)
    }

    fn next_of(control_socket: &OwnedFd) -> TcpStream {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            if let Accepted::Connection(fd) = sys::receive_connection(control_socket.as_fd()) {
                let stream = TcpStream::from(fd);
                stream.set_nonblocking(false).expect("blocking");
                return stream;
            }
            assert!(Instant::now() < deadline, "no connection comes");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn read_all(mut client: TcpStream) -> Vec<u8> {
        let mut all = Vec::new();
        client.read_to_end(&mut all).expect("no reset");
        all
    }

    #[test]
    fn a_connection_goes_with_all_its_bytes_to_the_app_with_its_name() {
        let served = serve();
        let (one, other) = (served.app(&["one.example", "*.one.example"]), served.app(&["other"]));
        for (host, app) in [("one.example", &one), ("A.one.example:80", &one), ("other", &other)] {
            let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
            let mut client = served.client(request.as_bytes());
            let mut connection = next_of(app);
            let mut bytes = vec![0; request.len()];
            connection.read_exact(&mut bytes).expect("all");
            assert_eq!(bytes, request.as_bytes());
            connection.write_all(b"hello").expect("sent");
            drop(connection);
            assert_eq!(read_all(client.try_clone().expect("dup")), b"hello");
            client.flush().expect("open");
        }
    }

    #[test]
    fn a_name_that_comes_in_pieces_is_waited_for_while_others_go_on() {
        let served = serve();
        let app = served.app(&["a"]);
        let mut slow = served.client(b"GET / HT");
        served.client(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        next_of(&app);
        for piece in [&b"TP/1.1\r\nHo"[..], b"st:", b" a\r", b"\n"] {
            std::thread::sleep(Duration::from_millis(20));
            assert!(matches!(sys::receive_connection(app.as_fd()), Accepted::Empty));
            slow.write_all(piece).expect("sent");
        }
        next_of(&app);
    }

    #[test]
    fn every_refusal_is_an_answer() {
        let served = serve();
        let app = served.app(&["a"]);
        let other = served.client(b"GET / HTTP/1.1\r\nHost: b\r\n\r\n");
        assert_eq!(read_all(other), MISDIRECTED);
        // A ClientHello without extensions.
        let body = [&[1, 0, 0, 41, 3, 3][..], &[0; 32], &[0, 0, 2, 0x13, 1, 1, 0]].concat();
        let hello = [&[22, 3, 1, 0, body.len() as u8][..], &body].concat();
        assert_eq!(read_all(served.client(&hello)), UNRECOGNIZED_NAME);
        assert_eq!(read_all(served.client(b"\0")), BAD_REQUEST);
        assert_eq!(read_all(served.client(b"GET / HTTP/1.1\r\n\r\n")), BAD_REQUEST);
        assert_eq!(read_all(served.client(&[b'G'; MAX_HEAD_BYTES])), TOO_LARGE);
        assert_eq!(read_all(served.client(&[b'\n'; MAX_HEAD_BYTES + 1])), TOO_LARGE);
        assert_eq!(read_all(served.client(&[22, 2, 0])), BAD_HELLO);
        let endless = [&[22, 3, 1, 0x40, 0, 1, 0, 0x3f, 0xfc][..], &[0; MAX_HEAD_BYTES]].concat();
        assert_eq!(read_all(served.client(&endless[..MAX_HEAD_BYTES])), BAD_HELLO);
        let silent = served.client(b"");
        silent.shutdown(Shutdown::Write).expect("open");
        assert_eq!(read_all(silent), b"");
        assert!(matches!(sys::receive_connection(app.as_fd()), Accepted::Empty));
    }

    #[test]
    fn a_name_belongs_to_one_app_until_it_is_removed() {
        let served = serve();
        let add = |name: &str| served.router.add(vec![name.into()], control_socket().0);
        let key = add("*.example").expect("free");
        assert_eq!(add("a.example"), None);
        assert_eq!(add("*.a.example"), None);
        served.router.remove(key);
        assert!(add("a.example").is_some());
        assert_eq!(add("*.example"), None);
    }

    #[test]
    fn a_full_control_socket_delays_its_own_app_alone() {
        let served = serve();
        let (full, other) = (served.app(&["full"]), served.app(&["other"]));
        let ask = |number| {
            let head = format!("GET /{number:04} HTTP/1.1\r\nHost: full\r\n\r\n");
            served.client(head.as_bytes())
        };
        let clients: Vec<_> = (0..600_u32).map(ask).collect();
        served.client(b"GET / HTTP/1.1\r\nHost: other\r\n\r\n");
        next_of(&other);
        let path_of_next = |_| {
            let mut begin = [0; 9];
            next_of(&full).read_exact(&mut begin).expect("a request");
            String::from_utf8_lossy(&begin[5..]).parse().expect("a number")
        };
        let mut numbers: Vec<u32> = (0..clients.len()).map(path_of_next).collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..600), "each of them once");
    }

    #[test]
    fn the_queue_of_an_app_that_takes_nothing_is_bounded() {
        let served = serve();
        let full = served.app(&["full"]);
        let mut clients = Vec::new();
        for _ in 0..MAX_OVERFLOW + 400 {
            clients.push(served.client(b"GET / HTTP/1.1\r\nHost: full\r\n\r\n"));
        }
        // The last ones are closed with their request unread: a reset.
        let last = clients.last().expect("some");
        assert_eq!((&*last).read(&mut [0; 1]).unwrap_or(0), 0);
        drop(clients);
        let mut taken = 0;
        let deadline = Instant::now() + Duration::from_secs(10);
        while taken < MAX_OVERFLOW && Instant::now() < deadline {
            match sys::receive_connection(full.as_fd()) {
                Accepted::Connection(_) => taken += 1,
                _ => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        assert!(taken >= MAX_OVERFLOW, "{taken}");
    }

    #[test]
    fn clients_without_a_name_in_time_are_ended_alone() {
        let served = serve_with(Limits { patience: Duration::from_millis(100), ..LIMITS });
        let app = served.app(&["a"]);
        let silent = [served.client(b""), served.client(&[22, 3])];
        let slow = served.client(b"GET / HTTP/1.1\r\n");
        served.client(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        let mut passed = next_of(&app);
        for client in silent {
            assert_eq!((&client).read(&mut [0; 1]).unwrap_or(0), 0);
        }
        assert_eq!(read_all(slow), TIMED_OUT);
        assert!(passed.read(&mut [0; 1]).expect("open") == 1);
    }

    #[test]
    fn beyond_the_limit_the_client_that_waited_longest_is_closed() {
        let served = serve_with(Limits { max_waiting: 3, ..LIMITS });
        let app = served.app(&["a"]);
        let mut clients: Vec<_> = (0..3).map(|_| served.client(b"GET / HTTP/1.1\r\n")).collect();
        clients.push(served.client(b"GET / HTTP/1.1\r\n"));
        let first = clients.remove(0);
        assert_eq!((&first).read(&mut [0; 1]).unwrap_or(0), 0);
        for client in &mut clients {
            client.write_all(b"Host: a\r\n\r\n").expect("open");
            next_of(&app);
        }
    }

    /// A server of one process with two loops that are not ready.
    fn sticky_app(served: &Served, names: &[&str], key: Key) -> (Arc<Sticky>, Arc<Board>, OwnedFd) {
        let (board, _) = Board::create(1, 2).expect("memfd");
        let board = Arc::new(board);
        let sticky = Arc::new(Sticky::new(Arc::clone(&board), key));
        let [near, far] = sys::socket_pair().expect("a pair");
        sticky.add(0, 0, near, sys::duplicate(far.as_fd()).expect("dup"));
        let names = names.iter().map(|&name| name.into()).collect();
        served.router.add(names, Way::Sticky(Arc::clone(&sticky))).expect("free");
        (sticky, board, far)
    }

    fn set_ready(board: &Board) {
        for index in 0..2 {
            let set = |offset, value| board.word(0, index, offset).store(value, Relaxed);
            set(word::LISTENS, 1);
            set(word::LIMIT, 100);
            set(word::STATE, state::READY);
        }
    }

    #[test]
    fn sticky_clients_are_placed_without_a_byte_by_address_and_wait_for_a_loop() {
        let served = serve();
        let (_, board, far) = sticky_app(&served, &[], Key::Address);
        let _client = served.client(b"");
        std::thread::sleep(Duration::from_millis(20));
        assert!(matches!(sys::receive_connection(far.as_fd()), Accepted::Empty));
        set_ready(&board);
        next_of(&far);
    }

    #[test]
    fn an_app_without_names_is_alone_on_its_port() {
        let served = serve();
        let add = |names: Vec<String>| served.router.add(names, control_socket().0);
        let key = add(Vec::new()).expect("free");
        assert_eq!(add(Vec::new()), None);
        assert_eq!(add(vec!["a".into()]), None);
        served.router.remove(key);
        assert!(add(vec!["a".into()]).is_some());
        assert_eq!(add(Vec::new()), None);
    }

    #[test]
    fn sticky_clients_of_an_app_with_names_are_placed_by_their_first_request() {
        let served = serve();
        let (_, board, far) = sticky_app(&served, &["a"], Key::Query("id".into()));
        let other = served.app(&["b"]);
        set_ready(&board);
        let mut places = Vec::new();
        for _ in 0..3 {
            let mut client = served.client(b"GET /?id=mc1-x HTTP/1.1\r\n");
            client.write_all(b"Host: a\r\n\r\n").expect("open");
            let deadline = Instant::now() + Duration::from_secs(10);
            loop {
                let (index, accepted) = sys::receive_numbered(far.as_fd());
                if matches!(accepted, Accepted::Connection(_)) {
                    places.push(index);
                    break;
                }
                assert!(Instant::now() < deadline, "no connection comes");
            }
        }
        assert_eq!(places, [1, 1, 1]);
        served.client(b"GET / HTTP/1.1\r\nHost: b\r\n\r\n");
        next_of(&other);
    }

    #[test]
    fn a_connection_that_a_process_has_not_taken_goes_to_another() {
        let served = serve();
        let (sticky, board, far) = sticky_app(&served, &[], Key::Header("x".into()));
        set_ready(&board);
        let request = b"GET / HTTP/1.1\r\nx: 1\r\n\r\n";
        let mut client = served.client(request);
        let deadline = Instant::now() + Duration::from_secs(10);
        while !sys::is_readable(far.as_fd()) {
            assert!(Instant::now() < deadline, "no connection comes");
        }
        sticky.leave(0);
        let [near, next] = sys::socket_pair().expect("a pair");
        sticky.add(0, 0, near, sys::duplicate(next.as_fd()).expect("dup"));
        served.router.wake();
        let mut connection = next_of(&next);
        let mut bytes = vec![0; request.len()];
        connection.read_exact(&mut bytes).expect("all");
        assert_eq!(bytes, request);
        assert!(!matches!(sys::receive_connection(far.as_fd()), Accepted::Connection(_)));
        client.flush().expect("open");
    }

    /// A router with a predecessor, and the end to which that sends. It has another port: connections
    /// come from the predecessor alone.
    fn successor() -> (Router, OwnedFd) {
        let [near, far] = sys::socket_pair().expect("a pair");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("non-blocking");
        (Router::start(listener.into(), Some(far)).expect("a thread"), near)
    }

    fn wait_until(mut is_so: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !is_so() {
            assert!(Instant::now() < deadline, "it does not come");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_successor_gets_what_waits_for_a_name_for_room_and_in_control_sockets() {
        let served = serve();
        let full = served.app(&["full"]);
        let (_, board, _) = sticky_app(&served, &["stuck"], Key::Address);
        set_ready(&board);
        let ask = |number| {
            let head = format!("GET /{number:04} HTTP/1.1\r\nHost: full\r\n\r\n");
            served.client(head.as_bytes())
        };
        let clients: Vec<_> = (0..600_u32).map(ask).collect();
        let mut slow = served.client(b"GET /slow HTTP/1.1\r\nHo");
        let _sticky = served.client(b"GET /stuck HTTP/1.1\r\nHost: stuck\r\n\r\n");
        let silent = served.client(b"");
        let answered = served.client(b"GET / HTTP/1.1\r\nHost: b\r\n\r\n");
        assert_eq!(read_all(answered), MISDIRECTED); // so all before it were accepted
        let taken = next_of(&full);
        let (router, near) = successor();
        let (next, stuck) = (app_of(&router, &["full"]), app_of(&router, &["stuck"]));
        served.router.hand_over(near);
        served.router.remove(0); // as its app leaves
        let path_of_next = |_| {
            let mut begin = [0; 9];
            next_of(&next).read_exact(&mut begin).expect("a request");
            String::from_utf8_lossy(&begin[5..]).parse().expect("a number")
        };
        let mut numbers: Vec<u32> = (1..clients.len()).map(path_of_next).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 599, "all but the one that was taken");
        let mut begin = [0; 10];
        next_of(&stuck).read_exact(&mut begin).expect("a request");
        assert_eq!(&begin, b"GET /stuck");
        slow.write_all(b"st: full\r\n\r\n").expect("open");
        next_of(&next).read_exact(&mut begin).expect("a request");
        assert_eq!(&begin, b"GET /slow ");
        assert!(TcpStream::connect(served.address).is_err(), "it accepts nothing any more");
        wait_until(|| served.router.has_ended());
        drop((taken, silent));
    }

    #[test]
    fn a_router_accepts_nothing_before_it_is_to() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        listener.set_nonblocking(true).expect("non-blocking");
        let router = Router::start(listener.into(), None).expect("a thread");
        let mut client = TcpStream::connect(address).expect("connected");
        client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
        router.wake();
        let app = app_of(&router, &["a"]); // an early answer would be 421
        router.accept();
        next_of(&app);
    }

    #[test]
    fn a_hand_over_to_nobody_ends() {
        let served = serve();
        let _slow = served.client(b"GET / HT");
        let [near, far] = sys::socket_pair().expect("a pair");
        drop(far);
        served.router.hand_over(near);
        wait_until(|| served.router.has_ended());
    }

    #[test]
    fn an_app_without_names_gets_connections_that_say_nothing() {
        let served = serve();
        let app = served.app(&[]);
        let _silent = served.client(b"");
        next_of(&app);
    }

    #[test]
    fn a_router_that_is_dropped_leaves_its_port() {
        let served = serve();
        let waiting = served.client(b"GET");
        let address = served.address;
        drop(served);
        assert_eq!((&waiting).read(&mut [0; 1]).unwrap_or(0), 0);
        assert!(TcpStream::connect(address).is_err());
    }
}
