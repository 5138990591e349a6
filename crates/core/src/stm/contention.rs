//! The objects that transactions fight over, for statistics: where conflicts were found of late.

use super::layout::{CONTENDED_PLACES, HEADER_WORDS, word};
use super::space::Space;
use crate::error::Result;
use crate::region::Region;
use crate::sync::Ordering::Relaxed;

/// Conflicts of one object after which all counts are halved, so that old ones are forgotten.
pub(super) const MAX_CONFLICTS: u32 = 1024;

/// An object that conflicts were about, or of which a part was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contended {
    /// A variable alone, or one that stands for a collection.
    pub object: u32,
    pub is_collection: bool,
    /// Recent ones, less those about others that have the same place.
    pub conflicts: u32,
}

impl<R: Region> Space<R> {
    /// Notes a conflict about an object of a transaction that runs, for its collection if it is a part of one. Each has
    /// one of 16 places, by its index, and a place keeps the object that the majority of its conflicts is about (Boyer, Moore 1981). Threads write without order: a count that is lost changes
    /// a statistic and nothing else.
    pub(super) fn note_conflict(&self, object: u32) -> Result<()> {
        if cfg!(loom) {
            return Ok(()); // states that no protocol depends on
        }
        let owner = self.owner_of(object)?;
        let object = if owner == 0 { object } else { owner };
        let place = object.wrapping_mul(0x9e37_79b1) >> (32 - CONTENDED_PLACES.ilog2());
        let at = word::CONTENDED + 2 * place;
        let (kept, count) = (self.word(at)?, self.word(at + 1)?);
        match (kept.load(Relaxed) == object, count.load(Relaxed)) {
            (true, seen) if seen >= MAX_CONFLICTS => self.age_conflicts()?,
            (true, seen) => count.store(seen + 1, Relaxed),
            (false, 0) => {
                kept.store(object, Relaxed);
                count.store(1, Relaxed);
            }
            (false, seen) => count.store(seen.min(MAX_CONFLICTS) - 1, Relaxed),
        }
        Ok(())
    }

    /// The object that stands for the collection of which this is a part, or itself; 0: it is no part of one.
    fn owner_of(&self, object: u32) -> Result<u32> {
        self.lock(object)?;
        let first = self.shape().chunks_at() + HEADER_WORDS;
        if object < first {
            return Ok(0); // a list of free blocks
        }
        let owner = self.word(object - HEADER_WORDS)?.load(Relaxed);
        Ok(if owner < first || owner >= self.shape().size_words { 0 } else { owner })
    }

    fn age_conflicts(&self) -> Result<()> {
        for place in 0..CONTENDED_PLACES {
            let count = self.word(word::CONTENDED + 2 * place + 1)?;
            count.store(count.load(Relaxed).min(MAX_CONFLICTS) / 2, Relaxed);
        }
        Ok(())
    }

    /// The objects that conflicts were about of late, without order.
    pub fn contended(&self) -> Result<Vec<Contended>> {
        let mut found = Vec::new();
        for place in 0..CONTENDED_PLACES {
            let at = word::CONTENDED + 2 * place;
            let object = self.word(at)?.load(Relaxed);
            let conflicts = self.word(at + 1)?.load(Relaxed);
            // A place with a forged index is left out.
            let Some(owner) = self.owner_of(object).ok().filter(|_| conflicts > 0) else {
                continue;
            };
            found.push(Contended { object, is_collection: owner == object, conflicts });
        }
        Ok(found)
    }
}
