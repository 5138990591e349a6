//! Kept-alive connections leave a loop that is blocked: the listener thread takes those that are between
//! two requests and have input, and gives each to a loop that has time, as an accepted connection.
//!
//! While requests come, the thread checks its loops every few ms. A loop that has neither slept nor begun
//! or answered a request since is pinged; one that does not answer is blocked. Of its connections those
//! are candidates of which nothing was read (idle.rs). Then its thread is made to stand still
//! (wake/pause.rs), because it may come back at any moment; each candidate is checked once more, its
//! connection is moved to a new descriptor, and a closed pipe takes the number's place. So libuv's
//! books stay right: the loop later reads the end of a connection, and closes the number itself.
//!
//! Without a loop here, the connection goes to another process over a socket that all share. It waits there
//! until a listener thread with a live loop takes it: the rung one, or this one again.
//!
//! While the loop stands, this thread allocates nothing and takes no lock: the loop may hold any.
//!
//! Long (over 400 lines): a third of it is tests of thread, gate and hand-over together.

use super::acceptor::MAX_SOCKETS;
use super::board::{state, word};
use super::idle::{Candidate, IdleConnections, Rested};
use super::loop_inbox::{AcceptedConnection, LoopInbox, now_ms};
use super::placement::{self, SLOW_MS};
use super::shared::{Shared, State};
use crate::sync::Ordering::Relaxed;
use crate::sys::fd::{AsFd, OwnedFd, RawFd};
use crate::sys::{self, Accepted, OwnSignal, Passed};
use crate::wake::pause::Gate;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Pause between two checks of the loops, and while one of them is blocked.
const CHECK: Duration = Duration::from_millis(5);
const SOON: Duration = Duration::from_millis(2);
/// Without a request for this time the checks end; the next request begins them again.
const QUIET: Duration = Duration::from_secs(1);
/// Bound of either side's wait for the other, when a loop is to stand still.
const STAND: Duration = Duration::from_millis(2);
/// Connections that are taken while a loop stands, and in a second.
const BATCH: usize = 16;
const MAX_PER_SECOND: u32 = 2000;
/// A connection stays where it is for so long after it was taken. Not longer: the next heavy request may come
/// to the loop that has it now.
const REST_MS: u32 = 20;
/// Loops whose threads can be made to stand, in one process.
const MAX_GATES: usize = 256;

/// Ends of the socket over which connections go from process to process; all processes have both.
#[derive(Debug)]
pub struct Handover {
    pub send: OwnedFd,
    pub receive: OwnedFd,
}

impl Handover {
    /// True: a connection waits for a process that takes it.
    fn has_waiting(&self) -> bool {
        sys::control_socket_queue(self.receive.as_fd()).is_some_and(|count| count > 0)
    }
}

/// The gates of this process, which the handler of the signal finds by number.
static GATES: [Place; MAX_GATES] =
    [const { Place { gate: OnceLock::new(), owner: AtomicI32::new(0) } }; MAX_GATES];

struct Place {
    gate: OnceLock<Gate>,
    /// The thread that stands at it, 0 for none: a signal that comes late must not stop another one.
    owner: AtomicI32,
}

fn on_signal(value: u64) {
    let Some(place) = usize::try_from(value).ok().and_then(|at| GATES.get(at)) else { return };
    let Some(gate) = place.gate.get() else { return };
    // Relaxed: the owner wrote it in this thread.
    if place.owner.load(Ordering::Relaxed) != sys::thread_id() {
        return;
    }
    let (started, mut waits) = (Instant::now(), 0u32);
    gate.stand(|| {
        waits = waits.saturating_add(1);
        if waits < 64 {
            std::hint::spin_loop()
        } else {
            sys::yield_core()
        }
        started.elapsed() < STAND
    });
}

/// Access to a loop from which connections may be taken: its thread, its poller, its idle connections.
pub struct LoopThread {
    signal: OwnSignal,
    gate: usize,
    thread: i32,
    backend: RawFd,
    idle: Arc<IdleConnections>,
}

impl LoopThread {
    /// For the calling thread, whose event loop polls with the epoll descriptor `backend`. `None`: the kernel
    /// refuses something, or there is no signal for it.
    pub fn here(backend: RawFd) -> Option<LoopThread> {
        let idle = Arc::new(IdleConnections::new().ok()?);
        let signal = OwnSignal::claim(on_signal)?;
        let thread = sys::thread_id();
        let claim = |place: &&Place| {
            // AcqRel pairs with the Release of `drop`: the last owner is done with the gate.
            let claimed =
                place.owner.compare_exchange(0, thread, Ordering::AcqRel, Ordering::Relaxed);
            claimed.is_ok()
        };
        let gate = GATES.iter().position(|place| claim(&place))?;
        GATES[gate].gate.get_or_init(Gate::default);
        Some(LoopThread { signal, gate, thread, backend, idle })
    }

