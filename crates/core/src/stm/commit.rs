//! One commit, in numbered steps. Up to step 6 any participant may abort it; from then on any may complete it.
//!
//! 1 begin, 2 take the locks in ascending order, 3 write the log, 4 take a version, 5 validate the reads,
//! 6 commit, 7 write the values, 8 release the locks with the version, 9 wake those that wait for them, 10 end.

use super::layout::{CLASS_BITS, HEADER_WORDS, Log, counter, participant as field, phase, word};
use super::space::{Claim, Life, Participant, Space, Status};
use super::value;
use crate::error::{CoreError, Result};
use crate::region::Region;
use crate::sync::{
    AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
    fence,
};

/// Waits for a participant that alone may commit, some 100 ms: one that needs longer has to try again.
const SERIAL_TRIES: u32 = if cfg!(loom) { 2 } else { 2000 };

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
    /// Words of what is written that must not have changed, with their values: headers of objects that are written
    /// without having been read.
    pub unchanged: Vec<(u32, u32)>,
    /// Values (`value`) that are written: bytes that one refers to are retired.
    pub replaced: Vec<u32>,
    /// Objects that nothing refers to any more once this has committed.
    pub retired: Vec<u32>,
    /// True: the blocks that the participant took are in use once this has committed.
    pub keeps_taken: bool,
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
        self.unchanged.clear();
        self.replaced.clear();
        self.retired.clear();
        self.keeps_taken = false;
    }

    /// The greatest number of words that its log may need.
    fn log_words(&self) -> u64 {
        (self.writes.len() + self.replaced.len() + self.retired.len() + 2) as u64
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The version of what it wrote; that of the snapshot where it wrote nothing.
    Committed(u32),
    /// No effect, because another transaction came between: it is to run again.
    Conflict,
}

/// A participant that another one waits for: with its life, because its number may go to another thread.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    pub number: Participant,
    pub life: Life,
}

/// Tries of `Surroundings::wait` between two questions whether the other one lives: the last of them asks.
pub const TRIES_PER_QUESTION: u32 = 128;
pub(super) const ASKING_TRY: u32 = TRIES_PER_QUESTION - 1;

/// A wrong order of steps, with which a model has to fail (`tests/loom_stm`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// An aborted commit becomes idle only when its owner has waited for the claimant.
    IdleAfterWait,
    /// A lock is logged only when it is taken.
    LogAfterLock,
    /// Sleepers are woken before the locks are taken. Between the taking and the release it would do no harm: a
    /// sleeper takes a lock that is held for a change (`watch`).
    WakeBeforeLock,
}

/// The surroundings of a commit: waits, and in tests the end of a participant at a step.
pub trait Surroundings {
    /// True: the commit makes this fault. Only in models.
    fn has_fault(&self, _fault: Fault) -> bool {
        false
    }

    /// Called before each step; an error ends the commit there, as the end of its process does.
    fn pass(&self, _step: u8) -> Result<()> {
        Ok(())
    }

    /// True: `pass` has ended this participant, which therefore gives nothing back.
    fn has_ended(&self) -> bool {
        false
    }

    /// Waits for another participant for a moment. `tries`: how often before. True: it has ended.
    fn wait(&self, tries: u32, on: Peer) -> Result<bool>;

    /// True: the thread of `life`, which holds the memory back for the `times`-th time, has ended.
    fn has_gone(&self, _times: u32, _life: Life) -> Result<bool> {
        Ok(false)
    }

    /// Wakes the waiter behind this word, which was changed.
    fn ring(&self, _bell: &AtomicU32) {}
}

