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
    /// Notes a conflict about an object, for its collection if it is a part of one. Each has one of 16 places, by its
    /// index, and a place keeps the object that the majority of its conflicts is about (Boyer, Moore 1981). Threads
    /// write without order: a count that is lost changes a statistic and nothing else.
    pub(super) fn note_conflict(&self, object: u32) -> Result<()> {
        if cfg!(loom) {
            return Ok(()); // states that no protocol depends on
        }
        let Some(object) = self.stand_of(object)? else { return Ok(()) };
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

    /// The object that stands for the collection of which this is a part, or the object itself. `None`: it is a list of
    /// free blocks.
    fn stand_of(&self, object: u32) -> Result<Option<u32>> {
        let first = self.shape().chunks_at() + HEADER_WORDS;
        self.lock(object)?;
        if object < first {
            return Ok(None);
        }
        let owner = self.word(object - HEADER_WORDS)?.load(Relaxed);
        let is_inside = owner >= first && owner < self.shape().size_words;
        // A block that was freed meanwhile has another block in that word.
        let is_stand = is_inside && self.word(owner - HEADER_WORDS)?.load(Relaxed) == owner;
        Ok(Some(if is_stand { owner } else { object }))
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
            let Ok(Some(_)) = self.stand_of(object) else { continue };
            if conflicts > 0 {
                let is_collection = self.word(object - HEADER_WORDS)?.load(Relaxed) == object;
                found.push(Contended { object, is_collection, conflicts });
            }
        }
        Ok(found)
    }
}