    pub fn idle(&self) -> &Arc<IdleConnections> {
        &self.idle
    }

    /// Runs `act` while the thread stands. `None`: it did not stand within the bound, and `act` was not run.
    fn while_it_stands<T>(&self, act: impl FnOnce() -> T) -> Option<T> {
        let gate = GATES[self.gate].gate.get()?;
        if gate.ask() && !self.signal.send(self.thread, self.gate as u64) {
            gate.take_back();
            return None;
        }
        let started = Instant::now();
        let mut waits = 0u32;
        while !gate.try_hold() {
            if started.elapsed() >= STAND {
                if gate.withdraw() || !gate.try_hold() {
                    return None;
                }
                break;
            }
            waits = waits.saturating_add(1);
            if waits < 64 { std::hint::spin_loop() } else { sys::yield_core() }
        }
        let held = Held(gate);
        let result = act();
        drop(held);
        Some(result)
    }

    /// Takes those of `candidates` that may still be taken once the loop stands, if it is still blocked then: the
    /// next request of the client that has blocked it must not follow the others.
    fn take(
        &self,
        candidates: &[Candidate],
        rested: Rested,
        is_blocked: impl Fn() -> bool,
    ) -> Vec<(u32, OwnedFd)> {
        if !sys::may_be_signalled(self.thread) {
            return Vec::new();
        }
        let pairs: Vec<_> =
            candidates.iter().map_while(|_| sys::socket_pair().ok()).take(BATCH).collect();
        let mut taken: [Option<(u32, OwnedFd)>; BATCH] = [const { None }; BATCH];
        let count = self.while_it_stands(|| {
            let mut count = 0;
            if !is_blocked() {
                return count;
            }
            for (candidate, [dead, _]) in candidates.iter().zip(&pairs) {
                // The same checks as before, of what cannot change any more.
                let Some(Candidate { fd, socket }) = self.idle.takeable(candidate.fd, rested)
                else {
                    continue;
                };
                if let Some(connection) = sys::exchange(self.backend, fd, dead.as_fd()) {
                    self.idle.forget(fd);
                    taken[count] = Some((socket, connection));
                    count += 1;
                }
            }
            count
        });
        // The far ends close here, after the loop goes on: a loop that is about to read finds nothing yet,
        // and the end in its next turn.
        drop(pairs);
        taken.into_iter().flatten().take(count.unwrap_or(0)).collect()
    }
}

impl Drop for LoopThread {
    fn drop(&mut self) {
        // Release pairs with the claim of the next owner.
        GATES[self.gate].owner.store(0, Ordering::Release);
    }
}

/// Lets the loop go on, also after a panic.
struct Held<'gate>(&'gate Gate);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// A loop at the last check.
#[derive(Debug, Clone, Copy)]
struct Seen {
    slept_ms: u64,
    requests: u32,
    in_flight: u32,
    /// Time of the last change.
    at: Instant,
}

/// Connections that may be taken now: a bucket that fills with time.
#[derive(Debug)]
struct Allowance {
    left: u32,
    at: Instant,
}

impl Allowance {
    fn new(now: Instant) -> Allowance {
        Allowance { left: MAX_PER_SECOND / 10, at: now }
    }

    fn refill(&mut self, now: Instant) {
        let earned = (now - self.at).as_millis() as u32 * (MAX_PER_SECOND / 1000);
        if earned > 0 {
            self.at = now;
            self.left = self.left.saturating_add(earned).min(MAX_PER_SECOND / 10);
        }
    }
}

/// State of a listener thread.
pub struct Rescue {
    /// By number of the loop.
    seen: Vec<Option<Seen>>,
    checked_at: Instant,
    /// Time of the last request.
    active_at: Instant,
    /// True: words say that the thread sleeps, and it does unless a request has come meanwhile.
    is_asleep: bool,
    /// True: one check after the words were written has found no request that came at that moment.
    has_settled: bool,
    is_any_blocked: bool,
    /// True: the server has no other loop.
    is_alone: bool,
    /// True: a connection may wait in the socket between the processes.
    may_wait: bool,
    allowance: Allowance,
    /// For tests (`MANYCORE_RESCUE=eager`): takes whatever may be taken, also from loops that are not blocked.
    is_eager: bool,
}

