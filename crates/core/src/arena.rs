//! Memory for payloads: one sealed, sparse memfd that a parent shares with all its workers.
//!
//! The file is huge and nearly empty. Its offsets are divided by owner: 0 is the process that created
//! the arena, and its workers count from 1. Above those are the numbers of members (event loops in
//! other processes), 256 for each: the first is the member's own, the others are for its workers. Each
//! owner allocates only in its own range, so no lock lies in shared memory. It frees only its own
//! blocks, after messages that peers have released them. Peers map named blocks in windows, and keep a
//! window as long as any view of it lives.

use crate::error::{CoreError, Result};
use crate::region::Mapping;
use crate::slab::{self, PAGE_BYTES, Slab};
use crate::sys;
use crate::sys::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::collections::HashMap;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Offsets that belong to one owner.
pub const RANGE_BYTES: u64 = 1 << 35;
/// Number of owners; JavaScript names a block exactly, by owner × range + offset.
pub const OWNER_COUNT: u32 = 1 << 18;
/// First number of a member; workers of the arena's owner have the numbers below.
pub const MEMBERS_AT: u32 = 1 << 17;
/// Owner numbers of one member.
pub const MEMBER_OWNERS: u32 = 1 << 8;
/// Size of one mapping; larger blocks have a window of their own.
const WINDOW_BYTES: u64 = 1 << 26;
/// Free memory that one owner keeps for its next payloads: eight of 16 MiB, about as many as wait for
/// the peer's next garbage collection.
const CACHE_LIMIT_BYTES: u64 = 128 << 20;

/// A mapped part: keep `mapping` as long as the address is used.
#[derive(Debug, Clone)]
pub struct View {
    pub mapping: Arc<Mapping>,
    pub start: NonNull<u8>,
}

#[derive(Debug)]
pub struct Arena {
    fd: OwnedFd,
    /// Windows by owner and offset.
    windows: Mutex<HashMap<(u32, u64), Arc<Mapping>>>,
}

/// Ignores poisoning: a panic leaves no guarded value half-changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Arena {
    pub fn create() -> Result<Arena> {
        let bytes = RANGE_BYTES * u64::from(OWNER_COUNT);
        Ok(Arena::from_fd(sys::sealed_memfd(c"manycore-arena", bytes)?))
    }

    /// Opens the arena of a parent, after checking that the file is one.
    pub fn open(fd: OwnedFd) -> Result<Arena> {
        let bytes = sys::sealed_size(fd.as_fd())?;
        if bytes != RANGE_BYTES * u64::from(OWNER_COUNT) {
            return Err(CoreError::Corrupt { what: "the arena size", value: bytes });
        }
        Ok(Arena::from_fd(fd))
    }

    fn from_fd(fd: OwnedFd) -> Arena {
        Arena { fd, windows: Mutex::default() }
    }

    pub fn raw(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// The memory of a block. The numbers may come from a peer: they are checked, and every result lies
    /// inside this arena.
    pub fn view(&self, owner: u32, offset: u64, size_bytes: u64) -> Result<View> {
        let block_bytes = slab::block_bytes(size_bytes)?;
        let is_inside = offset.is_multiple_of(block_bytes)
            && offset.checked_add(block_bytes).is_some_and(|end| end <= RANGE_BYTES);
        if owner >= OWNER_COUNT || !is_inside {
            return Err(CoreError::Corrupt { what: "the place of a block", value: offset });
        }
        let window_bytes = block_bytes.max(WINDOW_BYTES);
        let window_at = offset - offset % window_bytes;
        let mapping = self.window(owner, window_at, window_bytes)?;
        let inside = (offset - window_at) as usize;
        // SAFETY: `inside` + block lies in the window: both are powers of two, the block is aligned.
        let start = unsafe { mapping.start().add(inside) };
        Ok(View { mapping, start })
    }

    fn window(&self, owner: u32, at: u64, bytes: u64) -> Result<Arc<Mapping>> {
        let mut windows = lock(&self.windows);
        if let Some(mapping) = windows.get(&(owner, at)) {
            // A large block and small ones never share an offset: its first use decides.
            if crate::region::Region::size_bytes(&**mapping) as u64 >= bytes {
                return Ok(Arc::clone(mapping));
            }
        }
        sys::check_refusal("mapping")?;
        let file_at = u64::from(owner) * RANGE_BYTES + at;
        let mapping = Arc::new(Mapping::of(self.fd.as_fd(), file_at, bytes as usize)?);
        windows.insert((owner, at), Arc::clone(&mapping));
        Ok(mapping)
    }

    /// Drops the mappings of these owners; views keep the windows that they need.
    pub fn unmap(&self, owners: Range<u32>) {
        lock(&self.windows).retain(|(owner, _), _| !owners.contains(owner));
    }

    /// Frees all memory of owners that have ended. Views that still live read zeroes.
    pub fn retire(&self, owners: Range<u32>) -> Result<()> {
        let at = u64::from(owners.start) * RANGE_BYTES;
        let bytes = owners.len() as u64 * RANGE_BYTES;
        self.unmap(owners);
        sys::punch_hole(self.fd.as_fd(), at, bytes)
    }
}

/// One owner's range of an arena with its free blocks. Only this value allocates there.
#[derive(Debug)]
pub struct OwnRange {
    arena: Arc<Arena>,
    owner: u32,
    slab: Mutex<Slab>,
}

/// A block that was just taken.
#[derive(Debug, Clone)]
pub struct Taken {
    pub offset: u64,
    pub view: View,
    /// Number of first bytes that may hold old content; all others are zero.
    pub dirty_bytes: u64,
}

