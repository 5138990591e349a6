//! One end of a channel for the event loop: the words that it watches, and the check for news.

use crate::event_loop::Bell;
use manycore_core::layout::{room, word};
use manycore_core::segment::{Segment, Side};
use manycore_core::sync::AtomicU32;
use manycore_core::sync::Ordering::{Acquire, Relaxed};
use manycore_core::wake::doorbell::{Doorbell, Rung};
use manycore_core::wake::sleep;
use std::rc::Rc;
use std::sync::Arc;

/// The byte offsets of one side's words.
#[derive(Clone, Copy)]
pub(crate) struct Words {
    pub(crate) in_tail: usize,
    pub(crate) in_head: usize,
    pub(crate) out_tail: usize,
    pub(crate) out_room: usize,
    pub(crate) own_asleep: usize,
    pub(crate) peer_asleep: usize,
    pub(crate) own_cpu: usize,
    pub(crate) peer_cpu: usize,
    pub(crate) peer_state: usize,
}

pub(crate) const PARENT_WORDS: Words = Words {
    in_tail: word::REPLY_TAIL,
    in_head: word::REPLY_HEAD,
    out_tail: word::REQUEST_TAIL,
    out_room: word::REQUEST_ROOM,
    own_asleep: word::PARENT_ASLEEP,
    peer_asleep: word::WORKER_ASLEEP,
    own_cpu: word::PARENT_CPU,
    peer_cpu: word::WORKER_CPU,
    peer_state: word::WORKER_STATE,
};

pub(crate) const WORKER_WORDS: Words = Words {
    in_tail: word::REQUEST_TAIL,
    in_head: word::REQUEST_HEAD,
    out_tail: word::REPLY_TAIL,
    out_room: word::REPLY_ROOM,
    own_asleep: word::WORKER_ASLEEP,
    peer_asleep: word::PARENT_ASLEEP,
    own_cpu: word::WORKER_CPU,
    peer_cpu: word::PARENT_CPU,
    peer_state: word::PARENT_STATE,
};

/// Words of an end that its loop and JavaScript share, outside of the segment: the peer must not change
/// them. One thread alone uses them; they are atomics because JavaScript uses the same bytes.
///
/// The first two control whether the end keeps the loop alive: the wish of JavaScript, and the present
/// state. Most changes are undone before the loop sleeps (a call, its answer, the next call). So the
/// loop reads the wish when it is about to sleep. The others are facts about a peer with a bell of its
/// own, for the check of what it publishes (src/channels/shm/guard.ts).
#[derive(Default)]
#[repr(C)]
pub(crate) struct EndWords {
    wanted: AtomicU32,
    held: AtomicU32,
    /// Number of rings by the peer; wraps.
    rings: AtomicU32,
    /// Number of deliveries that the peer's words have caused; wraps.
    news: AtomicU32,
    /// 1: the peer has closed its end of the bell.
    is_bell_gone: AtomicU32,
}

impl EndWords {
    pub(crate) fn note(&self, rung: Rung) {
        match rung {
            Rung::Times(count) => {
                let before = self.rings.load(Relaxed);
                self.rings.store(before.wrapping_add(count as u32), Relaxed);
            }
            Rung::Ended => self.is_bell_gone.store(1, Relaxed),
        }
    }

    fn note_news(&self) {
        self.news.store(self.news.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// Changes with each ring, and when the bell is gone.
    fn bell_state(&self) -> (u32, u32) {
        (self.rings.load(Relaxed), self.is_bell_gone.load(Relaxed))
    }

    pub(crate) fn is_held(&self) -> bool {
        self.held.load(Relaxed) != 0
    }

    /// Returns the change to make to the handle, if any; it counts as made.
    pub(crate) fn take_change(&self) -> Option<bool> {
        let is_wanted = self.wanted.load(Relaxed) != 0;
        if is_wanted == self.is_held() {
            return None;
        }
        self.held.store(u32::from(is_wanted), Relaxed);
        Some(is_wanted)
    }
}

/// One channel's end in this loop.
pub(crate) struct End {
    pub(crate) segment: Arc<Segment>,
    pub(crate) side: Side,
    pub(crate) words: Words,
    pub(crate) bell: Rc<Bell>,
    pub(crate) peer_bell: Doorbell,
    pub(crate) may_spin: bool,
    pub(crate) own_words: Arc<EndWords>,
    /// The words at the last delivery, to detect news for JavaScript.
    pub(crate) seen_state: u32,
    pub(crate) seen_bell: (u32, u32),
    pub(crate) seen_out_tail: u32,
}

impl End {
    pub(crate) fn load(&self, offset: usize) -> u32 {
        // Acquire pairs with the writers' Release (Rust) or sequentially consistent (JS) stores.
        self.segment.word(offset).load(Acquire)
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.load(self.words.in_tail) != self.load(self.words.in_head)
            || self.load(self.words.out_room) == room::MADE
            || self.load(self.words.peer_state) != self.seen_state
            || self.own_words.bell_state() != self.seen_bell
    }

    /// Notes what JavaScript is about to be called for.
    pub(crate) fn begin_delivery(&mut self) {
        if self.is_pending() {
            self.own_words.note_news();
        }
        self.seen_state = self.load(self.words.peer_state);
        self.seen_bell = self.own_words.bell_state();
    }

    pub(crate) fn is_peer_awake(&self) -> bool {
        self.load(self.words.peer_asleep) == sleep::AWAKE
    }
}
