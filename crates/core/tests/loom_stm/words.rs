//! The memory of a model, word by word. It makes loom run what it would leave out (`Word::turn`) and leave out what
//! has no end (`CLAIMS_BEFORE_YIELD`), and it ends a participant at an access.

use loom::thread;
use manycore_core::region::Region;
use manycore_core::stm::layout::{
    PARTICIPANT_WORDS, PARTICIPANTS_AT, Shape, counter, participant, word,
};
use manycore_core::sync::{AtomicU32, Ordering::Relaxed};
use std::cell::Cell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::AtomicU32 as PlainU32;

pub const SHAPE: Shape =
    Shape { size_words: 2048, participants: 3, small_writes: 4, large_writes: 4, watch_words: 1 };
pub const CELLS: u32 = 2;

/// Accesses to claims by one thread before it yields. Without a yield, loom may return old values to it for ever.
const CLAIMS_BEFORE_YIELD: u32 = 8;

loom::thread_local! {
    static CLAIM_ACCESSES: Cell<u32> = Cell::new(0);
}

struct Word {
    value: AtomicU32,
    /// Stored before each access to `value`, and never loaded, so it orders nothing. Loom compares an access with the
    /// last one to the same atomic alone. Without this, a writer's own load hides the loads of others from its next
    /// store, and loom never runs them behind that store.
    turn: Option<AtomicU32>,
}

/// The words that a model uses, and no others: each costs loom time.
pub struct Words {
    words: HashMap<usize, Word>,
    /// Accesses until the only thread ends; `u32::MAX`: it goes on.
    accesses_left: PlainU32,
}

/// The field of a participant that this word is.
fn field_at(at: u32) -> Option<u32> {
    let is_field = (PARTICIPANTS_AT..SHAPE.watch_at()).contains(&at);
    is_field.then(|| (at - PARTICIPANTS_AT) % PARTICIPANT_WORDS)
}

/// True: a participant that writes this word also loads it, and others access it meanwhile.
fn needs_turn(at: u32) -> bool {
    let is_field = matches!(field_at(at), Some(participant::STATUS | participant::CLAIMANT));
    is_field || at == word::CLOCK || at == SHAPE.watch_at() || at >= SHAPE.chunks_at()
}

impl Words {
    pub fn new() -> Words {
        let mut used: Vec<u32> = (0..5).collect();
        used.extend([word::CLOCK, word::EPOCH, word::HEAP_TOP, word::SERIAL, word::NUMBERS]);
        used.push(SHAPE.watch_at());
        for number in 0..SHAPE.participants {
            let first = PARTICIPANTS_AT + number * PARTICIPANT_WORDS;
            let fields = [
                participant::STATE,
                participant::LIFE,
                participant::STATUS,
                participant::VERSION,
                participant::LOCK_COUNT,
                participant::WRITE_COUNT,
                participant::LOG_AT,
                participant::CLAIMANT,
                participant::WAKE,
                participant::BELL,
                participant::BELL_OF,
                participant::EPOCH,
                participant::TAKEN_COUNT,
            ];
            used.extend(fields.map(|field| first + field));
            let counters = first + participant::COUNTERS;
            used.extend(counters..counters + counter::COUNT);
            let log = SHAPE.small_log(number);
            used.extend((0..2).map(|at| log.lock(at)));
            used.extend((0..4).map(|at| log.write(0) + at));
        }
        used.extend((0..2 * CELLS).map(|at| SHAPE.chunks_at() + at));
        let word =
            |at| Word { value: AtomicU32::new(0), turn: needs_turn(at).then(|| AtomicU32::new(0)) };
        let words = used.into_iter().map(|at| (at as usize * 4, word(at))).collect();
        Words { words, accesses_left: PlainU32::new(u32::MAX) }
    }

    /// Runs `body`, which ends behind `accesses` accesses as by the end of its process. False: it ended so.
    pub fn runs_whole(&self, accesses: u32, body: impl FnOnce()) -> bool {
        self.accesses_left.store(accesses, Relaxed);
        let result = catch_unwind(AssertUnwindSafe(body));
        let is_ended = self.accesses_left.swap(u32::MAX, Relaxed) == 0;
        match result {
            Err(panic) if !is_ended => resume_unwind(panic),
            result => result.is_ok(),
        }
    }

    fn count_access(&self) {
        match self.accesses_left.load(Relaxed) {
            u32::MAX => {}
            0 => resume_unwind(Box::new("the end of a participant")),
            left => self.accesses_left.store(left - 1, Relaxed),
        }
    }
}

// SAFETY: a word's place depends on its offset alone; there are no copies.
unsafe impl Region for Words {
    fn size_bytes(&self) -> usize {
        SHAPE.size_words as usize * 4
    }
    fn word(&self, offset: usize) -> &AtomicU32 {
        self.count_access();
        if field_at(offset as u32 / 4) == Some(participant::CLAIMANT) {
            let accesses = CLAIM_ACCESSES.with(|accesses| accesses.replace(accesses.get() + 1));
            if accesses == CLAIMS_BEFORE_YIELD {
                CLAIM_ACCESSES.with(|accesses| accesses.set(0));
                thread::yield_now();
            }
        }
        let word = &self.words[&offset];
        if let Some(turn) = &word.turn {
            turn.store(0, Relaxed);
        }
        &word.value
    }
    fn copy_in(&self, _offset: usize, _bytes: &[u8]) {
        unreachable!("words alone")
    }
    fn copy_out(&self, _offset: usize, _bytes: &mut [u8]) {
        unreachable!("words alone")
    }
}
