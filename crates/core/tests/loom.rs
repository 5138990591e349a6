//! Models of the ring, of the wake protocol and of the gate at which a thread stands still: every interleaving, within the bound on preemptions.
//! Run with `RUSTFLAGS="--cfg loom" cargo test --release -p manycore-core --test loom`.

#![cfg(loom)]

use loom::sync::Arc;
use loom::thread;
use manycore_core::layout::LINE_BYTES;
use manycore_core::region::{HeapRegion, Region};
use manycore_core::ring::frame::Head;
use manycore_core::ring::spsc::{Place, PushError, Reader, Writer};
use manycore_core::sync::{AtomicU32, Ordering};
use manycore_core::wake::pause::Gate;
use manycore_core::wake::sleep;

/// The model's region, shared by both ends.
#[derive(Clone)]
struct Shared(Arc<HeapRegion>);

// SAFETY: forwards to the region inside.
unsafe impl Region for Shared {
    fn size_bytes(&self) -> usize {
        self.0.size_bytes()
    }
    fn word(&self, offset: usize) -> &AtomicU32 {
        self.0.word(offset)
    }
    fn copy_in(&self, offset: usize, bytes: &[u8]) {
        self.0.copy_in(offset, bytes);
    }
    fn copy_out(&self, offset: usize, bytes: &mut [u8]) {
        self.0.copy_out(offset, bytes);
    }
}

const ASLEEP_AT: usize = 2 * LINE_BYTES;
const CAPACITY: u32 = 128;

fn ring(start: u32) -> (Shared, Place) {
    let region = Shared(Arc::new(HeapRegion::new(3, CAPACITY as usize)));
    let bytes_at = region.0.bytes_at();
    let place = Place { tail_at: 0, head_at: LINE_BYTES, bytes_at, capacity: CAPACITY };
    region.word(place.tail_at).store(start, Ordering::Relaxed);
    region.word(place.head_at).store(start, Ordering::Relaxed);
    (region, place)
}

fn model(body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(body);
}

fn head(kind: i32) -> Head {
    Head { kind, task: kind * 10, target: -kind }
}

/// Reads until a frame comes; the writer runs meanwhile.
fn pop(reader: &mut Reader<Shared>) -> (Head, Vec<u8>) {
    let mut body = Vec::new();
    loop {
        match reader.try_pop(&mut body) {
            Ok(Some((head, _))) => return (head, body),
            Ok(None) => thread::yield_now(),
            Err(corrupt) => panic!("{corrupt:?}"),
        }
    }
}

#[test]
fn frames_arrive_whole_and_in_order_also_around_the_end_of_ring_and_cursor() {
    // 24 bytes before the end, and the cursor wraps at the same place: the second frame needs a gap.
    model(|| {
        let (region, place) = ring(0u32.wrapping_sub(24));
        let mut writer = Writer::new(region.clone(), place);
        let writing = thread::spawn(move || {
            for kind in 1..=2 {
                assert_eq!(writer.try_push(head(kind), &[kind as u8; 9]), Ok(()));
            }
        });
        let mut reader = Reader::new(region, place);
        for kind in 1..=2 {
            assert_eq!(pop(&mut reader), (head(kind), vec![kind as u8; 9]));
        }
        writing.join().expect("the writer");
    });
}

#[test]
fn a_writer_never_writes_over_what_was_not_read_yet() {
    model(|| {
        let (region, place) = ring(0);
        let mut writer = Writer::new(region.clone(), place);
        // Fills the ring: 4 frames of 32 bytes.
        for kind in 1..=4 {
            assert_eq!(writer.try_push(head(kind), &[kind as u8; 16]), Ok(()));
        }
        let writing = thread::spawn(move || {
            loop {
                match writer.try_push(head(5), &[5; 16]) {
                    Ok(()) => return,
                    Err(PushError::Full) => thread::yield_now(),
                    Err(error) => panic!("{error:?}"),
                }
            }
        });
        let mut reader = Reader::new(region, place);
        for kind in 1..=5 {
            assert_eq!(pop(&mut reader), (head(kind), vec![kind as u8; 16]));
        }
        writing.join().expect("the writer");
    });
}

