//! The desk of a thread: memory on which JavaScript notes what a transaction reads and writes, for the next call.

use std::cell::Cell;

/// Objects that one transaction may read and write.
pub(crate) const MAX_READS: usize = 1 << 22;
pub(crate) const MAX_WRITES: usize = 16_384;

/// Words of the desk: the snapshot, the number of reads and of writes; then the locks that were read; then the
/// writes: lock, header, kind, lo, hi, and what is done with the object.
pub(crate) const DESK_READS: usize = 8;
pub(crate) const DESK_WRITES: usize = DESK_READS + MAX_READS;
pub(crate) const WRITE_WORDS: usize = 6;
pub(crate) const DESK_WORDS: usize = DESK_WRITES + MAX_WRITES * WRITE_WORDS;
/// The last word of a write: the object ends; a block that is no object is given back. Others set a value.
pub(crate) const FREES: u32 = 1;
pub(crate) const RETIRES: u32 = 2;

/// Memory that JavaScript writes while no call of Rust runs.
pub(crate) struct Desk(pub(crate) Box<[Cell<u32>]>);

impl Desk {
    pub(crate) fn new() -> Desk {
        // Zeroed by the system: most of it is never touched.
        let words = Box::into_raw(vec![0u32; DESK_WORDS].into_boxed_slice());
        // SAFETY: from `into_raw`; a cell has the layout of what is in it.
        Desk(unsafe { Box::from_raw(words as *mut [Cell<u32>]) })
    }
}

// SAFETY: only the thread that made it uses the words; the buffer over them may be dropped on any thread.
unsafe impl Send for Desk {}
// SAFETY: as above.
unsafe impl Sync for Desk {}
