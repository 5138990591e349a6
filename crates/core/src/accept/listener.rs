//! The listener thread of one process: sleeps until a connection waits on one of the listening sockets,
//! which all processes of the server share, and gives it to the least loaded live loop.
//!
//! A connection is accepted only when there is a loop for it here. Until then it stays in the kernel's
//! queue, where any process can take it and none can lose it. A process with clearly less to do is rung
//! and gets a moment to take it first. A loop that leaves connections untaken is in a long callback:
//! they are reclaimed and given to other loops of this process. When no loop takes a connection for
//! long, clients that speak HTTP get 503.
//!
//! The thread sleeps in epoll, without a timer as long as no loop holds a connection. Once a second it
//! pings the loops that do, because clients that keep their connections would not show that a loop is
//! blocked. Where loops accept by themselves (direct.rs) it does not poll the sockets, and checks every
//! ten milliseconds that connections are taken. It holds the lock of its state only to copy changes,
//! and from a choice to its hand-over. Not here: the choice (placement.rs), the hand-over
//! (loop_inbox.rs).
//!
//! Long (over 400 lines): one thread with its one state.

use super::acceptor::MAX_SOCKETS;
use super::board::word;
use super::direct::{CHECK_MS, Direct, Observation, needs_placing};
use super::loop_inbox::{AcceptedConnection, LoopInbox, load_of, now_ms};
use super::placement::{self, Policy};
use super::queue::Queue;
use super::rescue::Rescue;
use super::shared::Shared;
use super::socket::Socket;
use super::turn_away::{BUSY, TurnedAway};
use crate::error::Result;
use crate::sync::Ordering::Relaxed;
use crate::sys::fd::{AsFd, OwnedFd};
use crate::sys::{Accepted, Poller, Trigger};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Connections accepted from one socket before the thread refreshes its state.
const BATCH: usize = 16;
/// Time within which another process may accept a connection left to it.
const LEAVING_TIME: Duration = Duration::from_millis(5);
/// A process that did not respond to a ring is not waited for again within this time. The time doubles
/// with each further ring in vain, up to 64 times.
const SILENCE: Duration = Duration::from_millis(10);
const MAX_DOUBLINGS: u32 = 6;
/// Pause when no loop here can take a connection.
const BLOCKED_PAUSE: Duration = Duration::from_millis(5);
/// Pause when no descriptor is left: one has to be closed first.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);
/// Time between two pings of a loop.
const PING_PERIOD: Duration = Duration::from_secs(1);
/// Pause between two checks of connections that were turned away.
const LINGERING_PAUSE: Duration = Duration::from_millis(50);
/// Time between two updates of the time that loops have slept.
const IDLE_PAUSE: Duration = Duration::from_millis(100);
const BELL: u64 = u64::MAX;

/// Result of one attempt to accept.
enum Outcome {
    Placed,
    /// No loop here takes a connection: it stays in the queue.
    Unwanted,
    /// No connection could be accepted.
    Not(Accepted),
}

/// A process that did not respond to a ring.
#[derive(Debug, Clone, Copy)]
struct Silence {
    at: Instant,
    doublings: u32,
}

impl Silence {
    fn after(last: Option<Silence>) -> Silence {
        let doublings = last.map_or(0, |last| MAX_DOUBLINGS.min(last.doublings + 1));
        Silence { at: Instant::now(), doublings }
    }

    /// True: another ring is not worth it yet.
    fn lasts(&self) -> bool {
        self.at.elapsed() < SILENCE * (1 << self.doublings)
    }
}

/// State of the thread.
pub struct Listener {
    shared: Arc<Shared>,
    poller: Poller,
    /// Polls the bell alone.
    bell_poller: Poller,
    sockets: Vec<Arc<Socket>>,
    inboxes: Vec<Arc<LoopInbox>>,
    /// The sockets in `poller`.
    watched: Vec<Arc<Socket>>,
    /// Index of the loop whose turn it is among equally loaded ones.
    turn: usize,
    pinged_at: Instant,
    idle_at: Instant,
    started_at: Instant,
    /// State of the mode in which loops accept by themselves.
    direct: Direct,
    /// Waiting connections that no loop takes, by the number of their socket.
    queues: [Queue; MAX_SOCKETS as usize],
    /// Processes that did not respond to a ring, by number.
    silences: Vec<Option<Silence>>,
    turned_away: TurnedAway,
    rescue: Rescue,
}

