//! Checked access to the words of a space. Every index that comes from shared memory may be forged: it is
//! compared with the size, and gives an error, never a panic.

use super::layout::{self, Shape, constant, phase};
use crate::error::{CoreError, Result};
use crate::region::Region;
use crate::sync::{AtomicU32, Ordering::Relaxed};

/// A thread that makes transactions, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Participant(pub u32);

impl Participant {
    /// The value of a lock word that it holds: odd, where versions are even.
    pub fn lock(self) -> u32 {
        self.0 << 1 | 1
    }

    /// The holder of a lock word; `None`: it is a version.
    pub fn of_lock(value: u32) -> Option<Participant> {
        (value & 1 == 1).then_some(Participant(value >> 1))
    }

    /// The value for a claimant's word.
    pub fn claim(self) -> u32 {
        self.0 + 1
    }
}

/// The state of a participant's commit: which one, and how far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status(pub u32);

impl Status {
    pub fn phase(self) -> u32 {
        self.0 & phase::MASK
    }

    pub fn with(self, phase: u32) -> Status {
        Status(self.0 & !phase::MASK | phase)
    }

    /// The status of the next commit, which takes locks.
    pub fn next(self) -> Status {
        Status(self.0.wrapping_add(phase::SEQUENCE)).with(phase::LOCKING)
    }
}

/// True: version `left` is newer than `right`; the clock wraps.
pub fn is_newer(left: u32, right: u32) -> bool {
    left.wrapping_sub(right) as i32 > 0
}

#[derive(Debug)]
pub struct Space<R> {
    region: R,
    shape: Shape,
}

impl<R: Region> Space<R> {
    /// Writes the constants of a region whose words are 0.
    pub fn create(region: R, shape: Shape) -> Result<Space<R>> {
        let space = Space { region, shape };
        let constants = [
            (constant::VERSION, layout::VERSION),
            (constant::SIZE_WORDS, shape.size_words),
            (constant::PARTICIPANTS, shape.participants),
            (constant::WRITES, shape.writes),
            (constant::MAGIC, layout::MAGIC),
        ];
        for (at, value) in constants {
            // Relaxed: no other process has the descriptor yet; handing it over orders these stores.
            space.word(at)?.store(value, Relaxed);
        }
        Ok(space)
    }

    pub fn shape(&self) -> Shape {
        self.shape
    }

    pub fn word(&self, at: u32) -> Result<&AtomicU32> {
        if at >= self.shape.size_words {
            return Err(CoreError::Corrupt { what: "the index of a word", value: at.into() });
        }
        Ok(self.region.word(at as usize * 4))
    }

    /// The lock word of an object, which lies behind the logs.
    pub fn lock(&self, at: u32) -> Result<&AtomicU32> {
        if at < self.shape.heap_at() {
            return Err(CoreError::Corrupt { what: "the index of an object", value: at.into() });
        }
        self.word(at)
    }

    /// A word of a participant; `field`: of `layout::participant`.
    pub fn of(&self, Participant(number): Participant, field: u32) -> Result<&AtomicU32> {
        if number >= self.shape.participants {
            return Err(CoreError::Corrupt { what: "a participant", value: number.into() });
        }
        self.word(layout::PARTICIPANTS_AT + number * layout::PARTICIPANT_WORDS + field)
    }

    /// The place in a participant's log of its `index`-th lock.
    pub fn logged_lock(&self, of: Participant, index: u32) -> Result<&AtomicU32> {
        self.log_word(of, index)
    }

    /// The places of the index and the value of a participant's `index`-th write.
    pub fn logged_write(&self, of: Participant, index: u32) -> Result<(&AtomicU32, &AtomicU32)> {
        let first = self.shape.writes + 2 * index;
        Ok((self.log_word(of, first)?, self.log_word(of, first + 1)?))
    }

    fn log_word(&self, Participant(number): Participant, at: u32) -> Result<&AtomicU32> {
        if number >= self.shape.participants || at >= self.shape.log_words() {
            return Err(CoreError::Corrupt { what: "the length of a log", value: at.into() });
        }
        self.word(self.shape.log_at(number) + at)
    }
}
