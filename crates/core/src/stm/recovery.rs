//! Acts of one participant on the commit of another: it aborts one that is undecided, completes one that is
//! committed and whose owner has ended, and gives the locks back. One participant at a time does so, the claimant.

use super::commit::{Peer, Surroundings};
use super::layout::{counter, participant as field, phase, word};
use super::space::{Claim, Life, Participant, Space, Status};
use crate::error::{CoreError, Result};
use crate::region::Region;
use crate::sync::{
    Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
    fence,
};

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
            let life = self.life(owner)?;
            let status = Status(self.of(owner, field::STATUS)?.load(Acquire));
            if self.lock(at)?.load(Acquire) != seen {
                return Ok(());
            }
            match status.phase() {
                // An undecided owner holds nobody up for long.
                phase::LOCKING if tries >= TRIES_BEFORE_ABORT => {
                    let to = status.with(phase::ABORTED).0;
                    let word = self.of(owner, field::STATUS)?;
                    if word.compare_exchange(status.0, to, AcqRel, Relaxed).is_ok() {
                        self.count(me, counter::THEFTS)?;
                        self.note_conflict(at)?;
                    }
                }
                phase::ABORTED => self.undo(me, owner, status, tries, around)?,
                _ => {
                    let peer = Peer { number: owner, life };
                    if around.wait(tries, peer)? {
                        self.recover(me, peer, around)?;
                        self.check_holder(at, seen, peer)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// An error where a lock has the number of nobody: no repair would ever give it back.
    fn check_holder(&self, at: u32, seen: u32, Peer { number, life }: Peer) -> Result<()> {
        let status = Status(self.of(number, field::STATUS)?.load(Acquire));
        // A repair gives the locks back before it ends. A thread takes a number, which changes its life, before it
        // locks.
        let is_held = self.lock(at)?.load(Acquire) == seen;
        let is_free = life.state == 0 && self.life(number)? == life;
        if is_free && is_held && status.phase() == phase::IDLE {
            return Err(CoreError::Corrupt { what: "the lock of an object", value: seen.into() });
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
        // SeqCst pairs with the fence in `give_up`: either the owner sees this claim and waits, or this sees its end.
        fence(SeqCst);
        let is_same = self.of(owner, field::STATUS)?.load(Acquire) == status.0;
        let done = if is_same { self.give_back(owner) } else { Ok(()) };
        self.of(owner, field::CLAIMANT)?.store(0, Release);
        done
    }

    /// True: `me` alone may change the commit of `owner` now. One claim follows another whose claimant has ended.
    fn claim(
        &self,
        me: Participant,
        owner: Participant,
        tries: u32,
        around: &impl Surroundings,
    ) -> Result<bool> {
        let at = self.field_at(owner, field::CLAIMANT)?;
        let before = Claim(self.word(at)?.load(Acquire));
        self.await_claim(at, before, tries, around)?;
        let mine = self.claim_of(me)?.0;
        Ok(self.word(at)?.compare_exchange(0, mine, AcqRel, Acquire).is_ok())
    }

    /// Waits for the holder of a claim for a moment, and takes the claim away if it has ended.
    pub(super) fn await_claim(
        &self,
        at: u32,
        claim: Claim,
        tries: u32,
        around: &impl Surroundings,
    ) -> Result<()> {
        let Some(number) = claim.holder() else { return Ok(()) };
        let life = self.life(number)?;
        if !claim.is_of(life) || around.wait(tries, Peer { number, life })? {
            let _ = self.word(at)?.compare_exchange(claim.0, 0, AcqRel, Relaxed);
        }
        Ok(())
    }

    /// Releases each logged lock that `owner` still holds, with a new version: its own log may be behind the lock.
    /// A reader takes that for a change and runs again, which costs time and nothing else.
    fn give_back(&self, owner: Participant) -> Result<()> {
        let log = self.log(owner)?;
        let count = self.of(owner, field::LOCK_COUNT)?.load(Acquire).min(log.writes);
        for index in 0..count {
            let lock = self.lock(self.word(log.lock(index))?.load(Relaxed))?;
            if lock.load(Acquire) != owner.lock() {
                continue;
            }
            let version = self.word(word::CLOCK)?.fetch_add(2, AcqRel).wrapping_add(2);
            let _ = lock.compare_exchange(owner.lock(), version, AcqRel, Relaxed);
        }
        Ok(())
    }

    /// Undoes or completes the commit of a participant that has ended, gives its memory back, and frees its number;
    /// not when another does so, or the number has a new thread.
    pub fn recover(&self, me: Participant, dead: Peer, around: &impl Surroundings) -> Result<()> {
        let mut tries = 0;
        // The claimant may end as well: its claim ends with it, and the repair begins again.
        while !self.try_recover(me, dead, tries, around)? {
            if self.life(dead.number)? != dead.life {
                break;
            }
            tries += 1;
        }
        Ok(())
    }

    /// The same without a wait. False: another one has the claim.
    pub fn try_recover(
        &self,
        me: Participant,
        dead: Peer,
        tries: u32,
        around: &impl Surroundings,
    ) -> Result<bool> {
        if !self.claim(me, dead.number, tries, around)? {
            return Ok(false);
        }
        let repaired = self.repair(me, dead, around);
        if !around.has_ended() {
            self.of(dead.number, field::CLAIMANT)?.store(0, Release);
        }
        repaired.map(|()| true)
    }

    fn repair(&self, me: Participant, dead: Peer, around: &impl Surroundings) -> Result<()> {
        // A thread that takes the number from now on waits for the claim.
        if self.life(dead.number)? == dead.life {
            let status = self.recover_claimed(dead.number, around)?;
            if status.phase() != phase::IDLE {
                self.count(me, counter::RECOVERIES)?;
            }
            self.release_number(dead.number, dead.life)?;
        }
        Ok(())
    }

    /// The same for a thread that has just taken the number of one that has ended.
    pub(super) fn recover_own(&self, me: Participant, around: &impl Surroundings) -> Result<()> {
        let mut tries = 0;
        while !self.claim(me, me, tries, around)? {
            tries += 1;
        }
        let repaired = self.recover_claimed(me, around);
        if !around.has_ended() {
            self.of(me, field::CLAIMANT)?.store(0, Release);
        }
        repaired.map(|_| ())
    }

    /// Ends the commit of a participant; for its claimant, which may itself end at any instruction: another one
    /// begins again. Returns its status before.
    fn recover_claimed(&self, dead: Participant, around: &impl Surroundings) -> Result<Status> {
        let state = self.of(dead, field::STATUS)?;
        let status = Status(state.load(Acquire));
        match status.phase() {
            phase::COMMITTED => self.complete(dead, around)?,
            phase::IDLE => {}
            _ => self.give_back(dead)?,
        }
        around.pass(18)?;
        state.store(status.with(phase::IDLE).0, Release);
        self.give_taken_back(dead, 0)?;
        around.pass(19)?;
        self.of(dead, field::EPOCH)?.store(0, Release);
        Ok(status)
    }

    /// Frees the number of a thread that has ended.
    fn release_number(&self, dead: Participant, life: Life) -> Result<()> {
        let _ = self.of(dead, field::STATE)?.compare_exchange(life.state, 0, AcqRel, Relaxed);
        Ok(())
    }

    /// Locks are released in their order. So all values may be written again while the first is held, and none
    /// behind: other commits may have followed.
    fn complete(&self, dead: Participant, around: &impl Surroundings) -> Result<()> {
        let log = self.log(dead)?;
        let version = self.of(dead, field::VERSION)?.load(Acquire);
        let locks = self.of(dead, field::LOCK_COUNT)?.load(Acquire).min(log.writes);
        let first = self.lock(self.word(log.lock(0))?.load(Relaxed))?;
        if first.load(Acquire) == dead.lock() {
            around.pass(16)?;
            self.write_back(dead, self.of(dead, field::WRITE_COUNT)?.load(Acquire))?;
        }
        around.pass(17)?;
        for index in 0..locks {
            let lock = self.lock(self.word(log.lock(index))?.load(Relaxed))?;
            let _ = lock.compare_exchange(dead.lock(), version, AcqRel, Relaxed);
        }
        let mut watched = Vec::with_capacity(locks as usize);
        for index in 0..locks {
            watched.push(self.word(log.lock(index))?.load(Relaxed));
        }
        self.wake_watchers(watched.into_iter(), around)
    }

    /// Waits until nobody undoes the last commit of `me`: the next one has the same log.
    pub(super) fn await_claimant(&self, me: Participant, around: &impl Surroundings) -> Result<()> {
        let at = self.field_at(me, field::CLAIMANT)?;
        for tries in 0.. {
            let claim = Claim(self.word(at)?.load(Acquire));
            if claim.holder().is_none() {
                break;
            }
            self.await_claim(at, claim, tries, around)?;
        }
        Ok(())
    }
}
