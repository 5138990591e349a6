//! The thread that answers requests for files, and what it shares with the loops of its process.
//!
//! It accepts by itself from the listening sockets that a loop listens to, and keeps a connection until a
//! request comes that it does not answer. Connections that are idle for long end here by the rules of Node's
//! server; one on which nothing has come goes to a loop after a moment. When the loops of the process drain,
//! each connection ends with its next answer, or after a second without a request, as in drain.ts.
//!
//! Long (over 400 lines) with its tests.

use super::super::acceptor::MAX_SOCKETS;
use super::super::board::{Board, word};
use super::super::loop_inbox::{AcceptedConnection, LoopInbox, now_ms};
use super::super::shared::Shared;
use super::super::socket::Socket;
use super::connection::{Connection, Next};
use super::file::{CachedFile, FileSource};
use super::request::Request;
use crate::error::{CoreError, Result};
use crate::sync::Ordering::Relaxed;
use crate::sys::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use crate::sys::{self, Accepted, Poller, Trigger};
use crate::wake::doorbell::Doorbell;
use lru::LruCache;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

/// Files in the cache, at most; large ones have a descriptor each.
const MAX_FILES: u64 = 1024;
/// Share of the descriptors of the process for them.
const DESCRIPTORS_SHARE: u64 = 8;
/// Connections at loops that may come back.
const MAX_HANDED: NonZeroUsize = NonZeroUsize::new(16_384).unwrap();
/// A head that does not fit is left to the loop.
const BUFFER_BYTES: usize = 8192;
const STACK_BYTES: usize = 128 * 1024;
/// Connections accepted in one turn: other processes share the socket.
const BATCH: usize = 4;
const TICK: Duration = Duration::from_secs(1);
/// Pause when no descriptor is left, or the process has as many connections as it may.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);
/// Time without a request after which a connection ends in a drain, and after which an answered one is closed.
const DRAIN_IDLE_MS: u32 = 1000;
/// Time until a connection without any input goes to a loop, whose limits for slow clients then apply.
const FIRST_INPUT_MS: u32 = 5000;
/// Node closes an idle connection a second after the time that it has promised.
const GRACE_MS: u32 = 1000;

const BELL: u64 = u64::MAX;
/// Numbers of connections in the poller begin here.
const FIRST: u64 = 1 << 32;

/// The cache of a process, and the connections between thread and loops.
pub struct Files {
    cache: Mutex<LruCache<Vec<u8>, Arc<CachedFile>>>,
    bell: Doorbell,
    keep_alive_s: u32,
    /// Connections that loops have given back, with the numbers of their listening sockets.
    returned: Mutex<Vec<(u32, OwnedFd)>>,
    /// Socket number and size of the request, by the kernel's number of a connection that a loop has.
    handed: Mutex<LruCache<u64, (u32, u32)>>,
    /// Connections of the thread, and those on their way to it. The scoreboard has the number for others.
    held: AtomicU32,
    board: Arc<Board>,
    process: u32,
    /// True once the thread has ended: nothing can be given back.
    has_ended: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn key_of(target: &[u8], accept_encoding: &[u8], key: &mut Vec<u8>) {
    key.clear();
    key.extend_from_slice(accept_encoding);
    key.push(b'\n'); // in neither
    key.extend_from_slice(target);
}

impl Files {
    /// `keep_alive_s`: promised to clients, in seconds; 0: nothing is promised.
    pub fn new(keep_alive_s: u32, board: Arc<Board>, process: u32) -> Result<Files> {
        let size = (sys::descriptor_limit() / DESCRIPTORS_SHARE).clamp(1, MAX_FILES) as usize;
        let size = NonZeroUsize::new(size).unwrap_or(NonZeroUsize::MIN);
        Ok(Files {
            cache: Mutex::new(LruCache::new(size)),
            bell: Doorbell::new()?,
            keep_alive_s,
            returned: Mutex::default(),
            handed: Mutex::new(LruCache::new(MAX_HANDED)),
            held: AtomicU32::new(0),
            board,
            process,
            has_ended: AtomicBool::new(false),
        })
    }

