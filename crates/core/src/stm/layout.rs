//! Places in a space, as indices of 32-bit words. Index 0 is no object. All words that one participant writes
//! while others read have lines of 128 bytes to themselves.

/// "MCTM", little-endian.
pub const MAGIC: u32 = 0x4d54_434d;
/// Changes with every change of this file.
pub const VERSION: u32 = 1;
pub const LINE_WORDS: u32 = 32;

/// Written once, before any other process maps the space.
pub mod constant {
    pub const MAGIC: u32 = 0;
    pub const VERSION: u32 = 1;
    pub const SIZE_WORDS: u32 = 2;
    pub const PARTICIPANTS: u32 = 3;
    pub const WRITES: u32 = 4;
}

/// Words that all participants write.
pub mod word {
    use super::LINE_WORDS;
    /// The version of the last commit: an even number, which wraps.
    pub const CLOCK: u32 = LINE_WORDS;
}

pub const PARTICIPANTS_AT: u32 = 2 * LINE_WORDS;
/// Words of one participant.
pub const PARTICIPANT_WORDS: u32 = 2 * LINE_WORDS;

/// Words of one participant, from its start on.
pub mod participant {
    use super::LINE_WORDS;
    /// 0: free; otherwise taken.
    pub const STATE: u32 = 0;
    pub const PID: u32 = 1;
    /// `sequence << 2 | phase`.
    pub const STATUS: u32 = 4;
    /// The version that its commit gives, once it is committed.
    pub const VERSION: u32 = 5;
    pub const LOCK_COUNT: u32 = 6;
    pub const WRITE_COUNT: u32 = 7;
    /// Number + 1 of the participant that undoes or completes its commit; 0: none. Others write it.
    pub const CLAIMANT: u32 = LINE_WORDS;
}

/// The low bits of `STATUS`.
pub mod phase {
    pub const IDLE: u32 = 0;
    /// It takes locks and validates; others may still abort it.
    pub const LOCKING: u32 = 1;
    /// The writes count; others may complete them.
    pub const COMMITTED: u32 = 2;
    pub const ABORTED: u32 = 3;
    pub const MASK: u32 = 3;
    pub const SEQUENCE: u32 = 4;
}

/// The sizes of one space, as stored in line 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub size_words: u32,
    pub participants: u32,
    /// Words that one transaction may write.
    pub writes: u32,
}

impl Shape {
    /// A log: the locks that it takes, then pairs of a word's index and its new value.
    pub fn log_words(self) -> u32 {
        (3 * self.writes).next_multiple_of(LINE_WORDS)
    }

    pub fn log_at(self, participant: u32) -> u32 {
        PARTICIPANTS_AT + self.participants * PARTICIPANT_WORDS + participant * self.log_words()
    }

    /// The first word of objects.
    pub fn heap_at(self) -> u32 {
        self.log_at(self.participants)
    }
}
