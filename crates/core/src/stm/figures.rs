//! Counts of what all participants of a space did so far, and its memory: for statistics.
//! Not here: the counting (commit.rs, recovery.rs).

use super::layout::{counter, participant as field, word};
use super::space::{Participant, Space};
use crate::error::Result;
use crate::region::Region;
use crate::sync::Ordering::{Acquire, Relaxed};

/// Counts since the space was made, of all threads that ever took part; each wraps at 2³².
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figures {
    /// Threads that take part now, and those that ended and were not replaced.
    pub participants: u32,
    /// By `layout::counter`.
    pub counts: [u32; counter::COUNT as usize],
    /// Words of blocks that were taken from the heap, whether or not they are in use now.
    pub heap_words: u32,
}

impl<R: Region> Space<R> {
    /// Reads each figure by itself: they are not of one moment.
    pub fn figures(&self) -> Result<Figures> {
        let mut participants = 0;
        let mut counts = [0u32; counter::COUNT as usize];
        for number in 0..self.word(word::NUMBERS)?.load(Acquire).min(self.shape().participants) {
            let of = Participant(number);
            participants += u32::from(self.of(of, field::STATE)?.load(Relaxed) != 0);
            for (sum, at) in counts.iter_mut().zip(field::COUNTERS..) {
                *sum = sum.wrapping_add(self.of(of, at)?.load(Relaxed));
            }
        }
        let top = self.word(word::HEAP_TOP)?.load(Relaxed);
        let heap_words = top.saturating_sub(self.shape().chunks_at());
        Ok(Figures { participants, counts, heap_words })
    }
}
