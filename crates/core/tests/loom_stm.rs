//! Models of the transactional memory: every interleaving, within the bound on preemptions.
//! Run with `RUSTFLAGS="--cfg loom" cargo test --release -p manycore-core --test loom_stm`.

#![cfg(loom)]

use loom::sync::Arc;
use loom::thread;
use manycore_core::error::Result;
use manycore_core::region::Region;
use manycore_core::stm::commit::{Commit, Outcome, Peer, Surroundings};
use manycore_core::stm::layout::{
    PARTICIPANT_WORDS, PARTICIPANTS_AT, Shape, counter, participant, word,
};
use manycore_core::stm::snapshot::Reading;
use manycore_core::stm::space::{Participant, Space, is_newer};
use manycore_core::sync::AtomicU32;
use std::collections::HashMap;

const SHAPE: Shape =
    Shape { size_words: 2048, participants: 3, small_writes: 4, large_writes: 4, watch_words: 1 };
const CELLS: u32 = 2;

/// The words that a model uses, and no others: each costs loom time.
struct Words(HashMap<usize, AtomicU32>);

impl Words {
    fn new() -> Words {
        let mut used: Vec<u32> = (0..5).collect();
        used.extend([word::CLOCK, word::EPOCH, word::HEAP_TOP, word::SERIAL, word::NUMBERS]);
        used.push(SHAPE.watch_at());
        for number in 0..SHAPE.participants {
            let first = PARTICIPANTS_AT + number * PARTICIPANT_WORDS;
            let fields = [
                participant::STATE,
                participant::LIFE,
                participant::STATUS,
                participant::VERSION,
                participant::LOCK_COUNT,
                participant::WRITE_COUNT,
                participant::LOG_AT,
                participant::CLAIMANT,
                participant::WAKE,
                participant::BELL,
                participant::BELL_OF,
                participant::EPOCH,
                participant::TAKEN_COUNT,
            ];
            used.extend(fields.map(|field| first + field));
            let counters = first + participant::COUNTERS;
            used.extend(counters..counters + counter::COUNT);
            let log = SHAPE.small_log(number);
            used.extend((0..2).map(|at| log.lock(at)));
            used.extend((0..4).map(|at| log.write(0) + at));
        }
        used.extend((0..2 * CELLS).map(|at| SHAPE.chunks_at() + at));
        Words(used.into_iter().map(|at| (at as usize * 4, AtomicU32::new(0))).collect())
    }
}

// SAFETY: a word's place depends on its offset alone; there are no copies.
unsafe impl Region for Words {
    fn size_bytes(&self) -> usize {
        SHAPE.size_words as usize * 4
    }
    fn word(&self, offset: usize) -> &AtomicU32 {
        &self.0[&offset]
    }
    fn copy_in(&self, _offset: usize, _bytes: &[u8]) {
        unreachable!("words alone")
    }
    fn copy_out(&self, _offset: usize, _bytes: &mut [u8]) {
        unreachable!("words alone")
    }
}

/// Nobody ends.
struct Calm;

impl Surroundings for Calm {
    fn wait(&self, _tries: u32, _on: Peer) -> Result<bool> {
        thread::yield_now();
        Ok(false)
    }
}

fn cell(number: u32) -> (u32, u32) {
    let lock = SHAPE.chunks_at() + 2 * number;
    (lock, lock + 1)
}

fn read_all(
    space: &Space<Words>,
    me: Participant,
    commit: &mut Commit,
) -> Option<[u32; CELLS as usize]> {
    commit.restart(space.now().unwrap());
    let mut values = [0; CELLS as usize];
    for (number, value) in (0..).zip(&mut values) {
        let (lock, at) = cell(number);
        loop {
            match space.read_once(lock, at).unwrap() {
                Reading::Seen { version, .. } if is_newer(version, commit.snapshot) => {
                    commit.snapshot = space.extend(&commit.reads, commit.snapshot).unwrap()?;
                }
                Reading::Seen { value: seen, .. } => {
                    *value = seen;
                    break;
                }
                Reading::Held(_) => space.await_lock(me, lock, &Calm).unwrap(),
                Reading::Changed => thread::yield_now(),
            }
        }
        commit.reads.push(lock);
    }
    Some(values)
}