impl Listener {
    pub fn new(shared: Arc<Shared>) -> Result<Listener> {
        let poller = Poller::new()?;
        let bell_poller = Poller::new()?;
        for each in [&poller, &bell_poller] {
            each.add(shared.bells[shared.process as usize].as_fd(), BELL, Trigger::Level)?;
        }
        let processes = shared.board.processes() as usize;
        let rescue = Rescue::new(&shared);
        Ok(Listener {
            shared,
            poller,
            bell_poller,
            sockets: Vec::new(),
            inboxes: Vec::new(),
            watched: Vec::new(),
            turn: 0,
            pinged_at: Instant::now(),
            idle_at: Instant::now(),
            started_at: Instant::now(),
            direct: Direct::default(),
            queues: std::array::from_fn(|_| Queue::default()),
            silences: vec![None; processes],
            turned_away: TurnedAway::default(),
            rescue,
        })
    }

    pub fn run(mut self) {
        while self.refresh_state() {
            let limit = self.time_to_sleep();
            let ready: Vec<u64> = self.poller.wait(limit).collect();
            self.ping();
            self.replace_untaken();
            self.settle_direct();
            self.turn_away_untaken();
            self.turned_away.settle();
            let was_rung = ready.contains(&BELL);
            self.rescue.check(&self.shared, was_rung);
            if was_rung {
                self.shared.bells[self.shared.process as usize].clear();
            }
            for socket in self.watched.clone() {
                // A ring may mean that another process leaves a connection to this one; epoll may not
                // report the socket.
                if was_rung || ready.contains(&socket.number().into()) {
                    self.accept_from(&socket);
                }
            }
        }
    }

    fn time_to_sleep(&self) -> Option<Duration> {
        [self.time_without_input(), self.rescue.pause(&self.shared)].into_iter().flatten().min()
    }

    fn time_without_input(&self) -> Option<Duration> {
        if self.inboxes.iter().any(|inbox| inbox.is_any_untaken()) {
            return Some(Duration::from_millis(placement::SLOW_MS.into()));
        }
        if self.direct.is_on() && self.shared.files.get().is_none() {
            return Some(Duration::from_millis(CHECK_MS));
        }
        if !self.turned_away.is_empty() {
            return Some(LINGERING_PAUSE);
        }
        let is_in_use = self.inboxes.iter().any(|inbox| inbox.is_in_use());
        is_in_use.then(|| PING_PERIOD.saturating_sub(self.pinged_at.elapsed()))
    }

    /// Pings every loop that holds connections, once a second.
    fn ping(&mut self) {
        if self.pinged_at.elapsed() < PING_PERIOD {
            return;
        }
        self.pinged_at = Instant::now();
        let now = now_ms();
        for inbox in &self.inboxes {
            inbox.ping(now);
        }
    }

    /// Copies the shared state and updates the watched sockets. False: the thread has to end.
    fn refresh_state(&mut self) -> bool {
        let state = self.shared.lock();
        self.sockets.clone_from(&state.sockets);
        self.inboxes.clone_from(&state.inboxes);
        let is_closing = state.is_closing;
        // A thread of its own accepts where files are served.
        let has_files = self.shared.files.get().is_some();
        let is_direct = self.direct.is_on() && !has_files;
        let accepts_itself = |socket: &&Arc<Socket>| is_direct && !socket.is_control();
        let direct: Vec<_> = state.sockets.iter().filter(accepts_itself).cloned().collect();
        for inbox in &state.inboxes {
            // Under the lock: a closed inbox or a removed socket does not come back.
            inbox.make_direct(&direct);
        }
        if self.idle_at.elapsed() >= IDLE_PAUSE {
            self.idle_at = Instant::now();
            // Under the lock: every loop with an inbox in the state is alive.
            for inbox in &state.inboxes {
                inbox.publish_idle(now_ms());
            }
        }
        drop(state);
        let listened = self.listened();
        let is_wanted = |socket: &Socket| {
            listened & (1 << socket.number()) != 0
                && (socket.is_control() || !(is_direct || has_files))
        };
        let (poller, sockets) = (&self.poller, &self.sockets);
        self.watched.retain(|socket| {
            let is_registered = sockets.iter().any(|other| Arc::ptr_eq(other, socket));
            let stays = is_registered && is_wanted(socket);
            if !stays {
                poller.remove(socket.as_fd());
            }
            stays
        });
        for socket in sockets {
            let is_watched = self.watched.iter().any(|other| Arc::ptr_eq(other, socket));
            let is_new = !is_watched && is_wanted(socket);
            if is_new && poller.add(socket.as_fd(), socket.number().into(), Trigger::Shared).is_ok()
            {
                self.watched.push(Arc::clone(socket));
            }
        }
        !is_closing
    }

