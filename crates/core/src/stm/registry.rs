//! The threads behind the participants' numbers. A number of a thread that has ended goes to the next one, which
//! first undoes or completes its commit, and inherits its free memory.

use super::commit::{ASKING_TRY, Peer, Surroundings};
use super::layout::{participant as field, phase, word};
use super::space::{Participant, Space, Status};
use crate::error::{CoreError, Result};
use crate::region::Region;
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};

impl<R: Region> Space<R> {
    /// Takes a number for the thread of `state`: a free one, or that of a thread that has ended.
    pub fn attach(
        &self,
        state: u32,
        is_alive: impl Fn(u32) -> bool,
        around: &impl Surroundings,
    ) -> Result<Participant> {
        for number in 0..self.shape().participants {
            let me = Participant(number);
            let found = self.of(me, field::STATE)?.load(Acquire);
            if found != 0 && is_alive(found) {
                continue;
            }
            let own = self.of(me, field::STATE)?;
            if own.compare_exchange(found, state, AcqRel, Relaxed).is_err() {
                continue;
            }
            let life = self.of(me, field::LIFE)?;
            life.store(life.load(Relaxed).wrapping_add(1), Release);
            self.word(word::NUMBERS)?.fetch_max(number + 1, AcqRel);
            self.of(me, field::BELL_OF)?.store(number, Relaxed);
            self.recover_own(me, around)?;
            return Ok(me);
        }
        Err(CoreError::Crowded { participants: self.shape().participants })
    }

    /// Frees the number of a thread that goes on, or ends in order, outside of a transaction.
    pub fn detach(&self, me: Participant) -> Result<()> {
        self.give_taken_back(me, 0)?;
        self.leave(me)?;
        self.of(me, field::STATE)?.store(0, Release);
        Ok(())
    }

    /// Notes that a thread has ended, and rings all that sleep: they recover it (`waiter`). For its parent, which
    /// takes no part itself perhaps.
    pub fn note_end(&self, around: &impl Surroundings) -> Result<()> {
        self.word(word::ENDS)?.fetch_add(1, AcqRel);
        for number in 0..self.word(word::NUMBERS)?.load(Acquire).min(self.shape().participants) {
            let participant = Participant(number);
            let is_used = self.of(participant, field::STATE)?.load(Acquire) != 0;
            if is_used && self.of(participant, field::BELL_OF)?.load(Acquire) == number {
                let bell = self.of(participant, field::BELL)?;
                bell.fetch_add(1, AcqRel);
                around.ring(bell);
            }
        }
        Ok(())
    }

    /// Recovers all participants whose threads have ended and that hold locks or memory.
    pub fn recover_ended(
        &self,
        me: Participant,
        is_alive: impl Fn(u32) -> bool,
        around: &impl Surroundings,
    ) -> Result<()> {
        let mut result = Ok(());
        for number in 0..self.word(word::NUMBERS)?.load(Acquire).min(self.shape().participants) {
            let number = Participant(number);
            let life = self.life(number)?;
            let is_busy = Status(self.of(number, field::STATUS)?.load(Acquire)).phase()
                != phase::IDLE
                || self.of(number, field::EPOCH)?.load(Acquire) != 0;
            if number != me && is_busy && life.state != 0 && !is_alive(life.state) {
                // One that cannot be repaired holds up no other one.
                let peer = Peer { number, life };
                result = result.and(self.try_recover(me, peer, ASKING_TRY, around).map(|_| ()));
            }
        }
        result
    }
}
