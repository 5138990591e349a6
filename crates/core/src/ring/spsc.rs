//! A byte ring with one writer and one reader; the JavaScript in `src/channels/shm/` implements the
//! same.
//!
//! `head` and `tail` are free-running `u32` byte counts (they wrap; only differences count), both
//! multiples of 8. Bytes in `[head, tail)` belong to the reader, the others to the writer. A frame
//! never wraps: when it does not fit up to the end, a gap fills the rest.
//!
//! Deaths. A writer that dies before its tail store leaves invisible bytes; after it, a whole frame. A
//! reader that dies before its head store leaves the frame in the ring: its successor must learn from
//! the claims whether it was acted upon. Neither needs repair.
//!
//! Why the raw copies are sound by protocol (cited below): only the one writer writes bytes outside
//! `[head, tail)`, only the one reader reads bytes inside. Each learns of the other's progress by the
//! Acquire load that pairs with its Release store. A peer that breaks this can make wrong values
//! appear, so the reader copies the header out and checks it, and never parses in place.

use super::frame::{self, Head};
use crate::region::Region;
use crate::sync::Ordering::{Acquire, Relaxed, Release};

/// Position of one ring in its region: byte offsets of the two words and of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub tail_at: usize,
    pub head_at: usize,
    pub bytes_at: usize,
    /// A power of two.
    pub capacity: u32,
}

impl Place {
    /// The largest frame, header included, that is written into the ring itself.
    pub fn largest_frame(&self) -> u32 {
        self.capacity / 4
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushError {
    /// No room now; the reader makes some.
    Full,
    /// Larger than `largest_frame`: it has to go by the arena.
    TooLarge,
    /// The head that the reader wrote is impossible.
    Corrupt { head: u32 },
}

/// A cursor or a length that the writer wrote is impossible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Corrupt {
    pub value: u32,
}

fn padded(size: u32) -> u32 {
    size.next_multiple_of(frame::ALIGN_BYTES)
}

pub struct Writer<R: Region> {
    region: R,
    place: Place,
    tail: u32,
}

impl<R: Region> Writer<R> {
    /// Creates the only writer of this ring; continues at the last writer's tail.
    pub fn new(region: R, place: Place) -> Writer<R> {
        // Relaxed: the last writer is gone, and its end happened before this.
        let tail = region.word(place.tail_at).load(Relaxed);
        Writer { region, place, tail }
    }

    pub fn region(&self) -> &R {
        &self.region
    }

    /// Writes one frame whole, or changes nothing and returns the reason.
    pub fn try_push(&mut self, head: Head, body: &[u8]) -> Result<(), PushError> {
        let size = frame::HEADER_BYTES + body.len();
        if size > self.place.largest_frame() as usize {
            return Err(PushError::TooLarge);
        }
        let at = self.reserve(padded(size as u32))?;
        let start = self.place.bytes_at + at as usize;
        // Free bytes of this writer: `reserve`. The module's comment explains why the copies are sound.
        self.region.copy_in(start, &frame::encode(size as u32, head));
        self.region.copy_in(start + frame::HEADER_BYTES, body);
        self.tail = self.tail.wrapping_add(padded(size as u32));
        // Release pairs with the Acquire load of the tail in `Reader::try_pop`: first the bytes.
        self.region.word(self.place.tail_at).store(self.tail, Release);
        Ok(())
    }

    /// Room for `needed` bytes in one piece, behind a gap when the end of the ring is nearer.
    fn reserve(&mut self, needed: u32) -> Result<u32, PushError> {
        // Acquire pairs with the Release store of the head in `Reader::advance`: bytes before it are free.
        let head = self.region.word(self.place.head_at).load(Acquire);
        let used = self.tail.wrapping_sub(head);
        if used > self.place.capacity {
            return Err(PushError::Corrupt { head });
        }
        let free = self.place.capacity - used;
        let at = self.tail & (self.place.capacity - 1);
        let to_end = self.place.capacity - at;
        if needed <= to_end {
            return if needed <= free { Ok(at) } else { Err(PushError::Full) };
        }
        if to_end + needed > free {
            return Err(PushError::Full);
        }
        let gap = (to_end as i32).wrapping_neg();
        self.region.copy_in(self.place.bytes_at + at as usize, &gap.to_le_bytes());
        // Not published by itself: the tail store of the frame behind it covers both.
        self.tail = self.tail.wrapping_add(to_end);
        Ok(0)
    }
}

pub struct Reader<R: Region> {
    region: R,
    place: Place,
    head: u32,
}

impl<R: Region> Reader<R> {
    /// Creates the only reader of this ring; continues at the last reader's head.
    pub fn new(region: R, place: Place) -> Reader<R> {
        // Relaxed: the last reader is gone, and its end happened before this.
        let head = region.word(place.head_at).load(Relaxed);
        Reader { region, place, head }
    }