    /// Adds what a loop has sent. False: the file has changed meanwhile, or cannot be trusted.
    pub fn add(&self, target: &[u8], accept_encoding: &[u8], source: FileSource<'_>) -> bool {
        let Ok(file) = CachedFile::new(source) else { return false };
        let mut key = Vec::new();
        key_of(target, accept_encoding, &mut key);
        lock(&self.cache).put(key, Arc::new(file));
        true
    }

    /// Takes a connection from a loop that has answered the request which it was handed over for, and has read
    /// nothing else. False: the loop keeps it. The loop has to close its own descriptor without a shutdown.
    pub fn take_back(&self, connection: BorrowedFd<'_>, bytes_read: u32) -> bool {
        let cookie = sys::socket_cookie(connection.as_raw_fd());
        let Some((socket, size)) = lock(&self.handed).pop(&cookie) else { return false };
        if size != bytes_read {
            return false;
        }
        let Ok(fd) = sys::duplicate(connection) else { return false };
        let mut returned = lock(&self.returned);
        // Under the lock: the thread sets it before it empties the list for the last time.
        if self.has_ended.load(Ordering::Relaxed) {
            return false;
        }
        self.enter();
        returned.push((socket, fd));
        drop(returned);
        self.bell.ring();
        true
    }

    /// Connections that are not at a loop.
    pub fn held(&self) -> u32 {
        self.held.load(Ordering::Acquire)
    }

    pub fn wake(&self) {
        self.bell.ring();
    }

    /// A word of the process, in its first row.
    fn word(&self, offset: usize) -> &crate::sync::AtomicU32 {
        self.board.word(self.process, 0, offset)
    }

    /// Counts a connection that the thread gets.
    fn enter(&self) {
        self.held.fetch_add(1, Ordering::AcqRel);
        self.word(word::FILES_OPEN).fetch_add(1, Relaxed);
    }

    /// Counts a connection that has ended, or goes to a loop.
    fn leave(&self) {
        self.held.fetch_sub(1, Ordering::AcqRel);
        self.word(word::FILES_OPEN).fetch_sub(1, Relaxed);
    }

    /// True: the thread and the loops have as many connections as these loops may have together.
    fn are_too_many(&self, inboxes: &[Arc<LoopInbox>]) -> bool {
        // Relaxed: as when a loop's limit is read for a connection (placement.rs).
        let sum =
            |offset| inboxes.iter().map(|each| u64::from(each.word(offset).load(Relaxed))).sum();
        let (open, limit): (u64, u64) = (sum(word::OPEN), sum(word::LIMIT));
        open + u64::from(self.held()) >= limit
    }
}

/// Starts the thread; it ends when the state is closing.
pub fn start(shared: Arc<Shared>, files: Arc<Files>) -> Result<JoinHandle<()>> {
    let thread = FileThread::new(shared, files)?;
    std::thread::Builder::new()
        .name("manycore-files".into())
        .stack_size(STACK_BYTES)
        .spawn(move || thread.run())
        .map_err(|error| CoreError::Refused {
            what: "a thread",
            errno: error.raw_os_error().unwrap_or(0),
        })
}

struct FileThread {
    shared: Arc<Shared>,
    files: Arc<Files>,
    poller: Poller,
    /// The listening sockets in `poller`.
    watched: Vec<Arc<Socket>>,
    /// The sockets that a loop here listens to, one bit each.
    listened: u32,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    ticked_at: Instant,
    exhausted_at: Option<Instant>,
    /// Bytes of all connections.
    written: u64,
    buffer: Box<[u8]>,
    answers: Answers,
}

/// State that answers need: the cache, the turn, the fields of the connection.
pub struct Answers {
    files: Arc<Files>,
    key: Vec<u8>,
    /// Number of the turn: of the wait that has reported the requests.
    turn: u32,
    now_ms: u32,
    /// Second of the date in `last_fields`.
    second: u64,
    stays: String,
    closes: String,
}

impl Answers {
    /// The file for a request, if it is current.
    pub fn find(&mut self, request: &Request<'_>) -> Option<Arc<CachedFile>> {
        key_of(request.target, request.accept_encoding, &mut self.key);
        let mut cache = lock(&self.files.cache);
        let file = Arc::clone(cache.get(self.key.as_slice())?);
        if file.is_current(self.turn) {
            return Some(file);
        }
        cache.pop(self.key.as_slice());
        None
    }

