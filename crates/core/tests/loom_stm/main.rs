//! Models of the transactional memory: every interleaving, within the bound on preemptions. Each wrong order of
//! steps (`Fault`) has a model that fails with it.
//! Run with `RUSTFLAGS="--cfg loom" cargo test --release -p manycore-core --test loom_stm`.

#![cfg(loom)]

mod words;

use loom::sync::Arc;
use loom::thread;
use manycore_core::error::Result;
use manycore_core::stm::commit::{Commit, Fault, Outcome, Peer, Surroundings};
use manycore_core::stm::layout::{participant, phase, word};
use manycore_core::stm::snapshot::Reading;
use manycore_core::stm::space::{Participant, Space, is_newer};
use manycore_core::sync::Ordering::Relaxed;
use std::cell::RefCell;
use std::sync::atomic::AtomicBool;
use words::{CELLS, SHAPE, Words};

/// Nobody ends; commits may have a fault.
struct Calm {
    fault: Option<Fault>,
}

const CALM: Calm = Calm { fault: None };

impl Surroundings for Calm {
    fn has_fault(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

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
                Reading::Held(_) => space.await_lock(me, lock, &CALM).unwrap(),
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
        add_writes(&mut commit, [values[0].wrapping_add(by), values[1].wrapping_sub(by)]);
        if let Outcome::Committed(_) = space.commit(me, &mut commit, &CALM).unwrap() {
            return;
        }
    }
}

/// Sets both cells, and returns the version.
fn overwrite(space: &Space<Words>, me: Participant, value: u32, around: &impl Surroundings) -> u32 {
    let mut commit = Commit::default();
    loop {
        commit.restart(space.now().unwrap());
        add_writes(&mut commit, [value; CELLS as usize]);
        if let Outcome::Committed(version) = space.commit(me, &mut commit, around).unwrap() {
            return version;
        }
    }
}

fn add_writes(commit: &mut Commit, values: [u32; CELLS as usize]) {
    for (number, value) in (0..).zip(values) {
        let (lock, at) = cell(number);
        commit.locks.push(lock);
        commit.writes.push((at, value));
    }
}

/// The values when all have ended. No lock is taken, nobody is in a commit, and there is no claim.
fn values_at_end(space: &Space<Words>) -> [u32; CELLS as usize] {
    let load = |at: u32| space.word(at).unwrap().load(Relaxed);
    for number in 0..CELLS {
        assert_eq!(load(cell(number).0) & 1, 0, "a lock that stays taken");
    }
    for number in 0..SHAPE.participants {
        let of = |field| space.of(Participant(number), field).unwrap().load(Relaxed);
        assert_eq!(of(participant::STATUS) & phase::MASK, phase::IDLE, "a commit without an end");
        assert_eq!(of(participant::CLAIMANT), 0, "a claim without an end");
    }
    [0, 1].map(|number| load(cell(number).1))
}

fn model(max_preemptions: usize, body: impl Fn(Arc<Space<Words>>) + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(max_preemptions);
    builder.max_branches = 20_000;
    builder.check(move || body(Arc::new(Space::open(Words::new(), SHAPE, 1).unwrap())));
}

#[test]
fn a_reader_beside_a_commit_sees_all_of_it_or_nothing() {
    model(2, |space| {
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
    model(2, |space| {
        let shared = Arc::clone(&space);
        let other = thread::spawn(move || transfer(&shared, Participant(0), 1));
        transfer(&space, Participant(1), 2);
        other.join().unwrap();
        assert_eq!(values_at_end(&space), [3, 0u32.wrapping_sub(3)]);
    });
}

/// Three threads: one preemption is what takes seconds, not minutes.
#[test]
fn a_reader_beside_two_commits_sees_one_of_them_whole() {
    model(1, |space| {
        let writers = [0, 1].map(|number| {
            let shared = Arc::clone(&space);
            thread::spawn(move || overwrite(&shared, Participant(number), number + 1, &CALM))
        });
        let values = read_all(&space, Participant(2), &mut Commit::default());
        assert!(matches!(values, None | Some([0, 0] | [1, 1] | [2, 2])), "{values:?}");
        let [first, second] = writers.map(|writer| writer.join().unwrap());
        let last = if is_newer(second, first) { 2 } else { 1 };
        assert_eq!(values_at_end(&space), [last, last], "the values of the last version");
    });
}

/// Participant 0. Participant 2 aborts its first commit and does nothing more; the thief that starts then gives the
/// locks back.
struct Owner<T> {
    calm: Calm,
    space: Arc<Space<Words>>,
    thief: fn(&Space<Words>, Participant) -> T,
    started: RefCell<Option<thread::JoinHandle<T>>>,
}

impl<T: 'static> Surroundings for Owner<T> {
    fn has_fault(&self, fault: Fault) -> bool {
        self.calm.has_fault(fault)
    }

    fn pass(&self, step: u8) -> Result<()> {
        let mut started = self.started.borrow_mut();
        if step == 6 && started.is_none() {
            let status = self.space.of(Participant(0), participant::STATUS)?;
            status.store(status.load(Relaxed) | phase::ABORTED, Relaxed);
            let (shared, thief) = (Arc::clone(&self.space), self.thief);
            *started = Some(thread::spawn(move || thief(&shared, Participant(1))));
        }
        if step == 7 {
            for number in 0..CELLS {
                let lock = self.space.lock(cell(number).0)?.load(Relaxed);
                assert_eq!(lock, Participant(0).lock(), "a lock that was given back");
            }
        }
        Ok(())
    }

    fn wait(&self, tries: u32, on: Peer) -> Result<bool> {
        self.calm.wait(tries, on)
    }
}

/// The owner commits again, with the same log, while the thief may give back the locks of the aborted commit.
/// Returns the version of the owner, and the result of the thief.
fn commit_beside<T: 'static>(
    space: &Arc<Space<Words>>,
    fault: Option<Fault>,
    thief: fn(&Space<Words>, Participant) -> T,
) -> (u32, T) {
    let calm = Calm { fault };
    let owner = Owner { calm, space: Arc::clone(space), thief, started: RefCell::new(None) };
    let version = overwrite(space, Participant(0), 1, &owner);
    let started = owner.started.take();
    (version, started.expect("the first commit was aborted").join().unwrap())
}