impl Rescue {
    pub fn new(shared: &Shared) -> Rescue {
        let now = Instant::now();
        Rescue {
            seen: vec![None; shared.board.loops() as usize],
            checked_at: now,
            active_at: now,
            is_asleep: false,
            has_settled: false,
            is_any_blocked: false,
            is_alone: true,
            may_wait: false,
            allowance: Allowance::new(now),
            is_eager: std::env::var("MANYCORE_RESCUE").is_ok_and(|how| how == "eager"),
        }
    }

    /// Time for which the listener thread may sleep.
    pub fn pause(&self, shared: &Shared) -> Option<Duration> {
        let rests = self.is_asleep && self.has_settled || self.is_alone;
        if shared.handover.is_none() || (rests && !self.may_wait) {
            return None;
        }
        if self.is_eager {
            return Some(Duration::from_millis(1));
        }
        Some(if self.is_any_blocked || self.may_wait { SOON } else { CHECK })
    }

    /// One check, when it is due. `was_rung`: another process may have handed over a connection.
    pub fn check(&mut self, shared: &Shared, was_rung: bool) {
        let Some(handover) = &shared.handover else { return };
        let state = shared.lock(); // as for every connection that is placed (`Listener::accept_one`)
        let (now, now_ms) = (Instant::now(), now_ms());
        let mut has_request = false;
        if was_rung || self.may_wait {
            // First: what was noted before a rest would show each loop as stalled.
            has_request = self.note(&state, now);
            if has_request {
                self.active_at = now;
            }
            self.take_over(shared, handover, &state, now_ms);
        }
        self.is_alone = ready_loops(shared) < 2;
        let rests = self.is_asleep && !has_request;
        if self.is_alone || rests && !self.is_wanted(&state, now_ms, now) {
            return;
        }
        if self.is_asleep {
            self.set_asleep(&state, false);
            self.active_at = now;
        }
        if now - self.checked_at < self.pause(shared).unwrap_or(CHECK).mul_f32(0.8) {
            return;
        }
        self.checked_at = now;
        self.allowance.refill(now);
        has_request |= self.note(&state, now);
        if has_request {
            self.active_at = now;
        }
        self.is_any_blocked = false;
        for inbox in &state.inboxes {
            if self.is_eager {
                self.free(shared, handover, &state, inbox, now);
                continue;
            }
            if !self.is_stalled(inbox, now) {
                continue;
            }
            inbox.ping(now_ms);
            if inbox.silent_ms(now_ms) >= SLOW_MS {
                self.is_any_blocked = true;
                self.free(shared, handover, &state, inbox, now);
            }
        }
        if !self.is_any_blocked && now - self.active_at >= QUIET {
            self.set_asleep(&state, true);
        }
    }

    /// True: a request has come since the thread sleeps, or a loop does not answer its ping.
    fn is_wanted(&mut self, state: &State, now_ms: u32, now: Instant) -> bool {
        // A loop may have read the word just before it was written. By the next check its counters show that.
        if !self.has_settled && now - self.checked_at >= CHECK.mul_f32(0.8) {
            self.has_settled = true;
            if self.note(state, now) {
                return true;
            }
        }
        state.inboxes.iter().any(|inbox| {
            let has_request = inbox.thread().is_some_and(|thread| !thread.idle.is_asleep());
            has_request || inbox.silent_ms(now_ms) >= SLOW_MS
        })
    }

    fn set_asleep(&mut self, state: &State, is_asleep: bool) {
        self.is_asleep = is_asleep;
        self.has_settled = false;
        for inbox in &state.inboxes {
            if let Some(thread) = inbox.thread() {
                thread.idle.set_asleep(is_asleep);
            }
        }
    }

    /// Notes what has changed since the last check. True: a request has begun or ended.
    fn note(&mut self, state: &State, now: Instant) -> bool {
        let mut has_request = false;
        for inbox in &state.inboxes {
            // Relaxed: the loop's own counters.
            let read = |offset| inbox.word(offset).load(Relaxed);
            let (requests, in_flight) = (read(word::REQUESTS), read(word::IN_FLIGHT));
            let slept_ms = inbox.slept_ms();
            let seen = &mut self.seen[inbox.index() as usize];
            let is_same = |seen: &Seen| seen.requests == requests && seen.in_flight == in_flight;
            has_request |= !seen.as_ref().is_some_and(is_same);
            if !seen.is_some_and(|seen| is_same(&seen) && seen.slept_ms == slept_ms) {
                *seen = Some(Seen { slept_ms, requests, in_flight, at: now });
            }
        }
        has_request
    }