    /// The sockets that a loop here listens on, one bit for each number.
    fn listened(&self) -> u32 {
        self.inboxes.iter().fold(0, |bits, inbox| bits | inbox.listens())
    }

    /// Switches the mode in which loops accept by themselves.
    fn settle_direct(&mut self) {
        let now_ms = self.started_at.elapsed().as_millis() as u64;
        if self.shared.files.get().is_some() || !self.direct.is_check_due(now_ms) {
            return;
        }
        let listened = self.listened();
        let could_be_direct =
            |socket: &&Arc<Socket>| !socket.is_control() && listened & (1 << socket.number()) != 0;
        let sockets: Vec<_> = self.sockets.iter().filter(could_be_direct).collect();
        let state = self.shared.lock(); // a loop with an inbox in the state is alive: its clock is readable
        let slept_ms = state.inboxes.iter().map(|inbox| inbox.slept_ms()).sum();
        drop(state);
        let observed = Observation {
            now_ms,
            loops: self.inboxes.len() as u32,
            placed: self.shared.placed_by(self.shared.process),
            slept_ms,
            has_waiting: sockets.iter().any(|socket| socket.has_waiting()),
            needs_placing: sockets.is_empty()
                || sockets.iter().any(|socket| self.needs_placing(socket.number())),
        };
        if self.direct.check(self.shared.settings.policy, observed) {
            for inbox in &self.inboxes {
                inbox.ping(self::now_ms());
            }
        }
    }

    fn needs_placing(&self, socket: u32) -> bool {
        let Shared { board, process, settings, .. } = &*self.shared;
        let now = now_ms();
        let loads_of = |process: u32| {
            (0..board.loops()).filter_map(move |index| load_of(board, process, index, socket, now))
        };
        let own: Vec<_> = loads_of(*process).collect();
        // When the kernel chooses the process, no connection is left to others.
        let places_anywhere = !matches!(settings.policy, Policy::Kernel | Policy::Sticky);
        let others = (0..board.processes()).filter(|other| places_anywhere && other != process);
        needs_placing(&own, &others.flat_map(loads_of).collect::<Vec<_>>())
    }

    fn accept_from(&mut self, socket: &Arc<Socket>) {
        if self.shared.files.get().is_some() && !socket.is_control() {
            return; // since this thread has read the state
        }
        for _ in 0..BATCH {
            let now = now_ms();
            let scores = self.shared.scores_of(&self.inboxes, socket.number(), now);
            let own = placement::best(&scores, self.turn).map(|(_, score)| score);
            if self.leaves_to_other(socket, own, now) {
                return;
            }
            match self.accept_one(socket) {
                Outcome::Placed | Outcome::Not(Accepted::Connection(_) | Accepted::Again) => {}
                Outcome::Unwanted if self.is_overdue(socket) => {
                    match self.accept_registered(socket) {
                        Accepted::Connection(fd) => self.turn_away_unplaced(fd),
                        _ => return self.pause(BLOCKED_PAUSE),
                    }
                }
                Outcome::Unwanted => return self.pause(BLOCKED_PAUSE),
                Outcome::Not(Accepted::Empty) => return,
                Outcome::Not(Accepted::Exhausted) => {
                    self.shared.count_exhausted();
                    return self.pause(EXHAUSTED_PAUSE);
                }
                Outcome::Not(Accepted::Failed(_)) => {
                    self.poller.remove(socket.as_fd());
                    self.shared.lock().sockets.retain(|other| !Arc::ptr_eq(other, socket));
                    return;
                }
            }
        }
    }