    pub fn region(&self) -> &R {
        &self.region
    }

    /// True: no frame waits.
    pub fn is_empty(&self) -> bool {
        // Acquire pairs with the Release store of the tail in `Writer::try_push`.
        self.region.word(self.place.tail_at).load(Acquire) == self.head
    }

    /// Copies the next frame's body to `body` and frees its bytes in the ring; `None` when there is no
    /// frame. The flag marks a spilled frame, whose body is its `Spill`.
    pub fn try_pop(&mut self, body: &mut Vec<u8>) -> Result<Option<(Head, bool)>, Corrupt> {
        loop {
            // Acquire pairs with the Release store of the tail in `Writer::try_push`: the bytes of
            // every frame before it are there.
            let tail = self.region.word(self.place.tail_at).load(Acquire);
            let used = tail.wrapping_sub(self.head);
            if used == 0 {
                return Ok(None);
            }
            if used > self.place.capacity || !used.is_multiple_of(frame::ALIGN_BYTES) {
                return Err(Corrupt { value: tail });
            }
            let at = self.head & (self.place.capacity - 1);
            let to_end = self.place.capacity - at;
            let first = self.read_size(at);
            if first < 0 {
                let gap = first.unsigned_abs();
                if gap != to_end || gap > used {
                    return Err(Corrupt { value: gap });
                }
                self.advance(gap);
                continue;
            }
            return self.pop_frame(at, used.min(to_end), body).map(Some);
        }
    }

    fn read_size(&self, at: u32) -> i32 {
        let mut size = [0; 4];
        self.region.copy_out(self.place.bytes_at + at as usize, &mut size);
        i32::from_le_bytes(size)
    }

    /// Reads one frame; `limit` is the number of published bytes in one piece.
    fn pop_frame(
        &mut self,
        at: u32,
        limit: u32,
        body: &mut Vec<u8>,
    ) -> Result<(Head, bool), Corrupt> {
        if (limit as usize) < frame::HEADER_BYTES {
            return Err(Corrupt { value: limit });
        }
        let start = self.place.bytes_at + at as usize;
        let mut header = [0; frame::HEADER_BYTES];
        self.region.copy_out(start, &mut header);
        let (word, head) = frame::decode(header);
        let size = word as u32 & !frame::SPILL_FLAG;
        let is_spilled = word as u32 & frame::SPILL_FLAG != 0;
        // The peer can change the size between two reads: this copy is the one that counts.
        if word < 0 || (size as usize) < frame::HEADER_BYTES || size > limit {
            return Err(Corrupt { value: size });
        }
        body.resize(size as usize - frame::HEADER_BYTES, 0);
        self.region.copy_out(start + frame::HEADER_BYTES, body);
        self.advance(padded(size));
        Ok((head, is_spilled))
    }

