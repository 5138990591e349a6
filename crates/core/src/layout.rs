//! Layout of a worker's segment. `src/channels/shm/layout.ts` holds the same numbers;
//! `test/channels/shm-golden.test.ts` compares the two. Offsets only, never pointers; all numbers are
//! little-endian `u32` words.
//!
//! Each word that one side writes while the other reads has a line of 128 bytes to itself (two cache
//! lines: the adjacent one is fetched along).

use crate::error::{CoreError, Result};

/// "MCSG", little-endian.
pub const MAGIC: u32 = 0x4753_434d;
/// Changes with every change of this file or of the frame format.
pub const VERSION: u32 = 2;
pub const LINE_BYTES: usize = 128;
/// The constants and the hot words; claims begin here.
pub const HEADER_BYTES: usize = 4096;
/// Bounds of a ring's size, a power of two.
pub const MIN_RING_BYTES: u32 = 1 << 10;
pub const MAX_RING_BYTES: u32 = 1 << 26;
pub const MAX_SLOTS: u32 = 1 << 20;

/// Byte offsets of the constants of line 0: written once, by the parent, before any other process maps
/// the segment.
pub mod constant {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 4;
    pub const TOTAL_BYTES: usize = 8;
    pub const RING_BYTES: usize = 12;
    pub const SLOT_COUNT: usize = 16;
    pub const OWNER: usize = 20;
    pub const REQUEST_AT: usize = 24;
    pub const REPLY_AT: usize = 28;
    pub const PARENT_OWNER: usize = 32;
}

/// Byte offsets of the hot words. Each has one writer unless its comment names both.
pub mod word {
    use super::LINE_BYTES;
    /// Written by the parent: position of the next request.
    pub const REQUEST_TAIL: usize = LINE_BYTES;
    /// Written by the worker: position up to which it has read requests.
    pub const REQUEST_HEAD: usize = 2 * LINE_BYTES;
    pub const REPLY_TAIL: usize = 3 * LINE_BYTES;
    pub const REPLY_HEAD: usize = 4 * LINE_BYTES;
    /// `wake::sleep`: 1 while the parent may sleep. Written by both.
    pub const PARENT_ASLEEP: usize = 5 * LINE_BYTES;
    pub const WORKER_ASLEEP: usize = 6 * LINE_BYTES;
    /// Core + 1 that the parent ran on last, 0 = unknown.
    pub const PARENT_CPU: usize = 7 * LINE_BYTES;
    /// Number of awake threads of this pool, according to the parent (beside `PARENT_CPU`).
    pub const AWAKE_COUNT: usize = 7 * LINE_BYTES + 4;
    pub const WORKER_CPU: usize = 8 * LINE_BYTES;
    /// A `state` of this side.
    pub const PARENT_STATE: usize = 9 * LINE_BYTES;
    pub const WORKER_STATE: usize = 10 * LINE_BYTES;
    /// `room`: the request writer found the ring full. Written by both.
    pub const REQUEST_ROOM: usize = 11 * LINE_BYTES;
    pub const REPLY_ROOM: usize = 12 * LINE_BYTES;
}

/// Values of `PARENT_STATE` and `WORKER_STATE`.
pub mod state {
    /// Not attached yet.
    pub const ABSENT: u32 = 0;
    pub const OPEN: u32 = 1;
    /// Sends no more, still reads.
    pub const CLOSED: u32 = 2;
    /// Neither sends nor reads.
    pub const GONE: u32 = 3;
}

/// Values of `REQUEST_ROOM` and `REPLY_ROOM`.
pub mod room {
    pub const PLENTY: u32 = 0;
    /// The writer waits; set by the writer.
    pub const WANTED: u32 = 1;
    /// At least half of the ring is free again; set by the reader.
    pub const MADE: u32 = 2;
}

const _: () = assert!(word::REPLY_ROOM + LINE_BYTES <= HEADER_BYTES);
const _: () = assert!(constant::PARENT_OWNER + 4 <= LINE_BYTES);

/// The sizes of one segment, as stored in line 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub ring_bytes: u32,
    pub slot_count: u32,
    /// Owner numbers of the two sides in the arena.
    pub owner: u32,
    pub parent_owner: u32,
}

impl Shape {
    /// Fails when a number is out of range.
    pub fn check(self) -> Result<Self> {
        let ring = self.ring_bytes;
        if !ring.is_power_of_two() || !(MIN_RING_BYTES..=MAX_RING_BYTES).contains(&ring) {
            return Err(CoreError::Corrupt { what: "the ring size", value: ring.into() });
        }
        if self.slot_count > MAX_SLOTS {
            return Err(CoreError::Corrupt {
                what: "the slot count",
                value: self.slot_count.into(),
            });
        }
        Ok(self)
    }

    /// Offset of the request ring: behind the claims, on a line of its own.
    pub fn request_at(self) -> usize {
        (HEADER_BYTES + self.slot_count as usize * 4).next_multiple_of(LINE_BYTES)
    }

    pub fn reply_at(self) -> usize {
        self.request_at() + self.ring_bytes as usize
    }

    pub fn total_bytes(self) -> usize {
        (self.reply_at() + self.ring_bytes as usize).next_multiple_of(4096)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_with_a_crooked_ring_is_refused() {
        for ring_bytes in [0, 1000, 512, MAX_RING_BYTES * 2] {
            let shape = Shape { ring_bytes, slot_count: 1, owner: 1, parent_owner: 0 };
            assert_eq!(shape.check().unwrap_err().code(), "SEGMENT_CORRUPT");
        }
    }

    #[test]
    fn rings_begin_on_a_line_and_do_not_overlap() {
        let shape = Shape { ring_bytes: 4096, slot_count: 3, owner: 1, parent_owner: 0 };
        assert_eq!(shape.request_at(), HEADER_BYTES + LINE_BYTES);
        assert_eq!(shape.reply_at(), shape.request_at() + 4096);
        assert!(shape.total_bytes() >= shape.reply_at() + 4096);
    }
}