    /// The fields at the end of a head.
    pub fn last_fields(&mut self, closes: bool) -> &str {
        let now = SystemTime::now();
        let second = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        if self.second != second || self.stays.is_empty() {
            self.second = second;
            let date = httpdate::fmt_http_date(now);
            let keep_alive = match self.files.keep_alive_s {
                0 => String::new(),
                seconds => format!("Keep-Alive: timeout={seconds}\r\n"),
            };
            self.stays = format!("Date: {date}\r\nConnection: keep-alive\r\n{keep_alive}\r\n");
            self.closes = format!("Date: {date}\r\nConnection: close\r\n\r\n");
        }
        if closes { &self.closes } else { &self.stays }
    }

    pub fn now_ms(&self) -> u32 {
        self.now_ms
    }
}

impl FileThread {
    fn new(shared: Arc<Shared>, files: Arc<Files>) -> Result<FileThread> {
        let poller = Poller::new()?;
        poller.add(files.bell.as_fd(), BELL, Trigger::Level)?;
        let answers = Answers {
            files: Arc::clone(&files),
            key: Vec::new(),
            turn: 0,
            now_ms: now_ms(),
            second: 0,
            stays: String::new(),
            closes: String::new(),
        };
        Ok(FileThread {
            shared,
            files,
            poller,
            watched: Vec::new(),
            listened: 0,
            connections: Vec::new(),
            free: Vec::new(),
            ticked_at: Instant::now(),
            exhausted_at: None,
            written: 0,
            buffer: vec![0; BUFFER_BYTES].into(),
            answers,
        })
    }

    fn run(mut self) {
        let mut is_open = self.refresh();
        while is_open {
            let ready: Vec<u64> = self.poller.wait(self.time_to_sleep()).collect();
            self.answers.now_ms = now_ms();
            self.answers.turn = self.answers.turn.checked_add(1).unwrap_or(1);
            // First: a drain that begins now counts for the requests of this turn.
            if ready.contains(&BELL) || self.is_exhaustion_over() {
                self.files.bell.clear();
                is_open = self.refresh();
                self.take_returned();
            }
            for number in ready {
                match number {
                    BELL => {}
                    FIRST.. => self.advance((number - FIRST) as usize),
                    _ => self.accept_from(number as u32),
                }
            }
            if self.ticked_at.elapsed() >= TICK {
                self.ticked_at = Instant::now();
                self.tick();
            }
        }
        let mut returned = lock(&self.files.returned);
        self.files.has_ended.store(true, Ordering::Relaxed); // under the lock, as it is read
        returned.clear();
    }

    fn time_to_sleep(&self) -> Option<Duration> {
        let until = |pause: Duration, since: Instant| pause.saturating_sub(since.elapsed());
        let exhausted = self.exhausted_at.map(|since| until(EXHAUSTED_PAUSE, since));
        let has_any = self.connections.len() > self.free.len();
        let tick = has_any.then(|| until(TICK, self.ticked_at));
        [exhausted, tick].into_iter().flatten().min()
    }

    fn is_exhaustion_over(&mut self) -> bool {
        let is_over = self.exhausted_at.is_some_and(|since| since.elapsed() >= EXHAUSTED_PAUSE);
        if is_over {
            self.exhausted_at = None;
        }
        is_over
    }