/// The doorbell of the model: loom has no eventfd, so a ring is a counter that a sleeper waits for.
/// A lost wake-up shows as a model that never ends.
#[test]
fn a_sleeper_is_woken_or_sees_the_frame() {
    model(|| {
        let (region, place) = ring(0);
        let bell = Arc::new(AtomicU32::new(0));
        let mut writer = Writer::new(region.clone(), place);
        let their_bell = Arc::clone(&bell);
        let waker = thread::spawn(move || {
            writer.try_push(head(1), &[1]).expect("room");
            if sleep::must_ring(writer.region().word(ASLEEP_AT)) {
                their_bell.fetch_add(1, Ordering::Release);
            }
        });
        let mut reader = Reader::new(region.clone(), place);
        let mut body = Vec::new();
        let asleep = region.word(ASLEEP_AT);
        if reader.try_pop(&mut body).expect("sound").is_none() {
            sleep::arm(asleep);
            if reader.is_empty() {
                // Asleep: only the bell ends it. `must_ring` cannot have missed the word.
                while bell.load(Ordering::Acquire) == 0 {
                    thread::yield_now();
                }
            }
            sleep::disarm(asleep);
            assert!(reader.try_pop(&mut body).expect("sound").is_some(), "woken for nothing");
        }
        waker.join().expect("the waker");
    });
}

#[test]
fn one_of_two_wakers_rings() {
    model(|| {
        let word = Arc::new(AtomicU32::new(0));
        sleep::arm(&word);
        let theirs = Arc::clone(&word);
        let other = thread::spawn(move || u32::from(sleep::must_ring(&theirs)));
        let rings = u32::from(sleep::must_ring(&word)) + other.join().expect("the other waker");
        assert_eq!(rings, 1);
    });
}

/// The signal of the model: a counter that the loop's thread reads between two steps.
fn deliver(signals: &AtomicU32, gate: &Gate) {
    let count = signals.load(Ordering::Acquire);
    if count > 0 {
        signals.fetch_sub(1, Ordering::Relaxed);
        let mut waits = 0;
        gate.stand(|| {
            waits += 1;
            thread::yield_now();
            waits < 2
        });
    }
}

/// One attempt of the taker. True: it has changed the cell while the loop stood.
fn try_change(gate: &Gate, signals: &AtomicU32, cell: &loom::cell::UnsafeCell<u32>) -> bool {
    if gate.ask() {
        signals.fetch_add(1, Ordering::Release);
    }
    for _ in 0..2 {
        if gate.try_hold() {
            // SAFETY: the loop stands; loom finds out if it does not.
            cell.with_mut(|value| unsafe { *value += 1 });
            gate.release();
            return true;
        }
        thread::yield_now();
    }
    if gate.withdraw() || !gate.try_hold() {
        return false;
    }
    // SAFETY: as above.
    cell.with_mut(|value| unsafe { *value += 1 });
    gate.release();
    true
}

/// The cell is what the loop works with. loom reports two accesses at a time.
struct Work(loom::cell::UnsafeCell<u32>);

// SAFETY: what the model is to show.
unsafe impl Sync for Work {}
// SAFETY: as above.
unsafe impl Send for Work {}

#[test]
fn nothing_is_changed_but_while_the_loop_stands_also_by_a_late_signal() {
    model(|| {
        let gate = Arc::new(Gate::default());
        let signals = Arc::new(AtomicU32::new(0));
        let work = Arc::new(Work(loom::cell::UnsafeCell::new(0)));
        let (their_gate, their_signals) = (Arc::clone(&gate), Arc::clone(&signals));
        let their_work = Arc::clone(&work);
        let taker = thread::spawn(move || {
            let attempts = [0, 1].map(|_| try_change(&their_gate, &their_signals, &their_work.0));
            attempts.into_iter().filter(|&has_changed| has_changed).count() as u32
        });
        for _ in 0..3 {
            // SAFETY: as above.
            work.0.with_mut(|value| unsafe { *value += 10 });
            deliver(&signals, &gate);
        }
        let changes = taker.join().expect("the taker");
        // SAFETY: the other thread has ended.
        assert_eq!(work.0.with(|value| unsafe { *value }), 30 + changes);
    });
}