#[test]
fn an_owner_whose_commit_was_aborted_and_a_thief_lose_nothing() {
    model(2, |space| {
        let thief = |space: &Space<Words>, me| overwrite(space, me, 2, &CALM);
        let (own, other) = commit_beside(&space, None, thief);
        let last = if is_newer(other, own) { 2 } else { 1 };
        assert_eq!(values_at_end(&space), [last, last], "the values of the last version");
    });
}

fn an_owner_and_a_thief_that_reads(fault: Option<Fault>) {
    model(3, move |space| {
        let thief = |space: &Space<Words>, me| {
            space.await_lock(me, cell(0).0, &CALM).unwrap();
        };
        commit_beside(&space, fault, thief);
        assert_eq!(values_at_end(&space), [1, 1]);
    });
}

#[test]
fn a_thief_gives_back_no_lock_of_the_next_commit() {
    an_owner_and_a_thief_that_reads(None);
}

#[test]
#[should_panic(expected = "a lock that was given back")]
fn a_commit_that_is_idle_only_after_the_wait_is_found() {
    an_owner_and_a_thief_that_reads(Some(Fault::IdleAfterWait));
}

/// Participant 1 ends before each access to memory of its commit. Two others recover it, one of them when it has met
/// a lock.
fn two_that_recover_a_commit(fault: Option<Fault>) {
    struct Others;
    impl Surroundings for Others {
        fn wait(&self, _tries: u32, on: Peer) -> Result<bool> {
            thread::yield_now();
            Ok(on.number == Participant(1))
        }
    }
    let dead = Participant(1);
    let has_ended = std::sync::Arc::new(AtomicBool::new(true));
    for accesses in 0.. {
        let ends = std::sync::Arc::clone(&has_ended);
        model(2, move |space| {
            let calm = Calm { fault };
            let commits = || {
                overwrite(&space, dead, 5, &calm);
            };
            ends.store(!space.region().runs_whole(accesses, commits), Relaxed);
            let peer = Peer { number: dead, life: space.life(dead).unwrap() };
            let shared = Arc::clone(&space);
            let other = thread::spawn(move || {
                shared.await_lock(Participant(0), cell(1).0, &Others).unwrap();
                shared.recover(Participant(0), peer, &Others).unwrap();
            });
            space.recover(Participant(2), peer, &Others).unwrap();
            other.join().unwrap();
            assert!(matches!(values_at_end(&space), [0, 0] | [5, 5]), "a half-made write");
        });
        if !has_ended.load(Relaxed) {
            break;
        }
    }
}

#[test]
fn two_that_recover_a_commit_undo_or_complete_it_whole() {
    two_that_recover_a_commit(None);
}

#[test]
#[should_panic(expected = "a lock that stays taken")]
fn a_lock_that_is_logged_after_it_was_taken_is_found() {
    two_that_recover_a_commit(Some(Fault::LogAfterLock));
}

/// Waits after which the sleeper counts as asleep for ever. Each wait runs the writer for some steps.
const MAX_WAITS: u32 = 100;

/// A sleeper reads again after each wake-up, until it reads what a commit wrote.
fn a_sleeper_and_a_waker(fault: Option<Fault>) {
    model(2, move |space| {
        space.word(word::NUMBERS).unwrap().store(2, Relaxed);
        let calm = Calm { fault };
        let shared = Arc::clone(&space);
        let writer = thread::spawn(move || overwrite(&shared, Participant(0), 1, &calm));
        let me = Participant(1);
        let mut commit = Commit::default();
        while read_all(&space, me, &mut commit).is_none_or(|values| values[1] == 0) {
            if space.watch(me, &[cell(1).0], commit.snapshot).unwrap() {
                let mut waits = 0;
                while !space.take_wake(me).unwrap() {
                    assert!(waits < MAX_WAITS, "the sleeper sleeps on");
                    waits += 1;
                    thread::yield_now();
                }
            }
        }
        writer.join().unwrap();
    });
}

#[test]
fn a_sleeper_is_woken_and_reads_the_change() {
    a_sleeper_and_a_waker(None);
}

#[test]
#[should_panic(expected = "the sleeper sleeps on")]
fn a_commit_that_wakes_before_it_locks_is_found() {
    a_sleeper_and_a_waker(Some(Fault::WakeBeforeLock));
}