    /// Reads the shared state, and watches the sockets that are listened to. False: the thread has to end.
    fn refresh(&mut self) -> bool {
        let shared = Arc::clone(&self.shared);
        let state = shared.lock();
        self.listened = state.inboxes.iter().fold(0, |bits, inbox| bits | inbox.listens());
        let listened = if self.exhausted_at.is_some() { 0 } else { self.listened };
        let is_wanted =
            |socket: &Arc<Socket>| !socket.is_control() && listened & (1 << socket.number()) != 0;
        let wanted: Vec<_> = state.sockets.iter().filter(|each| is_wanted(each)).cloned().collect();
        let is_closing = state.is_closing;
        drop(state);
        let poller = &self.poller;
        self.watched.retain(|socket| {
            let stays = wanted.iter().any(|other| Arc::ptr_eq(other, socket));
            if !stays {
                poller.remove(socket.as_fd());
            }
            stays
        });
        for socket in wanted {
            let is_new = !self.watched.iter().any(|other| Arc::ptr_eq(other, &socket));
            if is_new {
                sys::accept_without_delay(socket.as_fd());
            }
            let number = socket.number().into();
            if is_new && poller.add(socket.as_fd(), number, Trigger::Shared).is_ok() {
                self.watched.push(socket);
            }
        }
        !is_closing
    }

    fn accept_from(&mut self, number: u32) {
        let sockets = self.watched.clone();
        for socket in sockets.iter().filter(|socket| socket.number() == number) {
            for _ in 0..BATCH {
                match self.accept_one(socket) {
                    Accepted::Connection(fd) => self.enter(fd, number, false),
                    Accepted::Again => {}
                    Accepted::Exhausted => {
                        self.exhausted_at = Some(Instant::now());
                        self.refresh();
                        return;
                    }
                    Accepted::Empty => break,
                    Accepted::Failed(_) => {
                        self.poller.remove(socket.as_fd());
                        self.watched.retain(|other| !Arc::ptr_eq(other, socket));
                        break;
                    }
                }
            }
        }
    }

    /// Accepts under the lock: a socket that was removed, or that no loop listens to any more, has no further
    /// connection, and a loop that leaves finds each counted (`Acceptor::try_leave`).
    fn accept_one(&self, socket: &Arc<Socket>) -> Accepted {
        let state = self.shared.lock();
        let is_registered = state.sockets.iter().any(|each| Arc::ptr_eq(each, socket));
        if !is_registered || !state.inboxes.iter().any(|each| each.listens_to(socket.number())) {
            return Accepted::Empty;
        }
        if self.files.are_too_many(&state.inboxes) {
            return Accepted::Exhausted;
        }
        let accepted = socket.accept();
        match accepted {
            Accepted::Connection(_) => self.files.enter(),
            Accepted::Exhausted => self.shared.count_exhausted(),
            _ => {}
        }
        accepted
    }

    /// Adds a connection, which is counted already. `has_answered`: its client has had an answer.
    fn enter(&mut self, fd: OwnedFd, socket: u32, has_answered: bool) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        let connection = Connection::new(fd, socket, self.answers.now_ms, has_answered);
        if self.poller.add(connection.as_fd(), FIRST + slot as u64, Trigger::Level).is_err() {
            self.free.push(slot);
            self.files.leave();
            return;
        }
        self.connections[slot] = Some(connection);
    }

    fn take_returned(&mut self) {
        let returned = std::mem::take(&mut *lock(&self.files.returned));
        for (socket, fd) in returned {
            self.enter(fd, socket, true);
        }
    }

    fn drains(&self, socket: u32) -> bool {
        self.listened & (1 << socket) == 0
    }