impl<R: Region> Space<R> {
    /// Makes the writes of `commit` visible, all at one moment, at which its reads still hold.
    pub fn commit(
        &self,
        me: Participant,
        commit: &mut Commit,
        around: &impl Surroundings,
    ) -> Result<Outcome> {
        if commit.writes.is_empty() && commit.retired.is_empty() {
            return Ok(Outcome::Committed(commit.snapshot));
        }
        let limbo = self.prepare(me, commit, around)?;
        if around.has_fault(Fault::WakeBeforeLock) {
            self.wake_watchers(commit.locks.iter().copied(), around)?;
        }
        let status = self.begin_commit(me, around)?;
        let version = match self.lock_and_validate(me, status, commit, limbo, around) {
            Ok(Some(version)) => version,
            Err(error) if around.has_ended() => return Err(error),
            undecided => {
                // Pairs with the release fence of `write_back`: whoever has seen a word of the next owner of a lock
                // sees that this commit was aborted before. What it made of such words is no error.
                fence(Acquire);
                let is_stolen = self.of(me, field::STATUS)?.load(Relaxed) != status.0;
                self.give_up(me, status, commit, around)?;
                return if is_stolen {
                    Ok(Outcome::Conflict)
                } else {
                    undecided.map(|_| Outcome::Conflict)
                };
            }
        };
        around.pass(7)?;
        self.write_back(me, self.of(me, field::WRITE_COUNT)?.load(Relaxed))?;
        for &(lock, _) in &commit.held {
            around.pass(8)?;
            // Release: pairs with the first load of `read_once`, which then has the new values.
            self.lock(lock)?.store(version, Release);
        }
        around.pass(9)?;
        if !around.has_fault(Fault::WakeBeforeLock) {
            self.wake_watchers(commit.held.iter().map(|&(lock, _)| lock), around)?;
        }
        around.pass(10)?;
        // Release: others see no lock of this commit behind its end.
        self.of(me, field::STATUS)?.store(status.with(phase::IDLE).0, Release);
        self.count(me, counter::COMMITS)?;
        Ok(Outcome::Committed(version))
    }

    /// Checks everything that may fail, before any step. Returns the list for what is retired.
    fn prepare(
        &self,
        me: Participant,
        commit: &mut Commit,
        around: &impl Surroundings,
    ) -> Result<u32> {
        let needed = commit.log_words().max(commit.locks.len() as u64);
        if needed > self.shape().large_writes.into() {
            return Err(CoreError::TooLarge { writes: needed });
        }
        self.grow_log(me, needed as u32, 0)?;
        // Ascending for all: two that took each other's locks would wait, until one is aborted.
        commit.locks.sort_unstable();
        commit.locks.dedup();
        commit.held.clear();
        for &lock in &commit.locks {
            self.lock(lock)?;
        }
        for &(at, _) in &commit.writes {
            self.word(at)?;
        }
        let mine = self.claim_of(me)?;
        for tries in 0..SERIAL_TRIES {
            let serial = Claim(self.word(word::SERIAL)?.load(Acquire));
            if serial.holder().is_none() || serial == mine {
                break;
            }
            self.await_claim(word::SERIAL, serial, tries, around)?;
        }
        let retires = !commit.replaced.is_empty() || !commit.retired.is_empty();
        if retires { self.limbo_of_now(me) } else { Ok(0) }
    }

    /// Keeps others from committing, until `end_serial`: for a transaction that failed often. False: another does.
    pub fn begin_serial(&self, me: Participant, around: &impl Surroundings) -> Result<bool> {
        let mine = self.claim_of(me)?;
        let serial = self.word(word::SERIAL)?;
        let found = Claim(serial.load(Acquire));
        self.await_claim(word::SERIAL, found, 0, around)?;
        Ok(serial.compare_exchange(0, mine.0, AcqRel, Relaxed).is_ok())
    }

    pub fn end_serial(&self, me: Participant) -> Result<()> {
        let mine = self.claim_of(me)?;
        let _ = self.word(word::SERIAL)?.compare_exchange(mine.0, 0, AcqRel, Relaxed);
        Ok(())
    }

    /// Step 1. Returns the status of this commit.
    fn begin_commit(&self, me: Participant, around: &impl Surroundings) -> Result<Status> {
        around.pass(1)?;
        self.of(me, field::LOCK_COUNT)?.store(0, Relaxed);
        let status = Status(self.of(me, field::STATUS)?.load(Relaxed)).next();
        // Release: who sees this status sees that no lock is logged.
        self.of(me, field::STATUS)?.store(status.0, Release);
        Ok(status)
    }

