//! The objects that transactions fight over, for statistics: where conflicts were found of late.

use super::layout::{CONTENDED_PLACES, HEADER_WORDS, word};
use super::space::Space;
use crate::error::Result;
use crate::region::Region;
use crate::sync::Ordering::Relaxed;

/// Conflicts of one object after which all counts are halved, so that old ones are forgotten.
pub(super) const MAX_CONFLICTS: u32 = 1024;

/// An object that conflicts were about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contended {
    pub object: u32,
    /// The object that stands for the collection that it is a part of, or itself; 0: it is no part of one.
    pub owner: u32,
    /// Of late, less those about others that have the same place.
    pub conflicts: u32,
}

impl<R: Region> Space<R> {
    /// Notes a conflict about an object. Each has one of 16 places, by its index, and a place keeps the object that the
    /// majority of its conflicts is about (Boyer, Moore 1981). Threads write without order: a count that is lost changes
    /// a statistic and nothing else.
    pub(super) fn note_conflict(&self, object: u32) -> Result<()> {
        if cfg!(loom) {
            return Ok(()); // states that no protocol depends on
        }
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
            if conflicts == 0 || object < self.shape().chunks_at() + HEADER_WORDS {
                continue;
            }
            let owner = self.word(object - HEADER_WORDS)?.load(Relaxed);
            found.push(Contended { object, owner, conflicts });
        }
        Ok(found)
    }
}