impl OwnRange {
    pub fn new(arena: Arc<Arena>, owner: u32) -> OwnRange {
        OwnRange { arena, owner, slab: Mutex::new(Slab::new(RANGE_BYTES, CACHE_LIMIT_BYTES)) }
    }

    pub fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    pub fn owner(&self) -> u32 {
        self.owner
    }

    /// Allocates a block of `size_bytes` with memory behind all of it: writing there cannot fail any
    /// more.
    pub fn take(&self, size_bytes: u64) -> Result<Taken> {
        let mut slab = lock(&self.slab);
        let slot = slab.take(size_bytes)?;
        let ready = self.arena.view(self.owner, slot.offset, size_bytes).and_then(|view| {
            let wanted = size_bytes.next_multiple_of(PAGE_BYTES);
            if wanted > slot.populated_bytes {
                populate(&view, slot.populated_bytes, wanted)?;
                slab.note_populated(slot.offset, wanted);
            }
            Ok(view)
        });
        match ready {
            Ok(view) => Ok(Taken { offset: slot.offset, view, dirty_bytes: slot.populated_bytes }),
            Err(error) => {
                slab.free(slot.offset)?;
                Err(error)
            }
        }
    }

    /// Frees a block without references.
    pub fn free(&self, offset: u64) -> Result<()> {
        let punch_bytes = lock(&self.slab).free(offset)?;
        if punch_bytes == 0 {
            return Ok(());
        }
        let at = u64::from(self.owner) * RANGE_BYTES + offset;
        sys::punch_hole(self.arena.fd.as_fd(), at, punch_bytes)
    }

    pub fn used_count(&self) -> usize {
        lock(&self.slab).used_count()
    }
}

fn populate(view: &View, from: u64, to: u64) -> Result<()> {
    // SAFETY: `from` and `to` lie in the block, whose view spans it.
    let start = unsafe { view.start.add(from as usize) };
    sys::populate(start, (to - from) as usize)
        .map_err(|_| CoreError::Full { size_bytes: to - from })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::Region;

    fn bytes_of(view: &View, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        let at = view.start.as_ptr() as usize - view.mapping.start().as_ptr() as usize;
        view.mapping.copy_out(at, &mut bytes);
        bytes
    }

    fn fill(view: &View, bytes: &[u8]) {
        let at = view.start.as_ptr() as usize - view.mapping.start().as_ptr() as usize;
        view.mapping.copy_in(at, bytes);
    }

    fn resident_bytes(arena: &Arena) -> u64 {
        use std::os::unix::fs::MetadataExt;
        let file = std::fs::File::from(arena.fd.try_clone().expect("dup"));
        file.metadata().expect("stat").blocks() * 512
    }

    #[test]
    fn a_peer_reads_bytes_of_the_owner() {
        let arena = Arc::new(Arena::create().expect("memfd"));
        let range = OwnRange::new(Arc::clone(&arena), 7);
        let peer = Arena::open(sys::duplicate(arena.fd.as_fd()).expect("dup")).expect("sound");
        for size in [1u64, 70_000, 80 << 20] {
            let taken = range.take(size).expect("room");
            fill(&taken.view, &[size as u8; 1]);
            let view = peer.view(7, taken.offset, size).expect("sound");
            assert_eq!(bytes_of(&view, 1), [size as u8]);
        }
    }

    #[test]
    fn forged_places_are_refused() {
        let arena = Arena::create().expect("memfd");
        let places = [
            (OWNER_COUNT, 0, 1),
            (1, 1, 1),
            (1, RANGE_BYTES, 1),
            (1, u64::MAX - 65535, 1),
            (1, 1 << 16, 1 << 20),
            (1, 0, u64::MAX),
        ];
        for (owner, offset, size) in places {
            assert!(arena.view(owner, offset, size).is_err(), "{owner} {offset} {size}");
        }
    }

    #[test]
    fn retiring_an_owner_frees_its_memory_but_no_mapping_in_use() {
        let arena = Arc::new(Arena::create().expect("memfd"));
        let range = OwnRange::new(Arc::clone(&arena), 3);
        let taken = range.take(1 << 20).expect("room");
        fill(&taken.view, b"here");
        assert_eq!(resident_bytes(&arena), 1 << 20);
        arena.retire(2..3).expect("punch");
        assert_eq!(bytes_of(&taken.view, 4), *b"here");
        arena.retire(3..4).expect("punch");
        assert_eq!(resident_bytes(&arena), 0);
        assert_eq!(bytes_of(&taken.view, 4), [0; 4]);
    }

    #[test]
    fn retiring_a_member_frees_the_memory_of_all_its_owners_and_of_no_other() {
        let arena = Arc::new(Arena::create().expect("memfd"));
        let first = OWNER_COUNT - MEMBER_OWNERS;
        for owner in [first - 1, first, OWNER_COUNT - 1] {
            OwnRange::new(Arc::clone(&arena), owner).take(1 << 20).expect("room");
        }
        assert_eq!(resident_bytes(&arena), 3 << 20);
        arena.retire(first..OWNER_COUNT).expect("punch");
        assert_eq!(resident_bytes(&arena), 1 << 20);
    }

    #[test]
    fn freed_memory_is_kept_up_to_the_limit_and_then_goes_back() {
        let arena = Arc::new(Arena::create().expect("memfd"));
        let range = OwnRange::new(Arc::clone(&arena), 0);
        let taken: Vec<Taken> = (0..9).map(|_| range.take(16 << 20).expect("room")).collect();
        for block in &taken {
            range.free(block.offset).expect("in use");
        }
        assert_eq!(resident_bytes(&arena), CACHE_LIMIT_BYTES);
        assert_eq!(range.used_count(), 0);
        assert!(range.free(taken[0].offset).is_err());
    }
}
