//! One commit, in numbered steps. Up to step 5 any participant may abort it; from then on any may complete it.
//!
//! 1 write the log, 2 take the locks in ascending order, 3 take a version, 4 validate the reads, 5 commit,
//! 6 write the values, 7 release the locks with the version, 8 end.

use super::layout::{participant as field, phase, word};
use super::space::{Participant, Space, Status};
use crate::error::{CoreError, Result};
use crate::region::Region;
use crate::sync::{
    Ordering::{AcqRel, Acquire, Relaxed, Release},
    fence,
};

/// The reads of a transaction, and the writes that are to follow. The caller keeps the vectors for the next one.
#[derive(Debug, Default)]
pub struct Commit {
    pub snapshot: u32,
    /// Locks of objects that were read.
    pub reads: Vec<u32>,
    /// Locks of objects that are written.
    pub locks: Vec<u32>,
    /// Indices of words with their new values.
    pub writes: Vec<(u32, u32)>,
    /// The locks that are held, with their versions before.
    held: Vec<(u32, u32)>,
}

impl Commit {
    /// Empties it for a transaction that begins now.
    pub fn restart(&mut self, snapshot: u32) {
        self.snapshot = snapshot;
        self.reads.clear();
        self.locks.clear();
        self.writes.clear();
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The version of what it wrote; that of the snapshot where it wrote nothing.
    Committed(u32),
    /// No effect, because another transaction came between: it is to run again.
    Conflict,
}

/// The surroundings of a commit: waits, and in tests the end of a participant at a step.
pub trait Surroundings {
    /// Called before each step; an error ends the commit there, as the end of its process does.
    fn pass(&self, _step: u8) -> Result<()> {
        Ok(())
    }

    /// True: `pass` has ended this participant, which therefore gives nothing back.
    fn has_ended(&self) -> bool {
        false
    }

    /// Waits for another participant for a moment. `tries`: how often before. True: it has ended.
    fn wait(&self, tries: u32, on: Participant) -> Result<bool>;
}

impl<R: Region> Space<R> {
    /// Makes the writes of `commit` visible, all at one moment, at which its reads still hold.
    pub fn commit(
        &self,
        me: Participant,
        commit: &mut Commit,
        around: &impl Surroundings,
    ) -> Result<Outcome> {
        if commit.writes.is_empty() {
            return Ok(Outcome::Committed(commit.snapshot));
        }
        let status = self.begin_commit(me, commit, around)?;
        let version = match self.lock_and_validate(me, status, commit, around) {
            Ok(Some(version)) => version,
            Err(error) if around.has_ended() => return Err(error),
            undecided => {
                self.give_up(me, status, commit, around)?;
                return undecided.map(|_| Outcome::Conflict);
            }
        };
        around.pass(6)?;
        self.write_back(me, commit.writes.len() as u32)?;
        for &(lock, _) in &commit.held {
            around.pass(7)?;
            // Release: pairs with the first load of `read_once`, which then has the new values.
            self.lock(lock)?.store(version, Release);
        }
        around.pass(8)?;
        // Release: others see no lock of this commit behind its end.
        self.of(me, field::STATUS)?.store(status.with(phase::IDLE).0, Release);
        Ok(Outcome::Committed(version))
    }

    /// Step 1. Returns the status of this commit.
    fn begin_commit(
        &self,
        me: Participant,
        commit: &mut Commit,
        around: &impl Surroundings,
    ) -> Result<Status> {
        around.pass(1)?;
        if commit.writes.len() > self.shape().writes as usize {
            let value = commit.writes.len() as u64;
            return Err(CoreError::Corrupt { what: "the number of writes", value });
        }
        // Ascending for all: two that took each other's locks would wait, until one is aborted.
        commit.locks.sort_unstable();
        commit.locks.dedup();
        commit.held.clear();
        for &lock in &commit.locks {
            self.lock(lock)?;
        }
        for (index, &(at, value)) in (0..).zip(&commit.writes) {
            self.word(at)?;
            let (place, new) = self.logged_write(me, index)?;
            place.store(at, Relaxed);
            new.store(value, Relaxed);
        }
        self.of(me, field::WRITE_COUNT)?.store(commit.writes.len() as u32, Relaxed);
        self.of(me, field::LOCK_COUNT)?.store(0, Relaxed);
        let status = Status(self.of(me, field::STATUS)?.load(Relaxed)).next();
        // Release: who sees this status sees the log of this commit.
        self.of(me, field::STATUS)?.store(status.0, Release);
        Ok(status)
    }