    /// True: since the last check and before it the loop has neither slept nor had a new request.
    fn is_stalled(&self, inbox: &LoopInbox, now: Instant) -> bool {
        let seen = self.seen.get(inbox.index() as usize).copied().flatten();
        seen.is_some_and(|seen| now - seen.at >= CHECK.mul_f32(0.8))
    }

    /// Takes connections from a blocked loop.
    fn free(
        &mut self,
        shared: &Shared,
        handover: &Handover,
        state: &State,
        blocked: &Arc<LoopInbox>,
        now: Instant,
    ) {
        let Some(thread) = blocked.thread() else { return };
        // A loop that drains does not listen any more: its clients are sent away with their next answers.
        if blocked.listens() == 0 || self.allowance.left == 0 {
            return;
        }
        let mut others = self.live(state, now);
        others.retain(|inbox| !Arc::ptr_eq(inbox, blocked));
        let now_ms = now_ms();
        if others.is_empty() {
            if other_process(shared, None, now_ms).is_none() {
                return;
            }
            self.hand_over_untaken(shared, handover, blocked, now_ms);
        }
        let max = BATCH.min(self.allowance.left as usize);
        let rested = Rested { now_ms, rest_ms: if self.is_eager { 0 } else { REST_MS } };
        let mut candidates = thread.idle.candidates(max, rested);
        // A server that was closed has connections, but no loop takes one for it.
        candidates.retain(|&Candidate { socket, .. }| {
            let is_wanted = |scores: Vec<Option<u32>>| placement::best(&scores, 0).is_some();
            blocked.listens_to(socket)
                && (is_wanted(shared.scores_of(&others, socket, now_ms))
                    || other_process(shared, Some(socket), now_ms).is_some())
        });
        if candidates.is_empty() {
            return;
        }
        let seen = self.seen.get(blocked.index() as usize).copied().flatten();
        let is_same = |seen: Seen| {
            // Relaxed: the loop's own counters, and it stands.
            let read = |offset| blocked.word(offset).load(Relaxed);
            (seen.requests, seen.in_flight) == (read(word::REQUESTS), read(word::IN_FLIGHT))
        };
        let is_blocked = || self.is_eager || seen.is_some_and(is_same);
        for (socket, fd) in thread.take(&candidates, rested, is_blocked) {
            if !self.is_eager {
                self.allowance.left = self.allowance.left.saturating_sub(1);
            }
            // Relaxed: a counter.
            blocked.word(word::TAKEN_AWAY).fetch_add(1, Relaxed);
            let connection =
                AcceptedConnection { socket, fd, at_ms: now_ms, taken_at_ms: now_ms.max(1) };
            self.hand_out(shared, handover, (state, &others), connection);
        }
    }

    /// Hands over connections that the blocked loop has not taken, where its process has no other loop for them.
    fn hand_over_untaken(
        &mut self,
        shared: &Shared,
        handover: &Handover,
        blocked: &LoopInbox,
        now_ms: u32,
    ) {
        if !blocked.is_any_untaken() {
            return;
        }
        for connection in blocked.reclaim() {
            if self.pass(shared, handover, &connection, now_ms) {
                // Relaxed: a counter.
                blocked.word(word::TAKEN_AWAY).fetch_add(1, Relaxed);
            } else {
                blocked.put(connection);
            }
        }
    }

    /// Sends a connection to a process with a live loop for it. False: it was not sent.
    fn pass(
        &mut self,
        shared: &Shared,
        handover: &Handover,
        AcceptedConnection { socket, fd, .. }: &AcceptedConnection,
        now_ms: u32,
    ) -> bool {
        let Some(process) = other_process(shared, Some(*socket), now_ms) else { return false };
        let number = *socket as u8; // below MAX_SOCKETS
        if sys::send_numbered(handover.send.as_fd(), number, fd.as_fd()) != Passed::Sent {
            return false;
        }
        self.may_wait = true;
        shared.ring(process);
        true
    }

    /// Loops of this process that have time.
    fn live(&self, state: &State, now: Instant) -> Vec<Arc<LoopInbox>> {
        let now_ms = now_ms();
        let is_live = |inbox: &&Arc<LoopInbox>| {
            let is_silent = inbox.silent_ms(now_ms) >= SLOW_MS;
            inbox.listens() != 0 && !is_silent && !self.is_stalled(inbox, now)
        };
        state.inboxes.iter().filter(is_live).cloned().collect()
    }

