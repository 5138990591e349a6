//! Keeps the free offsets of an owner's range in the arena: numbers only, no memory.
//!
//! Sizes are powers of two, and a block lies at a multiple of its size. That wastes offsets, which are
//! plentiful, but no memory: only pages that a payload needs are ever touched. A freed block keeps its
//! pages for the next payload of its size, because fresh pages cost ten times the copy. Beyond a limit
//! for all free blocks together the pages go back to the kernel.

use crate::error::{CoreError, Result};
use std::collections::HashMap;

/// The smallest block.
pub const MIN_BLOCK_BYTES: u64 = 1 << 16;
/// The largest block.
pub const MAX_BLOCK_BYTES: u64 = 1 << 33;
pub const PAGE_BYTES: u64 = 4096;

/// Size of the block for a payload.
pub fn block_bytes(size_bytes: u64) -> Result<u64> {
    if size_bytes > MAX_BLOCK_BYTES {
        return Err(CoreError::Full { size_bytes });
    }
    Ok(size_bytes.next_power_of_two().max(MIN_BLOCK_BYTES))
}

/// A block, with the number of its first bytes that have pages behind them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    pub offset: u64,
    pub populated_bytes: u64,
}

#[derive(Debug)]
struct Used {
    block_bytes: u64,
    populated_bytes: u64,
}

#[derive(Debug)]
pub struct Slab {
    range_bytes: u64,
    /// All offsets below were handed out at least once.
    fresh_at: u64,
    free: HashMap<u64, Vec<Slot>>,
    used: HashMap<u64, Used>,
    cached_bytes: u64,
    cache_limit_bytes: u64,
}

impl Slab {
    pub fn new(range_bytes: u64, cache_limit_bytes: u64) -> Slab {
        Slab {
            range_bytes,
            fresh_at: 0,
            free: HashMap::new(),
            used: HashMap::new(),
            cached_bytes: 0,
            cache_limit_bytes,
        }
    }

    /// Takes a block for `size_bytes`, the one freed last first: its pages are warm.
    pub fn take(&mut self, size_bytes: u64) -> Result<Slot> {
        let block_bytes = block_bytes(size_bytes)?;
        let slot = match self.free.get_mut(&block_bytes).and_then(Vec::pop) {
            Some(slot) => slot,
            None => self.take_fresh(block_bytes)?,
        };
        self.cached_bytes -= slot.populated_bytes;
        let populated_bytes = slot.populated_bytes;
        self.used.insert(slot.offset, Used { block_bytes, populated_bytes });
        Ok(slot)
    }

    fn take_fresh(&mut self, block_bytes: u64) -> Result<Slot> {
        let offset = self.fresh_at.next_multiple_of(block_bytes);
        if offset + block_bytes > self.range_bytes {
            return Err(CoreError::Full { size_bytes: block_bytes });
        }
        // The part that the alignment skips is cut into smaller blocks.
        while self.fresh_at < offset {
            let piece = 1 << self.fresh_at.trailing_zeros();
            let slot = Slot { offset: self.fresh_at, populated_bytes: 0 };
            self.free.entry(piece).or_default().push(slot);
            self.fresh_at += piece;
        }
        self.fresh_at = offset + block_bytes;
        Ok(Slot { offset, populated_bytes: 0 })
    }

    /// Records that the first bytes of a used block have pages now.
    pub fn note_populated(&mut self, offset: u64, populated_bytes: u64) {
        if let Some(used) = self.used.get_mut(&offset) {
            used.populated_bytes = populated_bytes;
        }
    }

    /// Frees a block. Returns how many bytes from its offset on must go back to the kernel now (0:
    /// none). An offset that is not in use is an error and changes nothing.
    pub fn free(&mut self, offset: u64) -> Result<u64> {
        let Some(used) = self.used.remove(&offset) else {
            return Err(CoreError::Corrupt { what: "the offset of a freed block", value: offset });
        };
        let keeps = self.cached_bytes + used.populated_bytes <= self.cache_limit_bytes;
        let populated_bytes = if keeps { used.populated_bytes } else { 0 };
        self.cached_bytes += populated_bytes;
        let slot = Slot { offset, populated_bytes };
        self.free.entry(used.block_bytes).or_default().push(slot);
        Ok(if keeps { 0 } else { used.populated_bytes })
    }

    pub fn used_count(&self) -> usize {
        self.used.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn blocks_in_use_never_overlap_and_lie_at_multiples_of_their_size() {
        let mut slab = Slab::new(1 << 30, 0);
        let mut seed = 12345u64;
        let mut taken: Vec<(u64, u64)> = Vec::new();
        for _ in 0..2000 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let size = (seed >> 33) % (3 * MIB);
            if (seed >> 20).is_multiple_of(3) && !taken.is_empty() {
                let (offset, _) = taken.swap_remove((seed >> 40) as usize % taken.len());
                slab.free(offset).expect("in use");
                continue;
            }
            let Ok(slot) = slab.take(size) else { continue };
            let bytes = block_bytes(size).expect("small");
            assert!(slot.offset.is_multiple_of(bytes));
            for &(offset, other) in &taken {
                assert!(slot.offset + bytes <= offset || offset + other <= slot.offset);
            }
            taken.push((slot.offset, bytes));
        }
        assert!(taken.len() > 100);
    }

    #[test]
    fn the_block_freed_last_comes_back_with_its_pages() {
        let mut slab = Slab::new(1 << 30, MIB);
        let slot = slab.take(100_000).expect("room");
        slab.note_populated(slot.offset, 102_400);
        assert_eq!(slab.free(slot.offset), Ok(0));
        let again = slab.take(70_000).expect("room");
        assert_eq!(again, Slot { offset: slot.offset, populated_bytes: 102_400 });
    }

    #[test]
    fn pages_beyond_the_limit_go_back() {
        let mut slab = Slab::new(1 << 30, MIB);
        let slots: Vec<Slot> = (0..2).map(|_| slab.take(MIB).expect("room")).collect();
        for slot in &slots {
            slab.note_populated(slot.offset, MIB);
        }
        assert_eq!(slab.free(slots[0].offset), Ok(0));
        assert_eq!(slab.free(slots[1].offset), Ok(MIB));
        assert_eq!(slab.take(MIB).expect("room").populated_bytes, 0);
    }

    #[test]
    fn a_block_is_freed_once_and_a_full_range_says_so() {
        let mut slab = Slab::new(4 * MIB, 0);
        let slot = slab.take(4 * MIB).expect("room");
        assert_eq!(slab.take(1).expect_err("full").code(), "SHARED_MEMORY_FULL");
        assert_eq!(slab.free(slot.offset), Ok(0));
        assert_eq!(slab.free(slot.offset).expect_err("twice").code(), "SEGMENT_CORRUPT");
        assert_eq!(slab.take(MAX_BLOCK_BYTES + 1).expect_err("large").code(), "SHARED_MEMORY_FULL");
    }
}
