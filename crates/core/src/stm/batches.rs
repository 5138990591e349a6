//! Lists of free blocks that all participants share: batches of so many blocks pass between them and the lists of one
//! participant, by a commit. So what one process takes and another frees comes back.

use super::commit::{Commit, Outcome, Surroundings};
use super::layout::{CHUNK_WORDS, CLASS_WORDS, CLASSES, HEADER_WORDS, participant as field};
use super::snapshot::Reading;
use super::space::{Participant, Space, is_newer};
use crate::error::Result;
use crate::region::Region;
use crate::sync::Ordering::Relaxed;

/// Words of the blocks that pass between a list of a participant and a shared one at once.
const BATCH_WORDS: u32 = CHUNK_WORDS;

fn batch_blocks(class: u32) -> u32 {
    BATCH_WORDS.div_ceil(CLASS_WORDS[class as usize])
}

impl<R: Region> Space<R> {
    /// Takes a batch from the shared list of a class. False: it is empty.
    pub(super) fn take_batch(
        &self,
        me: Participant,
        class: u32,
        around: &impl Surroundings,
    ) -> Result<bool> {
        let lock = self.shape().shared_list(class);
        let own = self.of(me, field::FREE + class)?.load(Relaxed);
        let count =
            if own == 0 { 0 } else { self.of(me, field::FREE_COUNT + class)?.load(Relaxed) };
        let mut commit = Commit::default();
        loop {
            commit.restart(self.now()?);
            let first = self.read_alone(me, lock, lock + 1, &mut commit, around)?;
            if first == 0 {
                return Ok(false);
            }
            let (next_batch, last) = match self.walk_batch(first, class, own != 0) {
                Ok(walked) => walked,
                // The batch has another owner since, who uses its words.
                Err(_) if self.first_changed(&commit.reads, commit.snapshot, None)?.is_some() => {
                    continue;
                }
                Err(error) => return Err(error),
            };
            commit.locks.push(lock);
            if own != 0 {
                commit.writes.push((last - HEADER_WORDS, own));
            }
            commit.writes.extend([
                (lock + 1, next_batch),
                (self.field_at(me, field::FREE + class)?, first),
                (
                    self.field_at(me, field::FREE_COUNT + class)?,
                    count.saturating_add(batch_blocks(class)),
                ),
            ]);
            if matches!(self.commit(me, &mut commit, around)?, Outcome::Committed(_)) {
                return Ok(true);
            }
        }
    }

    /// Reads one word of one object, as the first read of `commit`.
    fn read_alone(
        &self,
        me: Participant,
        lock: u32,
        at: u32,
        commit: &mut Commit,
        around: &impl Surroundings,
    ) -> Result<u32> {
        loop {
            match self.read_once(lock, at)? {
                Reading::Seen { version, .. } if is_newer(version, commit.snapshot) => {
                    self.renew(lock, version)?;
                    commit.restart(self.now()?);
                }
                Reading::Seen { value, .. } => {
                    commit.reads.push(lock);
                    return Ok(value);
                }
                Reading::Held(_) => self.await_lock(me, lock, around)?,
                Reading::Changed => {}
            }
        }
    }

    /// Passes a batch of each list that is too long to the shared one. Call it between transactions.
    pub fn share_free(&self, me: Participant, around: &impl Surroundings) -> Result<()> {
        (0..CLASSES).try_for_each(|class| self.share_class(me, class, around))
    }

    pub(super) fn share_class(
        &self,
        me: Participant,
        class: u32,
        around: &impl Surroundings,
    ) -> Result<()> {
        let blocks = self.of(me, field::FREE_COUNT + class)?;
        while blocks.load(Relaxed) >= 2 * batch_blocks(class) {
            self.share_batch(me, class, around)?;
        }
        Ok(())
    }

    /// The batch behind the one that begins with `first`, and the last block of this, if it is asked for.
    fn walk_batch(&self, first: u32, class: u32, is_whole: bool) -> Result<(u32, u32)> {
        self.class_of(first)?;
        let next_batch = self.word(first)?.load(Relaxed);
        let last = if is_whole { self.last_of_batch(first, class)? } else { first };
        self.class_of(last)?;
        Ok((next_batch, last))
    }

    /// The last of so many blocks as a batch has; 0: the list has fewer.
    fn last_of_batch(&self, first: u32, class: u32) -> Result<u32> {
        let mut last = first;
        for _ in 1..batch_blocks(class) {
            if last == 0 {
                break;
            }
            self.class_of(last)?;
            last = self.word(last - HEADER_WORDS)?.load(Relaxed);
        }
        Ok(last)
    }

    fn share_batch(&self, me: Participant, class: u32, around: &impl Surroundings) -> Result<()> {
        let own = self.of(me, field::FREE + class)?;
        let first = own.load(Relaxed);
        let last = self.last_of_batch(first, class)?;
        if last == 0 {
            // The number of blocks is a hint: it was too high.
            self.of(me, field::FREE_COUNT + class)?.store(0, Relaxed);
            return Ok(());
        }
        self.class_of(last)?;
        let rest = self.word(last - HEADER_WORDS)?.load(Relaxed);
        let lock = self.shape().shared_list(class);
        let mut commit = Commit::default();
        loop {
            commit.restart(self.now()?);
            let next_batch = self.read_alone(me, lock, lock + 1, &mut commit, around)?;
            let count = self.of(me, field::FREE_COUNT + class)?.load(Relaxed);
            commit.locks.push(lock);
            commit.writes.extend([
                (first, next_batch),
                (last - HEADER_WORDS, 0),
                (lock + 1, first),
                (self.field_at(me, field::FREE + class)?, rest),
                (
                    self.field_at(me, field::FREE_COUNT + class)?,
                    count.saturating_sub(batch_blocks(class)),
                ),
            ]);
            if matches!(self.commit(me, &mut commit, around)?, Outcome::Committed(_)) {
                return Ok(());
            }
        }
    }
}