    /// Accepts and places one connection. Holds the lock from the choice to the hand-over, so that no
    /// loop closes its inbox in between (`Acceptor::try_leave`).
    fn accept_one(&mut self, socket: &Arc<Socket>) -> Outcome {
        let shared = Arc::clone(&self.shared);
        let state = shared.lock();
        if !state.sockets.iter().any(|each| Arc::ptr_eq(each, socket)) {
            return Outcome::Not(Accepted::Empty); // removed after it was reported ready
        }
        let now = now_ms();
        let scores = shared.scores_of(&state.inboxes, socket.number(), now);
        let Some((at, _)) = placement::best(&scores, self.turn) else { return Outcome::Unwanted };
        let (fd, chosen) = match socket.accept_for() {
            (Accepted::Connection(fd), chosen) => (fd, chosen),
            (other, _) => return Outcome::Not(other),
        };
        let is_chosen = |inbox: &Arc<LoopInbox>| {
            Some(inbox.index()) == chosen && inbox.listens_to(socket.number())
        };
        let is_sticky = shared.settings.policy == Policy::Sticky;
        let at = state.inboxes.iter().position(|each| is_sticky && is_chosen(each)).unwrap_or(at);
        self.turn = at + 1;
        let inbox = &state.inboxes[at];
        let row = shared.process * shared.board.loops() + inbox.index();
        // Relaxed: see `Shared::score_of`.
        shared.board.turn().store(row + 1, Relaxed);
        // Relaxed: a counter.
        inbox.word(word::PLACED).fetch_add(1, Relaxed);
        inbox.put(AcceptedConnection { socket: socket.number(), fd, at_ms: now, taken_at_ms: 0 });
        Outcome::Placed
    }

    /// Rings a process with clearly less to do and waits for a moment. False: that process took no
    /// connection.
    fn leaves_to_other(&mut self, socket: &Socket, own: Option<u32>, now: u32) -> bool {
        if socket.is_control() && self.shared.settings.policy == Policy::Sticky {
            return false; // no other process reads from it
        }
        let shared = Arc::clone(&self.shared);
        let is_silent =
            |process: u32| self.silences[process as usize].is_some_and(|silence| silence.lasts());
        let best_of = |process: u32| {
            let score = |index| shared.score_of(process, index, socket.number(), now);
            (0..shared.board.loops()).filter_map(score).min().map(|score| (score, process))
        };
        let others = (0..shared.board.processes()).filter(|&process| process != shared.process);
        let best = others.filter(|&process| !is_silent(process)).filter_map(best_of).min();
        let policy = shared.settings.policy;
        if !placement::is_worth_leaving(policy, own, best.map(|(score, _)| score)) {
            return false;
        }
        let Some((_, process)) = best.filter(|_| socket.has_waiting()) else { return false };
        let before = shared.placed_by(process);
        shared.ring(process);
        self.pause(LEAVING_TIME);
        let is_taken = shared.placed_by(process) != before || !socket.has_waiting();
        let known = &mut self.silences[process as usize];
        *known = (!is_taken).then(|| Silence::after(*known));
        is_taken
    }

    /// Sleeps at most `time`; the bell ends it earlier.
    fn pause(&mut self, time: Duration) {
        self.bell_poller.wait(Some(time)).count();
    }

    /// Accepts a connection without a loop for it, unless the socket was removed.
    fn accept_registered(&self, socket: &Arc<Socket>) -> Accepted {
        let state = self.shared.lock();
        let is_registered = state.sockets.iter().any(|each| Arc::ptr_eq(each, socket));
        if is_registered { socket.accept() } else { Accepted::Empty }
    }