    fn advance(&mut self, slot: usize) {
        let Some(Some(connection)) = self.connections.get(slot) else { return };
        let (closes, wrote) = (self.drains(connection.socket), connection.writes());
        let Some(connection) = &mut self.connections[slot] else { return };
        let (answers, written) = (connection.answers, connection.written);
        let next = connection.advance(&mut self.answers, &mut self.buffer, closes);
        // Relaxed: counters.
        if connection.answers != answers {
            self.files.word(word::FILES_SENT).fetch_add(1, Relaxed);
        }
        self.written += connection.written - written;
        self.files.word(word::FILES_KIB).store((self.written / 1024) as u32, Relaxed);
        match next {
            Next::Input if wrote => self.watch(slot, false),
            Next::Room if !wrote => self.watch(slot, true),
            Next::Input | Next::Room => {}
            Next::Loop(size) => self.hand_over(slot, size),
            Next::Close => drop(self.remove(slot)),
        }
    }

    fn watch(&mut self, slot: usize, for_room: bool) {
        let Some(Some(connection)) = self.connections.get(slot) else { return };
        let number = FIRST + slot as u64;
        if self.poller.await_room(connection.as_fd(), number, for_room).is_err() {
            drop(self.remove(slot));
        }
    }

    fn remove(&mut self, slot: usize) -> Option<Connection> {
        let connection = self.connections.get_mut(slot)?.take()?;
        self.poller.remove(connection.as_fd());
        self.free.push(slot);
        self.files.leave();
        Some(connection)
    }

    /// Gives a connection with an unread request to a loop. In a drain a loop that leaves takes it: it does not
    /// leave before (`Acceptor::try_leave`).
    fn hand_over(&mut self, slot: usize, size: Option<usize>) {
        let shared = Arc::clone(&self.shared);
        let state = shared.lock();
        let Some(connection) = self.remove(slot) else { return };
        let socket = connection.socket;
        let fd = connection.into_fd();
        if let Some(size) = size {
            let cookie = sys::socket_cookie(fd.as_raw_fd());
            lock(&self.files.handed).put(cookie, (socket, size as u32));
        }
        let at_ms = now_ms();
        // Marked as taken from elsewhere: it may have had requests here.
        let connection = AcceptedConnection { socket, fd, at_ms, taken_at_ms: at_ms.max(1) };
        let placed = if state.inboxes.iter().any(|inbox| inbox.listens_to(socket)) {
            shared.put_into_best(&state.inboxes, connection)
        } else {
            let first: Option<&Arc<LoopInbox>> = state.inboxes.first();
            first.inspect(|inbox| inbox.put(connection))
        };
        if let Some(inbox) = placed {
            // Relaxed: a counter.
            inbox.word(word::PLACED).fetch_add(1, Relaxed);
        }
    }

    /// Ends what has been idle for too long.
    fn tick(&mut self) {
        let keep_ms = self.files.keep_alive_s.saturating_mul(1000).saturating_add(GRACE_MS);
        for slot in 0..self.connections.len() {
            let Some(connection) = &self.connections[slot] else { continue };
            if connection.writes() {
                continue; // a slow client: as under Node without a limit
            }
            let idle_ms = self.answers.now_ms.wrapping_sub(connection.since_ms);
            let drains = self.drains(connection.socket);
            if connection.lingers || drains {
                if idle_ms >= DRAIN_IDLE_MS {
                    drop(self.remove(slot));
                }
            } else if connection.has_answered {
                if idle_ms >= keep_ms {
                    drop(self.remove(slot));
                }
            } else if idle_ms >= FIRST_INPUT_MS {
                self.hand_over(slot, None);
            }
        }
    }
}

const _: () = assert!((MAX_SOCKETS as u64) < FIRST);

#[cfg(test)]
mod tests {
    use super::super::super::acceptor::{Acceptor, Settings};
    use super::super::super::board::{Board, state};
    use super::super::super::placement::Policy;
    use super::*;
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::path::PathBuf;

    const SOCKET: u32 = 3;
    const GET: &[u8] = b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n";
    const POST: &[u8] = b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";

