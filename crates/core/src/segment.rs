//! One worker's segment: a sealed memfd with the words of `layout` and two rings.

use crate::error::{CoreError, Result};
use crate::layout::{self, Shape, constant, word};
use crate::region::{Mapping, Region};
use crate::ring::spsc::Place;
use crate::sync::{AtomicU32, Ordering::Relaxed};
use crate::sys;
use crate::sys::fd::{AsFd, BorrowedFd, OwnedFd};

/// An end of the channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Parent,
    Worker,
}

/// A mapped segment. Its memory lives as long as this value; dropping it unmaps.
#[derive(Debug)]
pub struct Segment {
    mapping: Mapping,
    shape: Shape,
}

impl Segment {
    /// Makes a segment and writes its constants; the descriptor is for the worker.
    pub fn create(shape: Shape) -> Result<(Segment, OwnedFd)> {
        let shape = shape.check()?;
        let fd = sys::sealed_memfd(c"manycore-segment", shape.total_bytes() as u64)?;
        let mapping = Mapping::of(fd.as_fd(), 0, shape.total_bytes())?;
        let constants = [
            (constant::VERSION, layout::VERSION),
            (constant::TOTAL_BYTES, shape.total_bytes() as u32),
            (constant::RING_BYTES, shape.ring_bytes),
            (constant::SLOT_COUNT, shape.slot_count),
            (constant::OWNER, shape.owner),
            (constant::REQUEST_AT, shape.request_at() as u32),
            (constant::REPLY_AT, shape.reply_at() as u32),
            (constant::PARENT_OWNER, shape.parent_owner),
            (constant::MAGIC, layout::MAGIC),
        ];
        for (offset, value) in constants {
            // Relaxed: no other process has the descriptor yet; handing it over orders these stores.
            mapping.word(offset).store(value, Relaxed);
        }
        Ok((Segment { mapping, shape }, fd))
    }

    /// Maps a parent's segment; every number in it is checked against the file itself.
    pub fn open(fd: BorrowedFd<'_>) -> Result<Segment> {
        Segment::map(fd, sys::sealed_size(fd)?)
    }

    /// Maps a parent's segment on a guest kernel, to which it is a device or a file of another system: there are no
    /// seals to ask for, and the parent alone could make it shrink.
    pub fn open_in_guest(fd: BorrowedFd<'_>, size_bytes: u64) -> Result<Segment> {
        sys::check_unsealable(fd)?;
        Segment::map(fd, size_bytes)
    }

    fn map(fd: BorrowedFd<'_>, file_bytes: u64) -> Result<Segment> {
        let limit = Shape {
            ring_bytes: layout::MAX_RING_BYTES,
            slot_count: layout::MAX_SLOTS,
            owner: 0,
            parent_owner: 0,
        };
        if !(layout::HEADER_BYTES as u64..=limit.total_bytes() as u64).contains(&file_bytes) {
            return Err(CoreError::Corrupt { what: "the segment size", value: file_bytes });
        }
        let mapping = Mapping::of(fd, 0, file_bytes as usize)?;
        let shape = read_shape(&mapping)?;
        Ok(Segment { mapping, shape })
    }

    pub fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    pub fn shape(&self) -> Shape {
        self.shape
    }

    pub fn word(&self, offset: usize) -> &AtomicU32 {
        self.mapping.word(offset)
    }

    /// The ring that `side` writes.
    pub fn outgoing(&self, side: Side) -> Place {
        let (tail_at, head_at, bytes_at) = match side {
            Side::Parent => (word::REQUEST_TAIL, word::REQUEST_HEAD, self.shape.request_at()),
            Side::Worker => (word::REPLY_TAIL, word::REPLY_HEAD, self.shape.reply_at()),
        };
        Place { tail_at, head_at, bytes_at, capacity: self.shape.ring_bytes }
    }

    /// The ring that `side` reads.
    pub fn incoming(&self, side: Side) -> Place {
        self.outgoing(match side {
            Side::Parent => Side::Worker,
            Side::Worker => Side::Parent,
        })
    }
}

fn read_shape(mapping: &Mapping) -> Result<Shape> {
    // Relaxed: written before the descriptor was handed over. Each is read once, then checked.
    let read = |offset| mapping.word(offset).load(Relaxed);
    let magic = read(constant::MAGIC);
    if magic != layout::MAGIC {
        return Err(CoreError::Corrupt { what: "the magic number", value: magic.into() });
    }
    let version = read(constant::VERSION);
    if version != layout::VERSION {
        let own = layout::VERSION;
        return Err(CoreError::Version { what: "the segment", found: version, own });
    }
    let shape = Shape {
        ring_bytes: read(constant::RING_BYTES),
        slot_count: read(constant::SLOT_COUNT),
        owner: read(constant::OWNER),
        parent_owner: read(constant::PARENT_OWNER),
    }
    .check()?;
    if shape.total_bytes() != mapping.size_bytes() {
        return Err(CoreError::Corrupt {
            what: "the segment size",
            value: mapping.size_bytes() as u64,
        });
    }
    Ok(shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape { ring_bytes: 4096, slot_count: 8, owner: 5, parent_owner: 2 };

    #[test]
    fn a_word_that_one_side_writes_the_other_reads() {
        let (made, fd) = Segment::create(SHAPE).expect("memfd");
        let opened = Segment::open(fd.as_fd()).expect("sound");
        assert_eq!(opened.shape(), SHAPE);
        made.word(word::REQUEST_TAIL).store(77, Relaxed);
        assert_eq!(opened.word(word::REQUEST_TAIL).load(Relaxed), 77);
    }

    #[test]
    fn a_segment_of_another_version_or_with_forged_sizes_is_refused() {
        let forgeries = [
            (constant::MAGIC, 1, "SEGMENT_CORRUPT"),
            (constant::VERSION, 99, "SEGMENT_VERSION"),
            (constant::RING_BYTES, 8192, "SEGMENT_CORRUPT"),
            (constant::RING_BYTES, u32::MAX, "SEGMENT_CORRUPT"),
            (constant::SLOT_COUNT, u32::MAX, "SEGMENT_CORRUPT"),
        ];
        for (offset, value, code) in forgeries {
            let (made, fd) = Segment::create(SHAPE).expect("memfd");
            made.word(offset).store(value, Relaxed);
            assert_eq!(Segment::open(fd.as_fd()).expect_err("forged").code(), code);
        }
    }

    #[test]
    fn only_a_file_that_can_have_none_needs_no_seals() {
        let (_made, fd) = Segment::create(SHAPE).expect("memfd");
        let size = SHAPE.total_bytes() as u64;
        let error = Segment::open_in_guest(fd.as_fd(), size).expect_err("a memfd");
        assert_eq!(error.code(), "SEGMENT_CORRUPT");
        let device = std::fs::File::open("/dev/null").expect("/dev/null");
        let error = Segment::open_in_guest(device.as_fd(), size).expect_err("it cannot be mapped");
        assert_eq!(error.code(), "NATIVE_REFUSED");
        let error = Segment::open_in_guest(device.as_fd(), 1 << 40).expect_err("too large");
        assert_eq!(error.code(), "SEGMENT_CORRUPT");
    }

    #[test]
    fn a_file_that_can_shrink_is_refused() {
        let file = std::fs::File::open("/dev/null").expect("/dev/null");
        assert_eq!(Segment::open(file.as_fd()).expect_err("not sealed").code(), "SEGMENT_CORRUPT");
    }
}
