//! State that a listener thread and its handle share, and how they read the scoreboard.

use super::board::{Board, word};
use super::files::Files;
use super::loop_inbox::{AcceptedConnection, LoopInbox, load_of, now_ms};
use super::placement::{self, Policy, Turn};
use super::rescue::Handover;
use super::socket::Socket;
use crate::sync::Ordering::Relaxed;
use crate::wake::doorbell::Doorbell;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

#[derive(Default)]
pub struct State {
    pub sockets: Vec<Arc<Socket>>,
    pub inboxes: Vec<Arc<LoopInbox>>,
    pub is_closing: bool,
}

/// Settings for the thread of one process.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    pub policy: Policy,
    /// A connection that no loop takes within this time is answered by 503; `None`: never.
    pub patience: Option<Duration>,
}

pub struct Shared {
    pub board: Arc<Board>,
    pub process: u32,
    pub settings: Settings,
    /// Doorbells of all processes, by number.
    pub bells: Vec<Doorbell>,
    /// `None`: connections stay at their loops.
    pub handover: Option<Handover>,
    /// Set once the program serves files (`files/mod.rs`).
    pub files: OnceLock<Arc<Files>>,
    pub state: Mutex<State>,
}

impl Shared {
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn ring(&self, process: u32) {
        if let Some(bell) = self.bells.get(process as usize) {
            bell.ring();
        }
    }

    /// Puts `connection` into the best of `inboxes`, or where all of them are blocked or full into the one
    /// with the least work. Where none takes new connections, a loop that drains gets it: it still has its
    /// servers. Closes it when none listens to its socket. Returns the one that got it.
    pub fn put_into_best<'inboxes>(
        &self,
        inboxes: &'inboxes [Arc<LoopInbox>],
        connection: AcceptedConnection,
    ) -> Option<&'inboxes Arc<LoopInbox>> {
        let now = now_ms();
        let scores = self.scores_of(inboxes, connection.socket, now);
        let least_work = || {
            let work: Vec<_> = inboxes
                .iter()
                .map(|inbox| {
                    load_of(&self.board, self.process, inbox.index(), connection.socket, now)
                })
                .map(|load| load.map(|load| load.open.saturating_add(load.in_flight)))
                .collect();
            placement::best(&work, 0)
        };
        let draining = || {
            let is_usable = |inbox: &&Arc<LoopInbox>| inbox.drains_with(connection.socket);
            // Relaxed: a hint.
            let used = |inbox: &&Arc<LoopInbox>| inbox.word(word::OPEN).load(Relaxed);
            let inbox = inboxes.iter().filter(is_usable).min_by_key(used)?;
            inboxes.iter().position(|other| Arc::ptr_eq(other, inbox))
        };
        let live = placement::best(&scores, 0).or_else(least_work).map(|(at, _)| at);
        let at = live.or_else(draining)?;
        inboxes[at].put(AcceptedConnection { at_ms: now, ..connection });
        Some(&inboxes[at])
    }

    pub fn scores_of(&self, inboxes: &[Arc<LoopInbox>], socket: u32, now: u32) -> Vec<Option<u32>> {
        inboxes
            .iter()
            .map(|inbox| self.score_of(self.process, inbox.index(), socket, now))
            .collect()
    }

    pub fn score_of(&self, process: u32, index: u32, socket: u32, now: u32) -> Option<u32> {
        let board = &self.board;
        let load = load_of(board, process, index, socket, now)?;
        // Relaxed: two threads that read the same turn place two connections at one loop, once.
        let turn =
            Turn { row: board.turn().load(Relaxed), rows: board.processes() * board.loops() };
        placement::score(self.settings.policy, turn, load)
    }

    /// Counts that no descriptor was left for a connection.
    pub fn count_exhausted(&self) {
        // Relaxed: a counter.
        self.board.word(self.process, 0, word::EXHAUSTED).fetch_add(1, Relaxed);
    }

    /// Connections that a process has placed so far.
    pub fn placed_by(&self, process: u32) -> u32 {
        // Relaxed: counters.
        let placed = |index| self.board.word(process, index, word::PLACED).load(Relaxed);
        (0..self.board.loops()).fold(0, |sum, index| sum.wrapping_add(placed(index)))
    }
}