    /// A process with one loop, whose part the tests play.
    struct Process {
        acceptor: Acceptor,
        files: Arc<Files>,
        inbox: Arc<LoopInbox>,
        address: SocketAddr,
        folder: PathBuf,
    }

    impl Process {
        fn start(name: &str) -> Process {
            let (board, _) = Board::create(1, 1).expect("memfd");
            let settings = Settings { policy: Policy::LeastLoaded, patience: None };
            let bell = || Doorbell::new().expect("eventfd");
            let acceptor = Acceptor::start(Arc::new(board), 0, vec![bell()], settings, None);
            let acceptor = acceptor.expect("a thread");
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            listener.set_nonblocking(true).expect("non-blocking");
            let address = listener.local_addr().expect("bound");
            acceptor.add_socket(SOCKET, listener.into()).expect("a free number");
            let inbox = acceptor.add_inbox(0, bell(), Box::new(|| 5), None).expect("a free inbox");
            inbox.word(word::LIMIT).store(1000, Relaxed);
            let files = acceptor.serve_files(5).expect("a thread").expect("no router");
            inbox.word(word::STATE).store(state::READY, Relaxed);
            inbox.word(word::LISTENS).store(1 << SOCKET, Relaxed);
            acceptor.wake();
            let name = format!("manycore-files-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            std::fs::create_dir_all(&folder).expect("a folder");
            Process { acceptor, files, inbox, address, folder }
        }

        fn connect(&self) -> TcpStream {
            TcpStream::connect(self.address).expect("connected")
        }

        /// Puts a file into the cache, as a loop does.
        fn add(&self, bytes: &[u8]) {
            let path = self.folder.join("a");
            std::fs::write(&path, bytes).expect("written");
            let file = std::fs::File::options().read(true).write(true).open(&path).expect("opened");
            file.set_modified(SystemTime::UNIX_EPOCH).expect("set");
            let length = ("Content-Length".into(), bytes.len().to_string());
            wait_until("settled", || {
                let source = FileSource {
                    path: path.clone(),
                    file: file.as_fd(),
                    fields: vec![length.clone()],
                };
                self.files.add(b"/a", b"", source)
            });
        }

        /// The next connection of the loop.
        fn taken(&self) -> AcceptedConnection {
            let mut taken = None;
            wait_until("handed over", || {
                taken = self.inbox.take();
                taken.is_some()
            });
            taken.expect("just found")
        }

        fn drain(&self) {
            self.inbox.word(word::STATE).store(state::DRAINING, Relaxed);
            self.acceptor.wake();
        }
    }

    impl Drop for Process {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }

    fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
        let started = Instant::now();
        while !is_so() {
            assert!(started.elapsed() < Duration::from_secs(20), "never {what}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Reads an answer with this many bytes after its head.
    fn read(client: &mut TcpStream, count: usize) -> (String, Vec<u8>) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            client.read_exact(&mut byte).expect("a head");
            head.push(byte[0]);
        }
        let mut body = vec![0; count];
        client.read_exact(&mut body).expect("a body");
        (String::from_utf8(head).expect("text"), body)
    }

    #[test]
    fn what_is_not_cached_goes_to_a_loop_with_all_its_bytes() {
        let process = Process::start("unknown");
        let mut client = process.connect();
        client.write_all(GET).expect("sent");
        let mut stream = TcpStream::from(process.taken().fd);
        stream.set_nonblocking(false).expect("blocking");
        let mut bytes = vec![0; GET.len()];
        stream.read_exact(&mut bytes).expect("unread");
        assert_eq!(bytes, GET);
        assert_eq!(process.files.held(), 0);
    }

