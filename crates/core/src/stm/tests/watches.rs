//! Sleepers and the commits that wake them, and threads with their numbers.

use super::super::commit::{Commit, Outcome, Peer, Surroundings};
use super::super::layout::{participant as field, word};
use super::super::live::{is_alive, thread_of, thread_state};
use super::super::space::{Claim, Participant};
use super::{Calm, SHAPE, World, cell, space};
use crate::error::Result;
use crate::sync::AtomicU32;
use crate::sync::Ordering::Relaxed;
use std::cell::Cell;

#[test]
fn a_commit_wakes_those_that_watch_what_it_changes() {
    let space = space();
    let [sleeper, writer] = [Participant(5), Participant(1)];
    space.word(word::NUMBERS).expect("inside").store(SHAPE.participants, Relaxed);
    let (lock, at) = cell(1);
    let snapshot = space.now().expect("sound");
    assert!(space.watch(sleeper, &[cell(0).0, lock], snapshot).expect("sound"));
    assert!(!space.take_wake(sleeper).expect("sound"));
    let mut commit = Commit::default();
    commit.restart(snapshot);
    commit.locks.push(lock);
    commit.writes.push((at, 3));
    let outcome = space.commit(writer, &mut commit, &Calm).expect("sound");
    assert!(matches!(outcome, Outcome::Committed(_)));
    assert!(space.take_wake(sleeper).expect("sound"));
    assert!(!space.take_wake(sleeper).expect("sound"), "once");
    assert!(!space.watch(sleeper, &[lock], snapshot).expect("sound"), "changed since");
}

/// Surroundings that count the rings of bells.
#[derive(Default)]
struct Bells(Cell<u32>);

impl Surroundings for Bells {
    fn wait(&self, _tries: u32, on: Peer) -> Result<bool> {
        unreachable!("{on:?} is not waited for")
    }

    fn ring(&self, _bell: &AtomicU32) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn the_end_of_a_thread_rings_each_process_once_and_counts_as_an_end() {
    let space = space();
    for state in 100..105 {
        space.attach(state, |_| true, &Calm).expect("room");
    }
    // Numbers 0 and 1 sleep by the bell of 2; 4 has left.
    for sleeper in [0, 1] {
        space.of(Participant(sleeper), field::BELL_OF).expect("inside").store(2, Relaxed);
    }
    space.detach(Participant(4)).expect("sound");
    let bells = Bells::default();
    let ends = space.word(word::ENDS).expect("inside").load(Relaxed);
    space.note_end(&bells).expect("sound");
    assert_eq!(bells.0.get(), 2, "those of 2 and 3");
    assert_eq!(space.of(Participant(2), field::BELL).expect("inside").load(Relaxed), 1);
    assert_eq!(space.word(word::ENDS).expect("inside").load(Relaxed), ends + 1);
}

#[test]
fn the_own_thread_is_alive_and_one_that_ended_is_not() {
    assert!(!is_alive(0), "nobody");
    let own = crate::sys::thread_id() as u32;
    let state = thread_state(own).expect("it runs");
    assert!(is_alive(state));
    assert_eq!(thread_of(state), own);
    // The one thing that can be said of a thread that the system hides.
    assert!(crate::sys::is_thread(own) && !crate::sys::is_thread(u32::MAX));
    let ended = std::thread::spawn(|| thread_state(crate::sys::thread_id() as u32));
    let ended = ended.join().expect("no panic").expect("it ran");
    while is_alive(ended) {
        std::thread::yield_now();
    }
}

#[test]
fn numbers_go_to_threads_until_none_is_left_and_those_of_ended_ones_again() {
    let space = space();
    let attach = |state: u32, ended: u32| {
        space.attach(state, move |found| found != ended, &World::default())
    };
    for number in 0..SHAPE.participants {
        assert_eq!(attach(100 + number, 0).expect("room"), Participant(number));
    }
    assert_eq!(attach(99, 0).expect_err("full").code(), "STM_CROWDED");
    let before = space.claim_of(Participant(3)).expect("inside");
    assert_eq!(attach(99, 103).expect("one has ended"), Participant(3));
    let life = space.life(Participant(3)).expect("inside");
    assert_eq!(life.state, 99);
    assert!(!before.is_of(life), "a claim ends with its holder");
    space.detach(Participant(6)).expect("sound");
    assert_eq!(attach(98, 0).expect("one has left"), Participant(6));
    assert_eq!(Claim(0).holder(), None);
    assert_eq!(space.claim_of(Participant(6)).expect("inside").holder(), Some(Participant(6)));
}

#[test]
fn a_claim_of_a_thread_that_ended_holds_nobody_up() {
    let space = space();
    let [dead, other] = [Participant(2), Participant(4)];
    let claim = space.claim_of(dead).expect("inside");
    space.word(word::SERIAL).expect("inside").store(claim.0, Relaxed);
    space.of(dead, field::LIFE).expect("inside").fetch_add(1, Relaxed);
    let mut commit = Commit::default();
    let (lock, at) = cell(0);
    commit.locks.push(lock);
    commit.writes.push((at, 3));
    let outcome = space.commit(other, &mut commit, &Calm).expect("sound");
    assert!(matches!(outcome, Outcome::Committed(_)));
    assert_eq!(space.word(word::SERIAL).expect("inside").load(Relaxed), 0);
}