    /// Steps 2 to 5. `None`: a conflict.
    fn lock_and_validate(
        &self,
        me: Participant,
        status: Status,
        commit: &mut Commit,
        around: &impl Surroundings,
    ) -> Result<Option<u32>> {
        around.pass(2)?;
        let Commit { locks, held, reads, snapshot, .. } = commit;
        for (index, &at) in (0..).zip(locks.iter()) {
            // Before the lock is taken: whoever sees it taken finds it in the log.
            self.logged_lock(me, index)?.store(at, Relaxed);
            self.of(me, field::LOCK_COUNT)?.store(index + 1, Release);
            let Some(before) = self.take(me, status, at, around)? else { return Ok(None) };
            held.push((at, before));
        }
        around.pass(3)?;
        // AcqRel: a snapshot of this moment or a later one sees the locks.
        let version = self.word(word::CLOCK)?.fetch_add(2, AcqRel).wrapping_add(2);
        around.pass(4)?;
        if version != snapshot.wrapping_add(2)
            && !self.is_unchanged(reads, *snapshot, Some((me, held)))?
        {
            return Ok(None);
        }
        around.pass(5)?;
        self.of(me, field::VERSION)?.store(version, Relaxed);
        let (from, to) = (status.0, status.with(phase::COMMITTED).0);
        // AcqRel: who sees it committed sees the version; fails when another has aborted it.
        let committed = self.of(me, field::STATUS)?.compare_exchange(from, to, AcqRel, Acquire);
        Ok(committed.is_ok().then_some(version))
    }

    /// Takes one lock and returns its version; `None`: another has aborted this commit.
    fn take(
        &self,
        me: Participant,
        status: Status,
        at: u32,
        around: &impl Surroundings,
    ) -> Result<Option<u32>> {
        let lock = self.lock(at)?;
        loop {
            let found = lock.load(Acquire);
            if Participant::of_lock(found).is_some() {
                self.resolve(me, at, found, around)?;
            } else if lock.compare_exchange(found, me.lock(), AcqRel, Acquire).is_ok() {
                return Ok(Some(found));
            }
            if self.of(me, field::STATUS)?.load(Acquire) != status.0 {
                return Ok(None);
            }
        }
    }

    /// Step 6, of its owner or of another that completes it. The values are those of the log.
    pub(super) fn write_back(&self, of: Participant, count: u32) -> Result<()> {
        // Pairs with the acquire fence of `read_once`: whoever sees one of the values sees the lock taken.
        fence(Release);
        for index in 0..count {
            let (place, value) = self.logged_write(of, index)?;
            self.word(place.load(Relaxed))?.store(value.load(Relaxed), Relaxed);
        }
        Ok(())
    }

    /// Gives the locks back and ends the commit without an effect.
    fn give_up(
        &self,
        me: Participant,
        status: Status,
        commit: &Commit,
        around: &impl Surroundings,
    ) -> Result<()> {
        for &(lock, before) in &commit.held {
            // A thief may have given it back already.
            let _ = self.lock(lock)?.compare_exchange(me.lock(), before, AcqRel, Relaxed);
        }
        self.of(me, field::STATUS)?.store(status.with(phase::IDLE).0, Release);
        self.await_claimant(me, around)
    }
}