    /// Checks the option, because a test of its effect would measure times.
    #[test]
    fn small_answers_are_not_held_back_until_the_client_acknowledges_the_one_before() {
        let process = Process::start("no-delay");
        // Not for connections that the kernel has made before the thread watches the socket.
        wait_until("inherited", || {
            process.connect().write_all(POST).expect("sent");
            TcpStream::from(process.taken().fd).nodelay().expect("a TCP socket")
        });
    }

    #[test]
    fn a_cached_file_is_answered_again_and_again_and_other_requests_follow() {
        let process = Process::start("cached");
        process.add(b"12345");
        let mut client = process.connect();
        for _ in 0..3 {
            client.write_all(GET).expect("sent");
            let (head, body) = read(&mut client, 5);
            assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nDate: "), "{head}");
            assert!(head.ends_with("\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\n\r\n"));
            assert_eq!(body, b"12345");
        }
        client.write_all(&[GET, GET, POST].concat()).expect("sent");
        for _ in 0..2 {
            assert_eq!(read(&mut client, 5).1, b"12345");
        }
        assert_eq!(process.taken().socket, SOCKET);
    }

    #[test]
    fn a_large_file_reaches_a_slow_client_whole() {
        let process = Process::start("large");
        let bytes: Vec<u8> = (0..20_000_000u32).map(|at| (at % 251) as u8).collect();
        process.add(&bytes);
        let mut client = process.connect();
        client.write_all(&[GET, GET].concat()).expect("sent");
        std::thread::sleep(Duration::from_millis(50)); // the socket's buffers fill
        for _ in 0..2 {
            assert!(read(&mut client, bytes.len()).1 == bytes);
        }
    }

    #[test]
    fn a_file_that_becomes_shorter_ends_its_connection() {
        let process = Process::start("shorter");
        process.add(&vec![7; 20_000_000]);
        let mut client = process.connect();
        client.write_all(GET).expect("sent");
        let mut first = [0; 1000];
        client.read_exact(&mut first).expect("the beginning");
        let path = process.folder.join("a");
        let file = std::fs::File::options().write(true).open(path).expect("opened");
        file.set_len(1000).expect("shorter");
        let mut rest = Vec::new();
        let _ = client.read_to_end(&mut rest); // the end, or a reset
        assert!(rest.len() < 19_000_000);
        wait_until("closed", || process.files.held() == 0);
    }

    #[test]
    fn a_file_that_changes_is_left_to_the_loop() {
        let process = Process::start("changes");
        process.add(b"12345");
        let mut client = process.connect();
        client.write_all(GET).expect("sent");
        assert_eq!(read(&mut client, 5).1, b"12345");
        std::fs::write(process.folder.join("a"), b"54321").expect("written");
        client.write_all(GET).expect("sent");
        process.taken();
    }

    #[test]
    fn a_loop_gives_a_connection_back_only_when_it_has_read_one_request() {
        let process = Process::start("returned");
        let mut client = process.connect();
        client.write_all(GET).expect("sent");
        let taken = process.taken();
        assert!(!process.files.take_back(taken.fd.as_fd(), GET.len() as u32 + 1));
        assert!(!process.files.take_back(taken.fd.as_fd(), GET.len() as u32), "asked twice");
        let mut client = process.connect();
        client.write_all(&[GET, b"G"].concat()).expect("sent");
        let taken = process.taken();
        assert!(!process.files.take_back(taken.fd.as_fd(), GET.len() as u32), "more has come");
        let mut client = process.connect();
        client.write_all(GET).expect("sent");
        let taken = process.taken();
        let mut bytes = vec![0; GET.len()];
        let mut stream = TcpStream::from(taken.fd);
        stream.read_exact(&mut bytes).expect("read");
        assert!(process.files.take_back(stream.as_fd(), GET.len() as u32));
        drop(stream);
        process.add(b"12345");
        client.write_all(GET).expect("sent");
        assert_eq!(read(&mut client, 5).1, b"12345");
    }

