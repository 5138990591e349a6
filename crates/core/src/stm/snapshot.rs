//! Reads of one moment. A transaction notes the lock of each object that it reads; its snapshot is the clock at
//! a moment at which all of them had the values that were read. A newer object extends the snapshot, when no
//! noted object has changed since (Felber, Fetzer, Marlier, Riegel 2010: time-based STM).

use super::layout::word;
use super::space::{Participant, Space, is_newer, is_old};
use crate::error::Result;
use crate::region::Region;
use crate::sync::{
    Ordering::{AcqRel, Acquire, Relaxed},
    fence,
};

/// The result of reading an object once.
#[derive(Debug, PartialEq, Eq)]
pub enum Reading {
    /// The value, and the version of its object.
    Seen { value: u32, version: u32 },
    /// The lock word, which a participant holds.
    Held(u32),
    /// It changed meanwhile.
    Changed,
}

impl<R: Region> Space<R> {
    /// The present moment, for a new snapshot.
    pub fn now(&self) -> Result<u32> {
        // Acquire: pairs with the fetch_add of a commit; its locks are taken before.
        Ok(self.word(word::CLOCK)?.load(Acquire))
    }

    /// Reads `at` of the object with this lock, once.
    pub fn read_once(&self, lock: u32, at: u32) -> Result<Reading> {
        let lock = self.lock(lock)?;
        // Acquire: the value is that of this version or a newer one.
        let before = lock.load(Acquire);
        if Participant::of_lock(before).is_some() {
            return Ok(Reading::Held(before));
        }
        let value = self.word(at)?.load(Relaxed);
        // Pairs with the release fence of `write_back`: a value that was written there comes with its lock.
        fence(Acquire);
        if lock.load(Relaxed) != before {
            return Ok(Reading::Changed);
        }
        Ok(Reading::Seen { value, version: before })
    }

    /// True: no object of `reads` has changed between `snapshot` and `now`; one that has is noted. A snapshot so old
    /// that versions cannot be compared with it counts as changed. `own`: the participant whose locks are no change,
    /// with the version that each had.
    pub fn is_unchanged(
        &self,
        reads: &[u32],
        snapshot: u32,
        now: u32,
        own: Option<(Participant, &[(u32, u32)])>,
    ) -> Result<bool> {
        if is_old(snapshot, now) {
            return Ok(false);
        }
        let changed = self.first_changed(reads, snapshot, own)?;
        if let Some(at) = changed {
            self.note_conflict(at)?;
        }
        Ok(changed.is_none())
    }

    /// The first object of `reads` that has changed.
    pub(super) fn first_changed(
        &self,
        reads: &[u32],
        snapshot: u32,
        own: Option<(Participant, &[(u32, u32)])>,
    ) -> Result<Option<u32>> {
        for &at in reads {
            let found = self.lock(at)?.load(Acquire);
            let version = match Participant::of_lock(found) {
                None => found,
                Some(holder) => {
                    let Some((_, held)) = own.filter(|(me, _)| *me == holder) else {
                        return Ok(Some(at));
                    };
                    match held.binary_search_by_key(&at, |&(lock, _)| lock) {
                        Ok(place) => held[place].1,
                        Err(_) => return Ok(Some(at)),
                    }
                }
            };
            if is_newer(version, snapshot) {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// A later snapshot in which all of `reads` still hold; `None`: one has changed, or the snapshot is so old that
    /// versions cannot be compared with it.
    pub fn extend(&self, reads: &[u32], snapshot: u32) -> Result<Option<u32>> {
        let now = self.now()?;
        Ok(self.is_unchanged(reads, snapshot, now, None)?.then_some(now))
    }

    /// Sets an ancient version to the present one: the clock has wrapped since, and it would be a future one
    /// for ever. Readers take that for a change, which costs time and nothing else.
    pub fn renew(&self, lock: u32, version: u32) -> Result<()> {
        let now = self.now()?;
        if is_newer(version, now) {
            let _ = self.lock(lock)?.compare_exchange(version, now, AcqRel, Relaxed);
        }
        Ok(())
    }
}
