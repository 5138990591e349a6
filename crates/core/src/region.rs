//! Bytes that another process may write at any moment, and the only casts to them.
//!
//! A `Region` gives words (atomics) and raw copies, nothing else: no reference to plain bytes exists,
//! so a foreign write can give wrong values but never undefined behaviour that the protocol rests
//! on. The ring runs over any region: `Mapping` in production, `HeapRegion` in tests and models.

use crate::error::Result;
use crate::sync::AtomicU32;

/// # Safety
/// `word` must return the same atomic for the same offset, and the copies must stay in the region.
/// The caller of a copy keeps the other side out of those bytes by the protocol of the ring.
pub unsafe trait Region {
    fn size_bytes(&self) -> usize;
    /// The word at byte `offset`, a multiple of 4 inside the region; panics otherwise.
    fn word(&self, offset: usize) -> &AtomicU32;
    /// Copies `bytes` to `[offset, offset + bytes.len())`; panics when that is not inside.
    fn copy_in(&self, offset: usize, bytes: &[u8]);
    /// Copies from `[offset, offset + bytes.len())`; panics when that is not inside.
    fn copy_out(&self, offset: usize, bytes: &mut [u8]);
    /// Puts memory behind these bytes, so that a write there cannot fail any more.
    fn populate(&self, _offset: usize, _size_bytes: usize) -> Result<()> {
        Ok(())
    }
}

// SAFETY: forwards to the region behind the reference.
unsafe impl<R: Region> Region for &R {
    fn size_bytes(&self) -> usize {
        (**self).size_bytes()
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        (**self).word(offset)
    }

    fn copy_in(&self, offset: usize, bytes: &[u8]) {
        (**self).copy_in(offset, bytes);
    }

    fn copy_out(&self, offset: usize, bytes: &mut [u8]) {
        (**self).copy_out(offset, bytes);
    }

    fn populate(&self, offset: usize, size_bytes: usize) -> Result<()> {
        (**self).populate(offset, size_bytes)
    }
}

// SAFETY: forwards to the region that is shared.
#[cfg(not(loom))]
unsafe impl Region for std::sync::Arc<Mapping> {
    fn size_bytes(&self) -> usize {
        (**self).size_bytes()
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        (**self).word(offset)
    }

    fn copy_in(&self, offset: usize, bytes: &[u8]) {
        (**self).copy_in(offset, bytes);
    }

    fn copy_out(&self, offset: usize, bytes: &mut [u8]) {
        (**self).copy_out(offset, bytes);
    }

    fn populate(&self, offset: usize, size_bytes: usize) -> Result<()> {
        (**self).populate(offset, size_bytes)
    }
}

#[cfg(not(loom))]
pub use mapped::Mapping;

#[cfg(not(loom))]
mod mapped {
    use super::Region;
    use crate::error::{CoreError, Result};
    use crate::slab::PAGE_BYTES;
    use crate::sync::AtomicU32;
    use crate::sys;
    use crate::sys::fd::BorrowedFd;
    use std::ptr::NonNull;

    /// A shared mapping, unmapped when dropped: a caller that passes its address on keeps it alive.
    #[derive(Debug)]
    pub struct Mapping {
        start: NonNull<u8>,
        size_bytes: usize,
    }

    // SAFETY: the memory is reached through atomics and raw copies alone; the mapping itself is
    // immutable from creation to drop.
    unsafe impl Send for Mapping {}
    // SAFETY: as above; shared use is what it is for.
    unsafe impl Sync for Mapping {}

    impl Mapping {
        /// Maps `[offset, offset + size_bytes)` of `fd`, readable and writable.
        pub fn of(fd: BorrowedFd<'_>, offset: u64, size_bytes: usize) -> Result<Mapping> {
            let start = sys::map_shared(fd, offset, size_bytes)?;
            Ok(Mapping { start, size_bytes })
        }

        /// The address of byte 0; valid as long as `self`.
        pub fn start(&self) -> NonNull<u8> {
            self.start
        }

        fn check(&self, offset: usize, len: usize) {
            let fits = offset.checked_add(len).is_some_and(|end| end <= self.size_bytes);
            assert!(fits, "{len} bytes at {offset} lie outside of {} bytes", self.size_bytes);
        }
    }

    impl Drop for Mapping {
        fn drop(&mut self) {
            sys::unmap(self.start, self.size_bytes);
        }
    }

    // SAFETY: the address of a word depends on its offset alone; `check` bounds every access.
    unsafe impl Region for Mapping {
        fn size_bytes(&self) -> usize {
            self.size_bytes
        }

        fn word(&self, offset: usize) -> &AtomicU32 {
            self.check(offset, 4);
            assert!(offset.is_multiple_of(4), "{offset} is not the offset of a word");
            // SAFETY: `check` has shown that offset + 4 lies inside the mapping.
            let at = unsafe { self.start.add(offset) };
            // SAFETY: inside the mapping for as long as `self`; aligned, because a mapping starts on
            // a page and the offset is a multiple of 4; every access to these bytes, in this and in
            // the other process, is atomic.
            unsafe { AtomicU32::from_ptr(at.as_ptr().cast()) }
        }