    #[test]
    fn a_drain_ends_each_connection_with_its_next_answer_and_the_last_loop_waits() {
        let process = Process::start("drain");
        process.add(b"12345");
        let mut clients = [process.connect(), process.connect(), process.connect()];
        for client in &mut clients {
            client.write_all(GET).expect("sent");
            assert_eq!(read(client, 5).1, b"12345");
        }
        process.drain();
        assert!(!process.acceptor.try_leave(&process.inbox), "three connections are open");
        clients[0].write_all(GET).expect("sent");
        let (head, body) = read(&mut clients[0], 5);
        assert!(head.ends_with("\r\nConnection: close\r\n\r\n"), "{head}");
        assert_eq!(
            (body.as_slice(), clients[0].read(&mut [0]).expect("the end")),
            (b"12345".as_slice(), 0)
        );
        clients[1].write_all(POST).expect("sent");
        drop(process.taken());
        assert_eq!(clients[2].read(&mut [0]).expect("the end"), 0, "it was idle");
        drop(clients);
        wait_until("empty", || process.files.held() == 0);
        assert!(process.acceptor.try_leave(&process.inbox));
    }

    #[test]
    fn a_connection_waits_while_the_process_has_as_many_as_its_loop_may_have() {
        let process = Process::start("full");
        process.add(b"12345");
        let at_loop = process.inbox.word(word::OPEN);
        process.inbox.word(word::LIMIT).store(3, Relaxed);
        at_loop.store(1, Relaxed);
        let (mut first, mut second) = (process.connect(), process.connect());
        wait_until("accepted", || process.files.held() == 2);
        let mut third = process.connect();
        third.write_all(GET).expect("sent");
        for _ in 0..3 {
            // The thread gets these after the third connection.
            first.write_all(GET).expect("sent");
            assert_eq!(read(&mut first, 5).1, b"12345");
        }
        assert_eq!(process.files.held(), 2);
        drop(first);
        assert_eq!(read(&mut third, 5).1, b"12345");
        let mut fourth = process.connect();
        fourth.write_all(GET).expect("sent");
        second.write_all(GET).expect("sent");
        assert_eq!(read(&mut second, 5).1, b"12345");
        at_loop.store(0, Relaxed); // one of the loop's has ended
        assert_eq!(read(&mut fourth, 5).1, b"12345");
    }

    #[test]
    fn the_scoreboard_has_what_the_thread_holds_and_has_sent() {
        let process = Process::start("counts");
        process.add(&[7; 2048]);
        let mut client = process.connect();
        for _ in 0..2 {
            client.write_all(GET).expect("sent");
            read(&mut client, 2048);
        }
        let count = |offset| process.files.word(offset).load(Relaxed);
        wait_until("counted", || count(word::FILES_SENT) == 2);
        wait_until("counted", || count(word::FILES_KIB) == 4);
        assert_eq!(count(word::FILES_OPEN), 1);
        client.write_all(POST).expect("sent");
        process.taken();
        wait_until("gone", || count(word::FILES_OPEN) == 0);
    }

    #[test]
    fn clients_that_send_nothing_or_leave_are_no_longer_held() {
        let process = Process::start("gone");
        let client = process.connect();
        wait_until("accepted", || process.files.held() == 1);
        drop(client);
        wait_until("closed", || process.files.held() == 0);
        let _silent = process.connect();
        assert_eq!(process.taken().socket, SOCKET);
    }

    #[test]
    fn the_thread_ends_with_its_acceptor() {
        let process = Process::start("end");
        process.add(b"12345");
        let mut client = process.connect();
        client.write_all(GET).expect("sent");
        assert_eq!(read(&mut client, 5).1, b"12345");
        let files = Arc::clone(&process.files);
        let taken = {
            let mut other = process.connect();
            other.write_all(POST).expect("sent");
            process.taken()
        };
        drop(process);
        assert_eq!(client.read(&mut [0]).expect("the end"), 0);
        assert!(!files.take_back(taken.fd.as_fd(), POST.len() as u32));
    }
}