/// Adds to the first cell and takes from the second.
fn transfer(space: &Space<Words>, me: Participant, by: u32) {
    let mut commit = Commit::default();
    loop {
        let Some(values) = read_all(space, me, &mut commit) else { continue };
        assert_eq!(values[0].wrapping_add(values[1]), 0, "a torn snapshot");
        for (number, value) in [(0, values[0].wrapping_add(by)), (1, values[1].wrapping_sub(by))] {
            let (lock, at) = cell(number);
            commit.locks.push(lock);
            commit.writes.push((at, value));
        }
        if let Outcome::Committed(_) = space.commit(me, &mut commit, &Calm).unwrap() {
            return;
        }
    }
}

fn model(body: impl Fn(Arc<Space<Words>>) + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(move || body(Arc::new(Space::open(Words::new(), SHAPE, 1).unwrap())));
}

#[test]
fn a_reader_beside_a_commit_sees_all_of_it_or_nothing() {
    model(|space| {
        let shared = Arc::clone(&space);
        let writer = thread::spawn(move || transfer(&shared, Participant(0), 1));
        let mut commit = Commit::default();
        let values = read_all(&space, Participant(1), &mut commit);
        assert!(matches!(values, None | Some([0, 0] | [1, u32::MAX])), "{values:?}");
        writer.join().unwrap();
    });
}

#[test]
fn two_commits_lose_nothing() {
    model(|space| {
        let shared = Arc::clone(&space);
        let other = thread::spawn(move || transfer(&shared, Participant(0), 1));
        transfer(&space, Participant(1), 2);
        other.join().unwrap();
        let values = read_all(&space, Participant(2), &mut Commit::default());
        assert_eq!(values, Some([3, 0u32.wrapping_sub(3)]));
    });
}

/// The second participant has ended behind the commit point; two others meet its locks.
#[test]
fn two_that_complete_a_commit_complete_it_once() {
    struct Ended;
    impl Surroundings for Ended {
        fn pass(&self, step: u8) -> Result<()> {
            let ended = manycore_core::CoreError::Unsupported { what: "life any more" };
            if step == 8 { Err(ended) } else { Ok(()) }
        }
        fn has_ended(&self) -> bool {
            true
        }
        fn wait(&self, _tries: u32, _on: Peer) -> Result<bool> {
            unreachable!("nobody is in its way")
        }
    }
    struct Others;
    impl Surroundings for Others {
        fn wait(&self, _tries: u32, on: Peer) -> Result<bool> {
            thread::yield_now();
            Ok(on.number == Participant(1))
        }
    }
    model(|space| {
        let mut commit = Commit::default();
        commit.restart(space.now().unwrap());
        for (number, value) in [(0, 5), (1, 0u32.wrapping_sub(5))] {
            let (lock, at) = cell(number);
            commit.locks.push(lock);
            commit.writes.push((at, value));
        }
        assert!(space.commit(Participant(1), &mut commit, &Ended).is_err());
        let shared = Arc::clone(&space);
        let other = thread::spawn(move || {
            let (lock, _) = cell(1);
            shared.await_lock(Participant(0), lock, &Others).unwrap();
        });
        let (lock, _) = cell(0);
        space.await_lock(Participant(2), lock, &Others).unwrap();
        other.join().unwrap();
        let values = read_all(&space, Participant(2), &mut Commit::default());
        assert_eq!(values, Some([5, 0u32.wrapping_sub(5)]));
    });
}

/// A sleeper that checks once more after it has set its bit, beside a commit: it sees the change, or is woken.
#[test]
fn a_change_is_seen_or_wakes_the_sleeper() {
    model(|space| {
        space.word(word::NUMBERS).unwrap().store(2, loom::sync::atomic::Ordering::Relaxed);
        let shared = Arc::clone(&space);
        let writer = thread::spawn(move || transfer(&shared, Participant(0), 1));
        let me = Participant(1);
        let (lock, _) = cell(1);
        let is_unchanged = space.watch(me, &[lock], 0).unwrap();
        writer.join().unwrap();
        let is_woken = space.take_wake(me).unwrap();
        assert!(!is_unchanged || is_woken, "the sleeper sleeps on");
    });
}
