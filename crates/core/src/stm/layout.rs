//! Places in a space, as indices of 32-bit words. Index 0 is no object. All words that one participant writes
//! while others read have lines of 128 bytes to themselves.

/// "MCTM", little-endian.
pub const MAGIC: u32 = 0x4d54_434d;
/// Changes with every change of this file.
pub const VERSION: u32 = 6;
pub const LINE_WORDS: u32 = 32;

/// Written by all who open the space, each with the same values; but for `ID`, which the first one chooses.
pub mod constant {
    pub const MAGIC: u32 = 0;
    pub const VERSION: u32 = 1;
    pub const SIZE_WORDS: u32 = 2;
    pub const PARTICIPANTS: u32 = 3;
    /// A random number: objects of another space are refused by it.
    pub const ID: u32 = 4;
}

/// Words that all participants write.
pub mod word {
    use super::LINE_WORDS;
    /// The version of the last commit: an even number, which wraps.
    pub const CLOCK: u32 = LINE_WORDS;
    /// The epoch of the memory: an odd number, which wraps.
    pub const EPOCH: u32 = 2 * LINE_WORDS;
    /// The first word that no chunk has.
    pub const HEAP_TOP: u32 = 3 * LINE_WORDS;
    /// Claim of the participant that alone may commit; 0: none.
    pub const SERIAL: u32 = 4 * LINE_WORDS;
    /// Participants have numbers below this.
    pub const NUMBERS: u32 = 5 * LINE_WORDS;
    /// The object that leads to everything with a name; 0: none has one.
    pub const ROOT: u32 = 6 * LINE_WORDS;
    /// Counts the ends of threads that somebody has noticed, for those that sleep (`registry`).
    pub const ENDS: u32 = ROOT + 1;
    /// Claim of the participant that merges free blocks; 0: none.
    pub const MERGER: u32 = ROOT + 2;
    /// Pairs of an object and a count (`contention`).
    pub const CONTENDED: u32 = 7 * LINE_WORDS;
}

/// A power of two.
pub const CONTENDED_PLACES: u32 = LINE_WORDS / 2;

pub const PARTICIPANTS_AT: u32 = 8 * LINE_WORDS;
/// Words of one participant.
pub const PARTICIPANT_WORDS: u32 = 6 * LINE_WORDS;

/// Words of one participant, from its start on.
pub mod participant {
    use super::LINE_WORDS;
    /// The thread (`space::Life`); 0: free.
    pub const STATE: u32 = 0;
    /// Counts the threads that have had this number.
    pub const LIFE: u32 = 1;
    /// `sequence << 2 | phase`.
    pub const STATUS: u32 = 2;
    /// The version that its commit gives, once it is committed.
    pub const VERSION: u32 = 3;
    pub const LOCK_COUNT: u32 = 4;
    pub const WRITE_COUNT: u32 = 5;
    /// The place of its large log; 0: it has the small one.
    pub const LOG_AT: u32 = 6;
    /// Claim of the participant that undoes or completes its commit; 0: none. Others write it.
    pub const CLAIMANT: u32 = LINE_WORDS;
    /// 1: something that it watches may have changed. Others write it.
    pub const WAKE: u32 = LINE_WORDS + 1;
    /// Counts rings for the waiter of a process that has this participant. Others write it.
    pub const BELL: u32 = LINE_WORDS + 2;
    /// The number of the participant whose `BELL` wakes this one.
    pub const BELL_OF: u32 = LINE_WORDS + 3;
    /// The epoch in which its transaction began; 0: in none.
    pub const EPOCH: u32 = 2 * LINE_WORDS;
    /// First of the lists of free blocks, by class.
    pub const FREE: u32 = 3 * LINE_WORDS;
    /// Blocks in each of them.
    pub const FREE_COUNT: u32 = 4 * LINE_WORDS;
    /// Blocks of a transaction that has not committed, in the log.
    pub const TAKEN_COUNT: u32 = 5 * LINE_WORDS;
    /// Lists of blocks that readers may still see, and the epoch of each.
    pub const LIMBO: u32 = TAKEN_COUNT + 1;
    pub const LIMBO_EPOCH: u32 = LIMBO + super::LIMBOS;
    /// Counters for statistics.
    pub const COUNTERS: u32 = LIMBO_EPOCH + super::LIMBOS;
}

/// Lists of blocks that wait for readers: of this epoch, of the one before, and one that is free again.
pub const LIMBOS: u32 = 3;

/// The counters of a participant, in their order.
pub mod counter {
    /// Commits that wrote.
    pub const COMMITS: u32 = 0;
    /// Attempts that ran in vain, because others had committed.
    pub const CONFLICTS: u32 = 1;
    /// Undecided commits of others that it aborted.
    pub const THEFTS: u32 = 2;
    /// Commits of ended participants that it undid or completed.
    pub const RECOVERIES: u32 = 3;
    /// Transactions that slept until something changed.
    pub const SLEEPS: u32 = 4;
    pub const COUNT: u32 = 5;
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

/// Sizes of blocks in words, header included.
pub const CLASS_WORDS: [u32; 24] = [
    8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144,
    8192, 10_240, 12_288, 14_336, 16_448,
];
pub const CLASSES: u32 = CLASS_WORDS.len() as u32;
/// Words that participants take from the heap at once; the largest blocks one by one.
pub const CHUNK_WORDS: u32 = 16_384;
/// Words before an object: the next block of its list, and `class | generation << 8`. While an object is in use the
/// first one is its owner: the object that stands for the collection that it is a part of.
pub const HEADER_WORDS: u32 = 2;
pub const CLASS_BITS: u32 = 8;

/// The sizes of one space, the same for all who open it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub size_words: u32,
    pub participants: u32,
    /// Words that one transaction may write with a small log, and with a large one.
    pub small_writes: u32,
    pub large_writes: u32,
    /// A power of two.
    pub watch_words: u32,
}

/// Places of a log, relative to its start: the locks that it takes, the blocks that it took, then pairs of a
/// word's index and its new value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Log {
    pub at: u32,
    pub writes: u32,
}

impl Log {
    pub const fn words(writes: u32) -> u32 {
        (4 * writes).next_multiple_of(LINE_WORDS)
    }

    pub fn lock(self, index: u32) -> u32 {
        self.at.saturating_add(index)
    }

    pub fn taken(self, index: u32) -> u32 {
        self.at.saturating_add(self.writes + index)
    }

    pub fn write(self, index: u32) -> u32 {
        self.at.saturating_add(2 * self.writes + 2 * index)
    }
}

impl Shape {
    pub fn watch_at(self) -> u32 {
        PARTICIPANTS_AT + self.participants * PARTICIPANT_WORDS
    }

    fn logs_at(self) -> u32 {
        (self.watch_at() + self.watch_words).next_multiple_of(LINE_WORDS)
    }

    pub fn small_log(self, participant: u32) -> Log {
        let at = self.logs_at() + participant * Log::words(self.small_writes);
        Log { at, writes: self.small_writes }
    }

    /// The first word of objects: the lists of free blocks that all share, then chunks.
    pub fn heap_at(self) -> u32 {
        self.small_log(self.participants).at
    }

    /// The lock of the shared list of a class; the word behind it is the first of the list.
    pub fn shared_list(self, class: u32) -> u32 {
        self.heap_at() + 2 * class
    }

    /// The first chunk.
    pub fn chunks_at(self) -> u32 {
        self.shared_list(CLASSES).next_multiple_of(LINE_WORDS)
    }
}