    /// Gives a connection to a loop of this process that has time, or to another process.
    fn hand_out(
        &mut self,
        shared: &Shared,
        handover: &Handover,
        (state, others): (&State, &[Arc<LoopInbox>]),
        connection: AcceptedConnection,
    ) {
        let scores = shared.scores_of(others, connection.socket, connection.at_ms);
        if placement::best(&scores, 0).is_some() {
            take_over(shared, others, connection);
            return;
        }
        if self.pass(shared, handover, &connection, connection.at_ms) {
            return;
        }
        // Also the blocked loop: nothing was read, so it is a new connection for it.
        take_over(shared, &state.inboxes, connection);
    }

    /// Takes connections that processes without a live loop have handed over. Where no loop of the server has time,
    /// they go to one without, or to one that drains: nobody else will take them.
    fn take_over(&mut self, shared: &Shared, handover: &Handover, state: &State, now_ms: u32) {
        for _ in 0..BATCH {
            self.may_wait = handover.has_waiting();
            let mut loops = self.live(state, Instant::now());
            if loops.is_empty() && other_process(shared, None, now_ms).is_none() {
                let has_servers = |inbox: &&Arc<LoopInbox>| inbox.listens() != 0 || inbox.drains();
                loops.extend(state.inboxes.iter().filter(has_servers).cloned());
            }
            if !self.may_wait || loops.is_empty() || !take_next(shared, handover, &loops, now_ms) {
                return;
            }
        }
    }
}

/// Before the last loop of a process leaves, and with it whoever checks the socket between the processes: others
/// that take connections are rung; without any, `leaving` takes what waits. False: it got nothing.
pub fn take_rest(shared: &Shared, leaving: &Arc<LoopInbox>) -> bool {
    let Some(handover) = shared.handover.as_ref().filter(|handover| handover.has_waiting()) else {
        return false;
    };
    if ready_loops(shared) > 0 || !leaving.drains() {
        (0..shared.board.processes()).for_each(|process| shared.ring(process));
        return false;
    }
    let (loops, now_ms) = ([Arc::clone(leaving)], now_ms());
    while handover.has_waiting() && take_next(shared, handover, &loops, now_ms) {}
    true
}

/// Gives the next connection that waits between the processes to one of `inboxes`. False: there is none.
fn take_next(
    shared: &Shared,
    handover: &Handover,
    inboxes: &[Arc<LoopInbox>],
    now_ms: u32,
) -> bool {
    match sys::receive_numbered(handover.receive.as_fd()) {
        (number, Accepted::Connection(fd)) if u32::from(number) < MAX_SOCKETS => {
            let (socket, taken_at_ms) = (number.into(), now_ms.max(1));
            let connection = AcceptedConnection { socket, fd, at_ms: now_ms, taken_at_ms };
            take_over(shared, inboxes, connection);
            true
        }
        (_, Accepted::Connection(_) | Accepted::Again) => true,
        (_, Accepted::Empty | Accepted::Exhausted | Accepted::Failed(_)) => false,
    }
}

/// Loops of the server that take new connections, at most two.
fn ready_loops(shared: &Shared) -> usize {
    let board = &shared.board;
    let rows = (0..board.processes())
        .flat_map(|process| (0..board.loops()).map(move |index| (process, index)));
    // Relaxed: a loop that becomes ready rings its listener thread, and the supervisor all, each second.
    rows.filter(|&(process, index)| {
        board.word(process, index, word::STATE).load(Relaxed) == state::READY
    })
    .take(2)
    .count()
}

/// Puts a connection that was taken from another loop into the best of `inboxes`.
fn take_over(shared: &Shared, inboxes: &[Arc<LoopInbox>], connection: AcceptedConnection) {
    if let Some(inbox) = shared.put_into_best(inboxes, connection) {
        // Relaxed: a counter.
        inbox.word(word::TAKEN_OVER).fetch_add(1, Relaxed);
    }
}