        fn copy_in(&self, offset: usize, bytes: &[u8]) {
            self.check(offset, bytes.len());
            // SAFETY: `check` has shown that the offset lies inside the mapping.
            let to = unsafe { self.start.add(offset) };
            // SAFETY: `check`: the target is mapped; the source is a live slice outside of it.
            unsafe { to.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
        }

        fn copy_out(&self, offset: usize, bytes: &mut [u8]) {
            self.check(offset, bytes.len());
            // SAFETY: `check` has shown that the offset lies inside the mapping.
            let from = unsafe { self.start.add(offset) };
            let len = bytes.len();
            // SAFETY: `check`: the source is mapped; the target is a live, exclusive slice.
            unsafe { from.copy_to_nonoverlapping(NonNull::from(bytes).cast(), len) };
        }

        fn populate(&self, offset: usize, size_bytes: usize) -> Result<()> {
            self.check(offset, size_bytes);
            let before = offset % PAGE_BYTES as usize;
            // SAFETY: `check` has shown that the offset lies inside the mapping, which starts on a page.
            let page = unsafe { self.start.add(offset - before) };
            sys::populate(page, size_bytes + before)
                .map_err(|_| CoreError::Full { size_bytes: size_bytes as u64 })
        }
    }
}

/// Heap memory in the shape of a segment, for tests and models. Words live on line boundaries below
/// `HEADER_BYTES`, bytes above. Under loom each 8 bytes are one cell: a copy that races with another
/// fails the model.
pub struct HeapRegion {
    words: Vec<AtomicU32>,
    cells: Vec<Cell>,
    words_bytes: usize,
}

const CELL_BYTES: usize = 8;
const WORD_STRIDE: usize = crate::layout::LINE_BYTES;

#[cfg(loom)]
type Cell = loom::cell::UnsafeCell<[u8; CELL_BYTES]>;
#[cfg(not(loom))]
type Cell = std::cell::UnsafeCell<[u8; CELL_BYTES]>;

// SAFETY: words are atomics; cells are reached only by the copies, which the ring's protocol keeps
// apart (that is what the loom models check).
unsafe impl Send for HeapRegion {}
// SAFETY: as above.
unsafe impl Sync for HeapRegion {}

impl HeapRegion {
    /// `word_count` words at multiples of a line, then `size_bytes` bytes.
    pub fn new(word_count: usize, size_bytes: usize) -> HeapRegion {
        HeapRegion {
            words: (0..word_count).map(|_| AtomicU32::new(0)).collect(),
            cells: (0..size_bytes.div_ceil(CELL_BYTES)).map(|_| Cell::new([0; 8])).collect(),
            words_bytes: word_count * WORD_STRIDE,
        }
    }

    /// Offset of the first byte.
    pub fn bytes_at(&self) -> usize {
        self.words_bytes
    }

    fn each_cell(
        &self,
        offset: usize,
        len: usize,
        mut visit: impl FnMut(&Cell, usize, usize, usize),
    ) {
        let mut done = 0;
        while done < len {
            let at = offset - self.words_bytes + done;
            let inside = at % CELL_BYTES;
            let count = (CELL_BYTES - inside).min(len - done);
            visit(&self.cells[at / CELL_BYTES], inside, done, count);
            done += count;
        }
    }
}

// SAFETY: a word's place depends on its offset alone; indexing bounds every access.
unsafe impl Region for HeapRegion {
    fn size_bytes(&self) -> usize {
        self.words_bytes + self.cells.len() * CELL_BYTES
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(WORD_STRIDE), "{offset} is not the offset of a word");
        &self.words[offset / WORD_STRIDE]
    }

    fn copy_in(&self, offset: usize, bytes: &[u8]) {
        self.each_cell(offset, bytes.len(), |cell, inside, done, count| {
            write_cell(cell, inside, &bytes[done..done + count]);
        });
    }

    fn copy_out(&self, offset: usize, bytes: &mut [u8]) {
        self.each_cell(offset, bytes.len(), |cell, inside, done, count| {
            bytes[done..done + count].copy_from_slice(&read_cell(cell)[inside..inside + count]);
        });
    }
}

#[cfg(loom)]
fn write_cell(cell: &Cell, inside: usize, bytes: &[u8]) {
    cell.with_mut(|content| {
        // SAFETY: loom fails the model when another access overlaps with this closure.
        let content = unsafe { &mut *content };
        content[inside..inside + bytes.len()].copy_from_slice(bytes);
    });
}

#[cfg(loom)]
fn read_cell(cell: &Cell) -> [u8; CELL_BYTES] {
    cell.with(|content| {
        // SAFETY: loom fails the model when a write overlaps with this closure.
        unsafe { *content }
    })
}

#[cfg(not(loom))]
fn write_cell(cell: &Cell, inside: usize, bytes: &[u8]) {
    // SAFETY: the ring keeps the other side out of these bytes while this runs (contract of copy_in).
    let content = unsafe { &mut *cell.get() };
    content[inside..inside + bytes.len()].copy_from_slice(bytes);
}

#[cfg(not(loom))]
fn read_cell(cell: &Cell) -> [u8; CELL_BYTES] {
    // SAFETY: the ring keeps the writer out of these bytes while this runs (contract of copy_out).
    unsafe { *cell.get() }
}