    /// Steps 2 to 6. `None`: a conflict.
    fn lock_and_validate(
        &self,
        me: Participant,
        status: Status,
        commit: &mut Commit,
        limbo: u32,
        around: &impl Surroundings,
    ) -> Result<Option<u32>> {
        around.pass(2)?;
        let log = self.log(me)?;
        for (index, &at) in (0..).zip(&commit.locks) {
            let logs_late = around.has_fault(Fault::LogAfterLock);
            // Before the lock is taken: whoever sees it taken finds it in the log.
            if !logs_late {
                self.log_lock(me, log, index, at)?;
            }
            let Some(before) = self.take_lock(me, status, at, around)? else { return Ok(None) };
            if logs_late {
                self.log_lock(me, log, index, at)?;
            }
            commit.held.push((at, before));
        }
        for &(at, value) in &commit.unchanged {
            if self.word(at)?.load(Relaxed) != value {
                return Ok(None);
            }
        }
        around.pass(3)?;
        self.log_writes(me, commit, limbo)?;
        around.pass(4)?;
        // AcqRel: a snapshot of this moment or a later one sees the locks.
        let version = self.word(word::CLOCK)?.fetch_add(2, AcqRel).wrapping_add(2);
        around.pass(5)?;
        let Commit { held, reads, snapshot, .. } = commit;
        if version != snapshot.wrapping_add(2)
            && !self.is_unchanged(reads, *snapshot, version, Some((me, held)))?
        {
            return Ok(None);
        }
        around.pass(6)?;
        self.of(me, field::VERSION)?.store(version, Relaxed);
        let (from, to) = (status.0, status.with(phase::COMMITTED).0);
        // AcqRel: who sees it committed sees log and version; fails when another has aborted it.
        let committed = self.of(me, field::STATUS)?.compare_exchange(from, to, AcqRel, Acquire);
        Ok(committed.is_ok().then_some(version))
    }

    /// Notes a lock in the log, for whoever gives it back.
    fn log_lock(&self, me: Participant, log: Log, index: u32, at: u32) -> Result<()> {
        self.word(log.lock(index))?.store(at, Relaxed);
        self.of(me, field::LOCK_COUNT)?.store(index + 1, Release);
        Ok(())
    }

    /// Takes one lock and returns its version; `None`: another has aborted this commit.
    fn take_lock(
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

    /// Step 3. All locks are held, so what is replaced changes no more, unless they were stolen meanwhile: then this
    /// may read a half of what the next owner writes.
    fn log_writes(&self, me: Participant, commit: &mut Commit, limbo: u32) -> Result<()> {
        let log = self.log(me)?;
        let mut count = 0;
        let mut add = |at: u32, value: u32| -> Result<()> {
            self.word(log.write(count))?.store(at, Relaxed);
            self.word(log.write(count) + 1)?.store(value, Relaxed);
            count += 1;
            Ok(())
        };
        for &(at, value) in &commit.writes {
            add(at, value)?;
        }
        if commit.keeps_taken {
            add(self.field_at(me, field::TAKEN_COUNT)?, 0)?;
        }
        for &at in &commit.replaced {
            commit.retired.extend(self.bytes_of(at)?);
        }
        if !commit.retired.is_empty() {
            let list = self.field_at(me, field::LIMBO + limbo)?;
            let mut first = self.word(list)?.load(Relaxed);
            for &object in &commit.retired {
                add(object - HEADER_WORDS, first)?;
                first = object;
            }
            add(list, first)?;
        }
        self.of(me, field::WRITE_COUNT)?.store(count, Relaxed);
        Ok(())
    }

    /// The object that holds the bytes of the value at `at`, if it has any.
    fn bytes_of(&self, at: u32) -> Result<Option<u32>> {
        if self.word(at)?.load(Relaxed) != value::BYTES {
            return Ok(None);
        }
        let object = self.word(at + 1)?.load(Relaxed);
        self.class_of(object)?;
        Ok(Some(object))
    }

    /// Step 7, of its owner or of another that completes it. The values are those of the log.
    pub(super) fn write_back(&self, of: Participant, count: u32) -> Result<()> {
        let log = self.log(of)?;
        // Pairs with the acquire fence of `read_once`: whoever sees one of the values sees the lock taken.
        fence(Release);
        for index in 0..count.min(log.writes) {
            let place = self.word(log.write(index))?.load(Relaxed);
            let value = self.word(log.write(index) + 1)?.load(Relaxed);
            self.word(place)?.store(value, Relaxed);
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
        self.count(me, counter::CONFLICTS)?;
        let state = self.of(me, field::STATUS)?;
        if around.has_fault(Fault::IdleAfterWait) {
            self.await_claimant(me, around)?;
            state.store(status.with(phase::IDLE).0, Release);
            return Ok(());
        }
        state.store(status.with(phase::IDLE).0, Release);
        // SeqCst pairs with the fence in `undo`. Without both, this may see no claim while the claimant sees the commit
        // aborted. It would then give back the locks of the next commit.
        fence(SeqCst);
        self.await_claimant(me, around)
    }

    /// The writes that end the use of an object: its generation changes, so that no handle fits it any more.
    pub fn free_object(&self, object: u32, commit: &mut Commit) -> Result<()> {
        let header = object - 1;
        let next = self.word(header)?.load(Relaxed).wrapping_add(1 << CLASS_BITS);
        commit.writes.push((header, next));
        commit.retired.push(object);
        Ok(())
    }
}
