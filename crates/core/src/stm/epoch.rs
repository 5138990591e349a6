//! Epochs: a participant announces the present one when its transaction begins. The epoch advances when all that
//! are in a transaction have announced it. A commit retires blocks in the epoch that its participant has announced,
//! which may be one behind the present one; readers of that see the blocks, too. So what was retired three epochs ago
//! is seen by no transaction that runs (Fraser 2004: practical lock-freedom, epoch-based reclamation).

use super::commit::{ASKING_TRY, Peer, Surroundings};
use super::layout::{participant as field, word};
use super::space::{Participant, Space};
use crate::error::Result;
use crate::region::Region;
use crate::sync::{
    Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
    fence,
};

/// Epochs are odd numbers.
const STEP: u32 = 2;

/// True: no reader sees any more what was retired in `epoch`. `now`: the present one, or the one that the same
/// participant has announced since. It is never before `epoch`, which may be half a wrap ago: a participant may rest.
pub(super) fn is_past(epoch: u32, now: u32) -> bool {
    now.wrapping_sub(epoch) >= 3 * STEP
}

impl<R: Region> Space<R> {
    /// Announces that a transaction of `me` begins: objects that it can reach stay until `leave`.
    pub fn enter(&self, me: Participant) -> Result<()> {
        let own = self.of(me, field::EPOCH)?;
        let global = self.word(word::EPOCH)?;
        loop {
            let epoch = global.load(Relaxed);
            own.store(epoch, Relaxed);
            // SeqCst pairs with the fence in `advance`: either that sees the announcement, or this sees its epoch.
            fence(SeqCst);
            if global.load(Acquire) == epoch {
                return Ok(());
            }
        }
    }

    pub fn leave(&self, me: Participant) -> Result<()> {
        // Release: reads of the transaction stay before.
        self.of(me, field::EPOCH)?.store(0, Release);
        Ok(())
    }

    /// Begins the next epoch, unless a participant is in a transaction that began in an older one: that one.
    pub fn advance(&self) -> Result<Option<Participant>> {
        let global = self.word(word::EPOCH)?;
        let epoch = global.load(Relaxed);
        fence(SeqCst);
        for number in 0..self.word(word::NUMBERS)?.load(Relaxed).min(self.shape().participants) {
            let announced = self.of(Participant(number), field::EPOCH)?.load(Acquire);
            if announced != 0 && announced != epoch {
                return Ok(Some(Participant(number)));
            }
        }
        let _ = global.compare_exchange(epoch, epoch.wrapping_add(STEP), AcqRel, Relaxed);
        Ok(None)
    }

    /// Advances the epoch, and frees what nobody sees any more. `held_back`: how often one participant held it
    /// back before; after some times, one that has ended is recovered.
    pub fn reclaim(
        &self,
        me: Participant,
        held_back: &mut u32,
        around: &impl Surroundings,
    ) -> Result<()> {
        match self.advance()? {
            None => *held_back = 0,
            Some(number) => {
                *held_back += 1;
                let life = self.life(number)?;
                if around.has_gone(*held_back, life)? {
                    self.try_recover(me, Peer { number, life }, ASKING_TRY, around)?;
                    *held_back = 0;
                }
            }
        }
        self.free_retired(me)
    }
}