    fn advance(&mut self, by: u32) {
        self.head = self.head.wrapping_add(by);
        // Release pairs with the Acquire load of the head in `Writer::reserve`: first the copies out.
        self.region.word(self.place.head_at).store(self.head, Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::layout::LINE_BYTES;
    use crate::region::HeapRegion;
    use std::sync::Arc;

    // SAFETY: forwards to the region inside.
    unsafe impl Region for Arc<HeapRegion> {
        fn size_bytes(&self) -> usize {
            (**self).size_bytes()
        }
        fn word(&self, offset: usize) -> &crate::sync::AtomicU32 {
            (**self).word(offset)
        }
        fn copy_in(&self, offset: usize, bytes: &[u8]) {
            (**self).copy_in(offset, bytes);
        }
        fn copy_out(&self, offset: usize, bytes: &mut [u8]) {
            (**self).copy_out(offset, bytes);
        }
    }

    fn ring(capacity: u32, start: u32) -> (Writer<Arc<HeapRegion>>, Reader<Arc<HeapRegion>>) {
        let region = Arc::new(HeapRegion::new(2, capacity as usize));
        let place =
            Place { tail_at: 0, head_at: LINE_BYTES, bytes_at: region.bytes_at(), capacity };
        region.word(place.tail_at).store(start, Relaxed);
        region.word(place.head_at).store(start, Relaxed);
        (Writer::new(Arc::clone(&region), place), Reader::new(region, place))
    }

    const HEAD: Head = Head { kind: 1, task: -2, target: 3 };

    #[test]
    fn frames_of_every_size_pass_in_order_over_the_wrap_of_the_cursor() {
        let (mut writer, mut reader) = ring(256, u32::MAX - 1023);
        let mut body = Vec::new();
        for round in 0..2000u32 {
            let sent: Vec<u8> = (0..round % 49).map(|i| (i + round) as u8).collect();
            let head = Head { kind: round as i32, ..HEAD };
            assert_eq!(writer.try_push(head, &sent), Ok(()));
            assert_eq!(reader.try_pop(&mut body), Ok(Some((head, false))));
            assert_eq!(body, sent);
            assert_eq!(reader.try_pop(&mut body), Ok(None));
        }
    }

    #[test]
    fn a_full_ring_refuses_and_changes_nothing() {
        let (mut writer, mut reader) = ring(256, 0);
        let mut pushed = 0;
        while writer.try_push(Head { kind: pushed, ..HEAD }, &[7; 20]).is_ok() {
            pushed += 1;
        }
        assert_eq!(writer.try_push(HEAD, &[7; 20]), Err(PushError::Full));
        let mut body = Vec::new();
        for kind in 0..pushed {
            let popped = reader.try_pop(&mut body).expect("sound").expect("a frame");
            assert_eq!(popped.0.kind, kind);
        }
        assert_eq!(reader.try_pop(&mut body), Ok(None));
    }

    #[test]
    fn a_frame_larger_than_a_quarter_of_the_ring_is_refused() {
        let (mut writer, _reader) = ring(256, 0);
        assert_eq!(writer.try_push(HEAD, &[0; 49]), Err(PushError::TooLarge));
        assert_eq!(writer.try_push(HEAD, &[0; 48]), Ok(()));
    }

    #[test]
    fn forged_cursors_and_lengths_are_reported_and_read_nothing_outside() {
        for (offset, value) in [(0usize, 4u32), (0, 9000), (0, u32::MAX)] {
            let (writer, mut reader) = ring(256, 0);
            writer.region().word(offset).store(value, Relaxed);
            assert!(reader.try_pop(&mut Vec::new()).is_err(), "tail {value}");
        }
        for size in [0i32, 15, 33, 300, i32::MAX, i32::MIN, -8, -256, -24] {
            let (mut writer, mut reader) = ring(256, 0);
            writer.try_push(HEAD, &[1; 16]).expect("room");
            let at = writer.region().bytes_at();
            writer.region().copy_in(at, &size.to_le_bytes());
            assert!(reader.try_pop(&mut Vec::new()).is_err(), "size {size}");
        }
        let (mut writer, _reader) = ring(256, 0);
        writer.region().word(LINE_BYTES).store(8, Relaxed);
        assert_eq!(writer.try_push(HEAD, &[]), Err(PushError::Corrupt { head: 8 }));
    }

    #[test]
    fn the_bytes_of_a_frame_are_those_of_the_golden_file() {
        let (mut writer, _reader) = ring(256, 0);
        writer.try_push(Head { kind: 1, task: 258, target: -1 }, b"abc").expect("room");
        let mut bytes = [0; 24];
        writer.region().copy_out(writer.region().bytes_at(), &mut bytes);
        let golden =
            [19, 0, 0, 0, 1, 0, 0, 0, 2, 1, 0, 0, 255, 255, 255, 255, 97, 98, 99, 0, 0, 0, 0, 0];
        assert_eq!(bytes, golden);
    }
}
