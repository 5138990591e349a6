//! One channel's end as the event loop sees it: which words it watches, and whether there is news.

use crate::event_loop::Bell;
use manycore_core::layout::{room, word};
use manycore_core::segment::{Segment, Side};
use manycore_core::sync::Ordering::Acquire;
use manycore_core::wake::eventfd::Doorbell;
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
    peer_asleep: word::HOST_ASLEEP,
    own_cpu: word::PARENT_CPU,
    peer_cpu: word::HOST_CPU,
    peer_state: word::HOST_STATE,
};

pub(crate) const HOST_WORDS: Words = Words {
    in_tail: word::REQUEST_TAIL,
    in_head: word::REQUEST_HEAD,
    out_tail: word::REPLY_TAIL,
    out_room: word::REPLY_ROOM,
    own_asleep: word::HOST_ASLEEP,
    peer_asleep: word::PARENT_ASLEEP,
    own_cpu: word::HOST_CPU,
    peer_cpu: word::PARENT_CPU,
    peer_state: word::PARENT_STATE,
};

/// One channel's end, as this loop sees it.
pub(crate) struct End {
    pub(crate) segment: Arc<Segment>,
    pub(crate) side: Side,
    pub(crate) words: Words,
    pub(crate) bell: Rc<Bell>,
    pub(crate) peer_bell: Doorbell,
    pub(crate) may_spin: bool,
    pub(crate) is_ref: bool,
    /// What was delivered last, to tell news from what JavaScript knows.
    pub(crate) seen_state: u32,
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
    }

    pub(crate) fn is_peer_awake(&self) -> bool {
        self.load(self.words.peer_asleep) == sleep::AWAKE
    }
}
