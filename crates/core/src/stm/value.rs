//! One value in three words: what it is, and 64 bits. Larger ones are bytes in an object of their own, which
//! never change: `lo` is that object and `hi` the number of bytes. `src/stm/` writes and reads them.

/// The kind of a value whose bytes are in an object.
pub const BYTES: u32 = 1;
