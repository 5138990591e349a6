//! Acts of one participant on the commit of another: it aborts one that is undecided, completes one that is
//! committed and whose owner has ended, and gives the locks back. One participant at a time does so, the claimant.

use super::commit::Surroundings;
use super::layout::{participant as field, phase, word};
use super::space::{Participant, Space, Status};
use crate::error::Result;
use crate::region::Region;
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// Tries of a lock that an undecided commit holds, before that is aborted: most end sooner.
const TRIES_BEFORE_ABORT: u32 = if cfg!(loom) { 1 } else { 30 };

impl<R: Region> Space<R> {
    /// Returns when the lock at `at` has a version, for a reader.
    pub fn await_lock(&self, me: Participant, at: u32, around: &impl Surroundings) -> Result<()> {
        let seen = self.lock(at)?.load(Acquire);
        self.resolve(me, at, seen, around)
    }

    /// Returns when the lock at `at` is no longer `seen`.
    pub(super) fn resolve(
        &self,
        me: Participant,
        at: u32,
        seen: u32,
        around: &impl Surroundings,
    ) -> Result<()> {
        let Some(owner) = Participant::of_lock(seen) else { return Ok(()) };
        for tries in 0.. {
            let status = Status(self.of(owner, field::STATUS)?.load(Acquire));
            if self.lock(at)?.load(Acquire) != seen {
                return Ok(());
            }
            match status.phase() {
                // An undecided owner holds nobody up for long.
                phase::LOCKING if tries >= TRIES_BEFORE_ABORT => {
                    let to = status.with(phase::ABORTED).0;
                    let _ = self
                        .of(owner, field::STATUS)?
                        .compare_exchange(status.0, to, AcqRel, Relaxed);
                }
                phase::ABORTED => self.undo(me, owner, status, tries, around)?,
                _ => {
                    if around.wait(tries, owner)? {
                        self.recover(me, owner, around)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Gives the locks of an aborted commit back, unless another does so.
    fn undo(
        &self,
        me: Participant,
        owner: Participant,
        status: Status,
        tries: u32,
        around: &impl Surroundings,
    ) -> Result<()> {
        if !self.claim(me, owner, tries, around)? {
            return Ok(());
        }
        // Acquire: a later commit of the owner would have waited for this claim.
        if self.of(owner, field::STATUS)?.load(Acquire) == status.0 {
            self.give_back(owner)?;
        }
        self.of(owner, field::CLAIMANT)?.store(0, Release);
        Ok(())
    }

    /// True: `me` alone may change the commit of `owner` now. One claim follows another whose claimant has ended.
    fn claim(
        &self,
        me: Participant,
        owner: Participant,
        tries: u32,
        around: &impl Surroundings,
    ) -> Result<bool> {
        let word = self.of(owner, field::CLAIMANT)?;
        let before = word.load(Acquire);
        if before != 0 && !around.wait(tries, Participant(before - 1))? {
            return Ok(false);
        }
        Ok(word.compare_exchange(before, me.claim(), AcqRel, Acquire).is_ok())
    }

    /// Releases each logged lock that `owner` still holds, with a new version: its own log may be behind the lock.
    /// A reader takes that for a change and runs again, which costs time and nothing else.
    fn give_back(&self, owner: Participant) -> Result<()> {
        let count = self.of(owner, field::LOCK_COUNT)?.load(Acquire).min(self.shape().writes);
        for index in 0..count {
            let lock = self.lock(self.logged_lock(owner, index)?.load(Relaxed))?;
            if lock.load(Acquire) != owner.lock() {
                continue;
            }
            let version = self.word(word::CLOCK)?.fetch_add(2, AcqRel).wrapping_add(2);
            let _ = lock.compare_exchange(owner.lock(), version, AcqRel, Relaxed);
        }
        Ok(())
    }

    /// Undoes or completes the commit of a participant that has ended, unless another does so.
    pub fn recover(
        &self,
        me: Participant,
        dead: Participant,
        around: &impl Surroundings,
    ) -> Result<()> {
        if !self.claim(me, dead, 0, around)? {
            return Ok(());
        }
        self.recover_claimed(dead, around)?;
        self.of(dead, field::CLAIMANT)?.store(0, Release);
        Ok(())
    }

    /// The same for the claimant alone. It may end at any instruction, and another begins again.
    fn recover_claimed(&self, dead: Participant, around: &impl Surroundings) -> Result<()> {
        let state = self.of(dead, field::STATUS)?;
        let status = Status(state.load(Acquire));
        match status.phase() {
            phase::COMMITTED => self.complete(dead, around)?,
            phase::IDLE => return Ok(()),
            _ => self.give_back(dead)?,
        }
        around.pass(18)?;
        state.store(status.with(phase::IDLE).0, Release);
        Ok(())
    }

    /// Locks are released in their order. So all values may be written again while the first is held, and none
    /// behind: other commits may have followed.
    fn complete(&self, dead: Participant, around: &impl Surroundings) -> Result<()> {
        let version = self.of(dead, field::VERSION)?.load(Acquire);
        let locks = self.of(dead, field::LOCK_COUNT)?.load(Acquire).min(self.shape().writes);
        let writes = self.of(dead, field::WRITE_COUNT)?.load(Acquire).min(self.shape().writes);
        let first = self.lock(self.logged_lock(dead, 0)?.load(Relaxed))?;
        if first.load(Acquire) == dead.lock() {
            around.pass(16)?;
            self.write_back(dead, writes)?;
        }
        around.pass(17)?;
        for index in 0..locks {
            let lock = self.lock(self.logged_lock(dead, index)?.load(Relaxed))?;
            let _ = lock.compare_exchange(dead.lock(), version, AcqRel, Relaxed);
        }
        Ok(())
    }

    /// Waits until nobody undoes the last commit of `me`: the next one has the same log.
    pub(super) fn await_claimant(&self, me: Participant, around: &impl Surroundings) -> Result<()> {
        let word = self.of(me, field::CLAIMANT)?;
        for tries in 0.. {
            let claimant = word.load(Acquire);
            if claimant == 0 {
                break;
            }
            if around.wait(tries, Participant(claimant - 1))? {
                let _ = word.compare_exchange(claimant, 0, AcqRel, Relaxed);
            }
        }
        Ok(())
    }
}
