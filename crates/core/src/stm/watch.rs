//! Sleep until something changes. A participant that sleeps sets its bit in the watch word of each lock that it
//! has read. A commit that releases a lock takes all bits of its word away, and wakes those participants. Locks
//! share watch words, and participants share bits: a wake-up may be in vain, and none is missing.
//!
//! Sleeper: set the bits, fence, check all locks once more, sleep. Waker: release the locks, fence, check the
//! watch words. So one of the two sees the other, as in `wake/sleep.rs`.

use super::commit::Surroundings;
use super::layout::{participant as field, word};
use super::space::{Participant, Space, is_old};
use crate::error::Result;
use crate::region::Region;
use crate::sync::{
    AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed, SeqCst},
    fence,
};

/// Participants of one bit have numbers that are equal modulo this.
const BITS: u32 = u32::BITS;

impl<R: Region> Space<R> {
    /// The watch word of a lock (Knuth's multiplicative hash).
    fn watch_word(&self, lock: u32) -> Result<&AtomicU32> {
        let mixed = lock.wrapping_mul(0x9e37_79b1) >> 16;
        self.word(self.shape().watch_at() + mixed % self.shape().watch_words)
    }

    /// Makes commits that change one of `reads` wake `me`. False: one has changed since `snapshot` already, or that is
    /// so old that a change would not be seen.
    pub fn watch(&self, me: Participant, reads: &[u32], snapshot: u32) -> Result<bool> {
        let bit = 1 << (me.0 % BITS);
        for &lock in reads {
            self.watch_word(lock)?.fetch_or(bit, Relaxed);
        }
        // SeqCst pairs with the fence in `wake_watchers`.
        fence(SeqCst);
        let is_sound = !is_old(snapshot, self.now()?);
        Ok(is_sound && self.first_changed(reads, snapshot, None)?.is_none())
    }

    /// Wakes all that watch one of these locks, which were just released.
    pub(super) fn wake_watchers(
        &self,
        locks: impl Iterator<Item = u32>,
        around: &impl Surroundings,
    ) -> Result<()> {
        // SeqCst pairs with the fence in `watch`.
        fence(SeqCst);
        for lock in locks {
            let word = self.watch_word(lock)?;
            if word.load(Relaxed) != 0 {
                self.wake_bits(word.swap(0, AcqRel), around)?;
            }
        }
        Ok(())
    }

    fn wake_bits(&self, bits: u32, around: &impl Surroundings) -> Result<()> {
        let numbers = self.word(word::NUMBERS)?.load(Relaxed).min(self.shape().participants);
        for number in (0..numbers).filter(|number| bits & 1 << (number % BITS) != 0) {
            let participant = Participant(number);
            if self.of(participant, field::WAKE)?.swap(1, AcqRel) == 0 {
                let bell_of = Participant(self.of(participant, field::BELL_OF)?.load(Acquire));
                // A forged number is the loss of that participant alone.
                if let Ok(bell) = self.of(bell_of, field::BELL) {
                    bell.fetch_add(1, AcqRel);
                    around.ring(bell);
                }
            }
        }
        Ok(())
    }

    /// True: a wake-up came since the last call.
    pub fn take_wake(&self, me: Participant) -> Result<bool> {
        Ok(self.of(me, field::WAKE)?.swap(0, AcqRel) != 0)
    }
}