/// The process with the best loop that has time, beside this one; `socket`: a loop that listens to it.
fn other_process(shared: &Shared, socket: Option<u32>, now_ms: u32) -> Option<u32> {
    let board = &shared.board;
    let sockets = match socket {
        Some(socket) => socket..socket + 1,
        None => 0..MAX_SOCKETS,
    };
    let score = |process, index| {
        let of = |socket| shared.score_of(process, index, socket, now_ms);
        sockets.clone().find_map(of).filter(|&score| !placement::is_slow(score))
    };
    let best_of = |process| (0..board.loops()).filter_map(|index| score(process, index)).min();
    (0..board.processes())
        .filter(|&process| process != shared.process)
        .filter_map(|process| best_of(process).map(|score| (score, process)))
        .min()
        .map(|(_, process)| process)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accept::acceptor::{Acceptor, Settings};
    use crate::accept::board::Board;
    use crate::accept::placement::Policy;
    use crate::sync::Ordering::{Acquire, Release};
    use crate::sys::{Poller, Trigger};
    use crate::wake::doorbell::Doorbell;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc;

    const SOCKET: u32 = 2;

    /// Two processes of one loop each, in one: the first loop's thread computes, the second one is idle.
    struct Server {
        acceptors: Vec<Acceptor>,
        inboxes: Vec<Arc<LoopInbox>>,
        board: Arc<Board>,
        /// The poller of the first loop.
        poller: Poller,
        may_end: Arc<AtomicBool>,
        computing: Option<std::thread::JoinHandle<()>>,
    }

    fn serve() -> Server {
        let poller = Poller::new().expect("epoll");
        let backend = poller.as_fd().as_raw_fd();
        let may_end = Arc::new(AtomicBool::new(false));
        let (send, receive) = mpsc::channel();
        let is_over = Arc::clone(&may_end);
        let computing = std::thread::spawn(move || {
            send.send(LoopThread::here(backend)).expect("the test waits");
            while !is_over.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let thread = receive.recv().expect("sent").expect("a signal and memory");
        let (board, _) = Board::create(2, 1).expect("memfd");
        let board = Arc::new(board);
        let bells: Vec<_> = (0..2).map(|_| Doorbell::new().expect("eventfd")).collect();
        let ends = sys::socket_pair().expect("a pair");
        let acceptors: Vec<_> = (0..2)
            .map(|process| {
                let bells = bells.iter().map(|bell| bell.duplicate().expect("dup"));
                let bells = bells.map(Doorbell::from_fd).collect();
                let [send, receive] =
                    [0, 1].map(|end: usize| sys::duplicate(ends[end].as_fd()).expect("dup"));
                let settings = Settings { policy: Policy::LeastLoaded, patience: None };
                let handover = Some(Handover { send, receive });
                Acceptor::start(Arc::clone(&board), process, bells, settings, handover)
                    .expect("a thread")
            })
            .collect();
        let bell = || Doorbell::new().expect("eventfd");
        let inboxes = vec![
            acceptors[0].add_inbox(0, bell(), Box::new(|| 5), Some(thread)).expect("free"),
            acceptors[1].add_inbox(0, bell(), Box::new(|| now_ms().into()), None).expect("free"),
        ];
        Server { acceptors, inboxes, board, poller, may_end, computing: Some(computing) }
    }

    impl Drop for Server {
        fn drop(&mut self) {
            self.may_end.store(true, Ordering::Relaxed);
            let _ = self.computing.take().map(std::thread::JoinHandle::join);
        }
    }

    impl Server {
        fn listen(&self, process: usize) {
            let word = |offset| self.inboxes[process].word(offset);
            word(word::LIMIT).store(10, Relaxed);
            word(word::LISTENS).store(1 << SOCKET, Release);
            word(word::STATE).store(state::READY, Release);
            for acceptor in &self.acceptors {
                acceptor.wake();
            }
        }

        /// An idle connection of the first loop.
        fn connect(&self) -> (TcpStream, TcpStream) {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let client = TcpStream::connect(listener.local_addr().expect("bound")).expect("one");
            let (accepted, _) = listener.accept().expect("accepted");
            let fd = accepted.as_raw_fd();
            self.poller.add(accepted.as_fd(), fd as u64, Trigger::Level).expect("added");
            let idle = self.inboxes[0].thread().expect("its thread").idle();
            idle.enter(fd, SOCKET, 0);
            idle.mapping_word(fd).store(1, Relaxed);
            self.inboxes[0].word(word::OPEN).fetch_add(1, Relaxed);
            self.acceptors[0].wake(); // its thread counts a connection while it is awake
            (client, accepted)
        }

        fn end_computing(&self) {
            self.may_end.store(true, Ordering::Relaxed);
        }

        /// Waits for some checks of the first loop after it was found to be blocked.
        fn wait_until_blocked(&self) {
            let is_blocked = || self.inboxes[0].silent_ms(now_ms()) >= 30;
            wait_for("it is not pinged", || is_blocked().then_some(()));
        }

        fn count(&self, process: u32, offset: usize) -> u32 {
            self.board.word(process, 0, offset).load(Acquire)
        }
    }

    fn wait_for<T>(what: &str, condition: impl Fn() -> Option<T>) -> T {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            if let Some(value) = condition() {
                return value;
            }
            assert!(Instant::now() < deadline, "{what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_request_on_a_connection_of_a_blocked_loop_comes_to_another_process() {
        let mut server = serve();
        server.listen(0);
        server.listen(1);
        let (mut client, mut accepted) = server.connect();
        client.write_all(b"GET /").expect("written");
        let taken = wait_for("taken over", || server.inboxes[1].take());
        assert_eq!(taken.socket, SOCKET);
        let mut bytes = [0; 5];
        TcpStream::from(taken.fd).read_exact(&mut bytes).expect("nothing was read before");
        assert_eq!(&bytes, b"GET /");
        let counts = (server.count(0, word::TAKEN_AWAY), server.count(1, word::TAKEN_OVER));
        assert_eq!(counts, (1, 1));
        // libuv gets the end of the connection, at its number.
        let number = accepted.as_raw_fd() as u64;
        assert_eq!(server.poller.wait(Some(Duration::from_secs(10))).collect::<Vec<_>>(), [number]);
        assert_eq!(accepted.read(&mut bytes).expect("an end, no error"), 0);
    }

    #[test]
    fn a_connection_stays_where_no_other_loop_is_alive_until_one_is() {
        let server = serve();
        server.listen(0);
        let (mut client, _accepted) = server.connect();
        client.write_all(b"GET /").expect("written");
        server.wait_until_blocked();
        assert_eq!(server.count(0, word::TAKEN_AWAY), 0);
        server.listen(1);
        wait_for("taken over", || server.inboxes[1].take());
    }

    #[test]
    fn a_connection_that_the_blocked_loop_has_not_taken_goes_to_another_process() {
        let server = serve();
        server.listen(0);
        server.listen(1);
        let (_client, accepted) = server.connect();
        let fd = accepted.into();
        server.inboxes[0].put(AcceptedConnection { socket: SOCKET, fd, at_ms: 1, taken_at_ms: 0 });
        wait_for("taken over", || server.inboxes[1].take());
        assert!(!server.inboxes[0].is_any_untaken());
    }

    #[test]
    fn a_connection_of_a_closed_server_stays() {
        let server = serve();
        server.listen(0);
        server.listen(1);
        server.inboxes[0].word(word::LISTENS).store(1, Release);
        let (mut client, _accepted) = server.connect();
        client.write_all(b"GET /").expect("written");
        server.wait_until_blocked();
        assert_eq!(server.count(0, word::TAKEN_AWAY), 0);
    }

    #[test]
    fn the_thread_sleeps_after_a_second_without_a_request_and_a_request_wakes_it() {
        let server = serve();
        server.listen(1);
        server.listen(0);
        server.end_computing();
        let idle = server.inboxes[0].thread().expect("its thread").idle();
        wait_for("asleep", || {
            server.inboxes[0].answer_ping();
            idle.is_asleep().then_some(())
        });
        // A loop does this with the first byte of a request.
        idle.set_asleep(false);
        let in_flight = server.inboxes[0].word(word::IN_FLIGHT);
        in_flight.store(1, Relaxed);
        server.acceptors[0].wake();
        wait_for("it checks again and sleeps again", || {
            server.inboxes[0].answer_ping();
            idle.is_asleep().then_some(())
        });
    }

    #[test]
    fn a_loop_that_drains_keeps_its_connections() {
        let server = serve();
        server.listen(0);
        server.listen(1);
        server.inboxes[0].word(word::STATE).store(state::DRAINING, Release);
        let (mut client, _accepted) = server.connect();
        client.write_all(b"GET /").expect("written");
        server.wait_until_blocked();
        assert_eq!(server.count(0, word::TAKEN_AWAY), 0);
    }

    #[test]
    fn a_connection_that_was_handed_over_is_taken_by_whoever_is_alive() {
        let server = serve();
        let handover = sys::duplicate(server.acceptors[0].handover().send.as_fd()).expect("dup");
        let (client, accepted) = server.connect();
        sys::send_numbered(handover.as_fd(), SOCKET as u8, accepted.as_fd());
        // A number of no socket, as a damaged sender would write, is dropped.
        sys::send_numbered(handover.as_fd(), 200, accepted.as_fd());
        drop(accepted);
        server.listen(1);
        wait_for("taken over", || server.inboxes[1].take());
        drop(client);
        wait_for("empty", || {
            server.acceptors[1].wake();
            let receive = server.acceptors[0].handover().receive.as_fd();
            (sys::control_socket_queue(receive) == Some(0)).then_some(())
        });
    }

    #[test]
    fn a_connection_that_waits_for_a_process_is_served_by_a_loop_that_drains_when_none_is_left() {
        let server = serve();
        let handover = sys::duplicate(server.acceptors[0].handover().send.as_fd()).expect("dup");
        let set = |process: usize, to| server.inboxes[process].word(word::STATE).store(to, Release);
        let hand_over = || {
            let (client, accepted) = server.connect();
            sys::send_numbered(handover.as_fd(), SOCKET as u8, accepted.as_fd());
            client
        };
        server.listen(0);
        server.listen(1);
        set(0, state::FREE);
        set(1, state::DRAINING);
        let _client = hand_over();
        // Not the thread, which no ring has woken: the process would end.
        assert!(!server.acceptors[1].try_leave(&server.inboxes[1]), "it has a connection to serve");
        assert!(server.inboxes[1].take().is_some());
        assert!(server.acceptors[1].try_leave(&server.inboxes[1]));
        set(0, state::DRAINING);
        let _client = hand_over();
        server.acceptors[0].wake();
        wait_for("its thread takes it", || server.inboxes[0].take());
        // Rings a process that takes connections: this one need not stay.
        set(1, state::READY);
        let _client = hand_over();
        assert!(server.acceptors[0].try_leave(&server.inboxes[0]));
        assert!(server.acceptors[0].handover().has_waiting());
    }

    #[test]
    fn a_connection_that_waits_is_taken_after_a_rest_and_by_a_blocked_loop_when_no_other_has_time()
    {
        let server = serve();
        let is_taken = |process: usize| {
            let shared = server.acceptors[process].shared();
            let mut rescue = Rescue::new(shared);
            for _ in 0..2 {
                rescue.check(shared, true);
                std::thread::sleep(CHECK * 2); // a rest: nothing rings it
            }
            let (_client, accepted) = UnixStream::pair().expect("a pair");
            let handover = server.acceptors[process].handover().send.as_fd();
            sys::send_numbered(handover, SOCKET as u8, accepted.as_fd());
            rescue.check(shared, true);
            server.inboxes[process].take().is_some()
        };
        // Not by `listen`, which rings the threads.
        let ready = |process: usize| {
            let word = |offset| server.inboxes[process].word(offset);
            word(word::LIMIT).store(10, Relaxed);
            word(word::LISTENS).store(1 << SOCKET, Release);
            word(word::STATE).store(state::READY, Release);
        };
        ready(0);
        ready(1);
        assert!(is_taken(1), "it has slept");
        server.inboxes[1].word(word::STATE).store(state::FREE, Release);
        assert!(is_taken(0), "it is blocked, and alone");
    }

    #[test]
    fn a_connection_that_was_taken_goes_to_a_loop_that_has_begun_to_drain() {
        let server = serve();
        server.listen(0);
        let inboxes = &server.inboxes[..1];
        inboxes[0].word(word::STATE).store(state::DRAINING, Release);
        let put = |socket| {
            let (_client, accepted) = server.connect();
            let fd = accepted.into();
            let connection = AcceptedConnection { socket, fd, at_ms: 1, taken_at_ms: 1 };
            server.acceptors[0].shared().put_into_best(inboxes, connection).is_some()
        };
        assert!(put(SOCKET), "it still has its server");
        assert!(!put(SOCKET + 1), "it listens on another socket");
        inboxes[0].word(word::STATE).store(state::FREE, Release);
        assert!(!put(SOCKET), "it has left");
    }

    #[test]
    fn a_thread_that_does_not_come_is_not_waited_for() {
        let poller = Poller::new().expect("epoll");
        let mut thread = LoopThread::here(poller.as_fd().as_raw_fd()).expect("a signal");
        let own = thread.thread;
        thread.thread = i32::MAX;
        assert!(thread.while_it_stands(|| ()).is_none(), "no such thread");
        thread.thread = own;
        // In this thread the handler runs at once, before the taker holds it: its bound ends the wait.
        let started = Instant::now();
        assert!(thread.while_it_stands(|| ()).is_none());
        assert!(started.elapsed() >= STAND);
        assert!(GATES[thread.gate].gate.get().expect("made").ask(), "no signal is on its way");
    }

    #[test]
    fn only_so_many_connections_are_taken_in_a_second() {
        let now = Instant::now();
        let mut allowance = Allowance::new(now);
        allowance.left = 0;
        allowance.refill(now + Duration::from_millis(3));
        assert_eq!(allowance.left, 6);
        allowance.refill(now + Duration::from_secs(60));
        assert_eq!(allowance.left, 200);
    }
}