    /// True: the next connection of a socket has waited longer than the server's patience, and its
    /// clients understand the answer.
    fn is_overdue(&mut self, socket: &Socket) -> bool {
        let Some(patience) = self.shared.settings.patience else { return false };
        let number = socket.number();
        // Relaxed: written once, when the program begins to listen.
        let speaks_http = |inbox: &Arc<LoopInbox>| {
            inbox.word(word::SPEAKS_HTTP).load(Relaxed) & (1 << number) != 0
        };
        // Read before the length of the queue: a client that leaves the queue in between is counted
        // nowhere, so that none seems to have come.
        let (placed, turned_away) = self.gone_from(socket);
        let (waiting, gone) = match socket.waiting() {
            Some(waiting) => (waiting, placed.wrapping_add(turned_away)),
            // The kernel has no count: all have waited since the last one was placed.
            None => (socket.has_waiting().into(), placed),
        };
        let waits = self.queues[number as usize].oldest_waits(Instant::now(), waiting, gone);
        waits >= patience && self.inboxes.iter().any(speaks_http)
    }

    /// Connections that have left the queue of a socket, or another queue: placed, and turned away.
    fn gone_from(&self, socket: &Socket) -> (u32, u32) {
        let Shared { board, process, settings, .. } = &*self.shared;
        let is_own_queue =
            socket.is_control() || matches!(settings.policy, Policy::Kernel | Policy::Sticky);
        let processes = (0..board.processes()).filter(|other| !is_own_queue || other == process);
        processes.fold((0, 0), |(placed, turned_away): (u32, u32), process| {
            // Relaxed: a counter.
            let never_placed = board.word(process, 0, word::NEVER_PLACED).load(Relaxed);
            let placed = placed.wrapping_add(self.shared.placed_by(process));
            (placed, turned_away.wrapping_add(never_placed))
        })
    }

    fn turn_away_unplaced(&mut self, connection: OwnedFd) {
        let (board, process) = (&self.shared.board, self.shared.process);
        // Relaxed: a counter.
        board.word(process, 0, word::NEVER_PLACED).fetch_add(1, Relaxed);
        self.turn_away(connection);
    }

    fn turn_away(&mut self, connection: OwnedFd) {
        let (board, process) = (&self.shared.board, self.shared.process);
        // Relaxed: a counter.
        board.word(process, 0, word::TURNED_AWAY).fetch_add(1, Relaxed);
        self.turned_away.answer(connection, BUSY);
    }

    /// Answers connections that wait at blocked loops for longer than the server's patience: `replace_untaken`
    /// has found no other loop for them.
    fn turn_away_untaken(&mut self) {
        let Some(patience) = self.shared.settings.patience else { return };
        let patience_ms = u32::try_from(patience.as_millis()).unwrap_or(u32::MAX);
        let now = now_ms();
        let overdue = |inbox: &Arc<LoopInbox>| inbox.silent_ms(now) >= patience_ms;
        for inbox in self.inboxes.clone().iter().filter(|inbox| overdue(inbox)) {
            for connection in inbox.reclaim_old(patience_ms, now) {
                self.turn_away(connection.fd);
            }
        }
    }

    /// Gives connections that a loop has left untaken for too long to a loop that responds.
    fn replace_untaken(&mut self) {
        if self.shared.settings.policy == Policy::Sticky {
            return; // its clients stay with their loop
        }
        let now = now_ms();
        let is_stuck = |inbox: &Arc<LoopInbox>| inbox.silent_ms(now) >= placement::SLOW_MS;
        if !self.inboxes.iter().any(is_stuck) {
            return;
        }
        let state = self.shared.lock(); // as in `accept_one`
        for stuck in &state.inboxes {
            if stuck.silent_ms(now) < placement::SLOW_MS {
                continue;
            }
            let has_time = |inbox: &&Arc<LoopInbox>| inbox.silent_ms(now) < placement::SLOW_MS;
            let others: Vec<_> = state.inboxes.iter().filter(has_time).cloned().collect();
            if others.iter().all(|inbox| inbox.listens() == 0) {
                continue;
            }
            for connection in stuck.reclaim() {
                let scores = self.shared.scores_of(&others, connection.socket, now);
                match placement::best(&scores, self.turn) {
                    Some((at, _)) => {
                        others[at].put(AcceptedConnection { at_ms: now, ..connection })
                    }
                    None => stuck.put(connection),
                }
            }
        }
    }
}
