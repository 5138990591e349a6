//! Commits of several participants, in one thread and in many; each may end at any step.

use super::super::commit::{Commit, Outcome, Peer, Surroundings};
use super::super::contention::MAX_CONFLICTS;
use super::super::layout::{counter, word};
use super::super::snapshot::Reading;
use super::super::space::{Participant, Space, is_newer};
use super::super::value;
use super::{CELLS, Calm, ENDED, SHAPE, Words, World, cell, space};
use crate::error::Result;
use crate::region::Region;
use crate::sync::Ordering::Relaxed;

/// Reads all cells at one moment, extending the snapshot; `None`: a conflict.
fn read_all<R: Region>(
    space: &Space<R>,
    commit: &mut Commit,
    wait: impl Fn(u32) -> Result<()>,
) -> Result<Option<[u32; CELLS as usize]>> {
    commit.restart(space.now()?);
    let mut values = [0; CELLS as usize];
    for (number, value) in (0..).zip(&mut values) {
        let (lock, at) = cell(number);
        loop {
            match space.read_once(lock, at)? {
                Reading::Seen { value: seen, version } => {
                    if is_newer(version, commit.snapshot) {
                        let Some(now) = space.extend(&commit.reads, commit.snapshot)? else {
                            return Ok(None);
                        };
                        commit.snapshot = now;
                        continue;
                    }
                    *value = seen;
                    break;
                }
                Reading::Held(_) => wait(lock)?,
                Reading::Changed => {}
            }
        }
        commit.reads.push(lock);
    }
    Ok(Some(values))
}

/// Moves 1 from one cell to another, as often as it must be tried.
fn transfer<R: Region>(
    space: &Space<R>,
    me: Participant,
    [from, to]: [u32; 2],
    around: &impl Surroundings,
) -> Result<()> {
    let mut commit = Commit::default();
    loop {
        let held = |lock: u32| space.await_lock(me, lock, around);
        let Some(values) = read_all(space, &mut commit, held)? else { continue };
        assert_eq!(values.iter().copied().fold(0, u32::wrapping_add), 0, "a torn snapshot");
        for (number, by) in [(from, u32::MAX), (to, 1)] {
            let (lock, at) = cell(number);
            commit.locks.push(lock);
            commit.writes.push((at, values[number as usize].wrapping_add(by)));
        }
        if matches!(space.commit(me, &mut commit, around)?, Outcome::Committed(_)) {
            return Ok(());
        }
    }
}

fn recover(space: &Space<Words>, me: Participant, dead: Participant, world: &World) {
    let life = space.life(dead).expect("inside");
    space.recover(me, Peer { number: dead, life }, world).expect("sound");
}

fn values_of(space: &Space<Words>) -> [u32; CELLS as usize] {
    let wait = |lock| panic!("the lock {lock} was left behind");
    read_all(space, &mut Commit::default(), wait).expect("sound").expect("nobody else")
}

#[test]
fn writes_are_there_together_and_a_conflict_has_no_effect() {
    let space = space();
    let (one, other) = (Participant(0), Participant(1));
    let mut slow = Commit::default();
    let values = read_all(&space, &mut slow, |_| Ok(())).expect("sound").expect("nobody else");
    transfer(&space, other, [0, 1], &Calm).expect("sound");
    let (lock, at) = cell(2);
    slow.locks.push(lock);
    slow.writes.push((at, values[2] + 7));
    assert_eq!(space.commit(one, &mut slow, &Calm).expect("sound"), Outcome::Conflict);
    assert_eq!(values_of(&space), [u32::MAX, 1, 0, 0]);
}

#[test]
fn threads_never_see_a_torn_moment_and_lose_nothing() {
    let space = space();
    let rounds = 5_000;
    std::thread::scope(|scope| {
        for number in 0..4 {
            let space = &space;
            scope.spawn(move || {
                for round in 0..rounds {
                    let from = (number + round) % CELLS;
                    let places = [from, (from + 1 + round % (CELLS - 1)) % CELLS];
                    transfer(space, Participant(number), places, &Calm).expect("sound");
                }
            });
        }
    });
    assert_eq!(values_of(&space).iter().copied().fold(0, u32::wrapping_add), 0);
}

#[test]
fn a_commit_whose_owner_ends_at_any_step_counts_whole_or_not_at_all() {
    for step in 1..=10 {
        let space = space();
        let (dead, other) = (Participant(3), Participant(1));
        let world = World::default();
        world.end_at.set(Some((step, 0)));
        assert_eq!(transfer(&space, dead, [0, 1], &world), Err(ENDED), "step {step}");
        world.end_at.set(None);
        world.dead.lock().expect("no panic").push(dead);
        transfer(&space, other, [1, 2], &world).expect("sound");
        transfer(&space, other, [0, 2], &world).expect("sound");
        recover(&space, other, dead, &world);
        let moved = u32::from(step > 6);
        let wanted = [0u32.wrapping_sub(moved + 1), moved.wrapping_sub(1), 2, 0];
        assert_eq!(values_of(&space), wanted, "step {step}");
    }
}

#[test]
fn values_are_not_written_again_once_the_first_lock_is_released() {
    let space = space();
    let (dead, other) = (Participant(3), Participant(1));
    let world = World::default();
    world.end_at.set(Some((8, 1)));
    assert_eq!(transfer(&space, dead, [0, 1], &world), Err(ENDED));
    world.end_at.set(None);
    world.dead.lock().expect("no panic").push(dead);
    let mut blind = Commit::default();
    blind.restart(space.now().expect("sound"));
    let (lock, at) = cell(0);
    blind.locks.push(lock);
    blind.writes.push((at, 9));
    assert!(matches!(space.commit(other, &mut blind, &world), Ok(Outcome::Committed(_))));
    recover(&space, other, dead, &world);
    assert_eq!(values_of(&space), [9, 1, 0, 0]);
}

#[test]
fn a_repair_whose_maker_ends_at_any_step_is_made_again() {
    for repair in 16..=19 {
        let space = space();
        let (dead, also_dead, other) = (Participant(3), Participant(2), Participant(1));
        let world = World::default();
        world.end_at.set(Some((8, 0)));
        assert_eq!(transfer(&space, dead, [0, 1], &world), Err(ENDED));
        world.dead.lock().expect("no panic").push(dead);
        world.end_at.set(Some((repair, 0)));
        assert_eq!(transfer(&space, also_dead, [0, 1], &world), Err(ENDED), "repair {repair}");
        world.end_at.set(None);
        world.dead.lock().expect("no panic").push(also_dead);
        transfer(&space, other, [0, 1], &world).expect("sound");
        assert_eq!(values_of(&space), [u32::MAX - 1, 2, 0, 0], "repair {repair}");
    }
}

#[test]
fn versions_wrap() {
    let space = space();
    space.word(word::CLOCK).expect("inside").store(u32::MAX - 9, Relaxed);
    for number in 0..CELLS {
        let (lock, _) = cell(number);
        space.lock(lock).expect("inside").store(u32::MAX - 9, Relaxed);
    }
    for _ in 0..20 {
        transfer(&space, Participant(0), [0, 1], &Calm).expect("sound");
    }
    assert_eq!(values_of(&space), [0u32.wrapping_sub(20), 20, 0, 0]);
}

#[test]
fn forged_words_are_errors() {
    let space = space();
    for at in [0, SHAPE.heap_at() - 1, SHAPE.size_words, u32::MAX] {
        assert_eq!(space.read_once(at, at).expect_err("forged").code(), "SEGMENT_CORRUPT", "{at}");
    }
    let mut commit = Commit::default();
    commit.locks.push(u32::MAX);
    commit.writes.push((u32::MAX, 1));
    let refused = space.commit(Participant(0), &mut commit, &Calm).expect_err("forged");
    assert_eq!(refused.code(), "SEGMENT_CORRUPT");
    assert!(space.commit(Participant(99), &mut commit, &Calm).is_err());
}

#[test]
fn a_lock_with_the_number_of_nobody_is_an_error() {
    let space = space();
    let world = World::default();
    let forged = Participant(5);
    world.dead.lock().expect("no panic").push(forged);
    let (lock, at) = cell(1);
    space.lock(lock).expect("inside").store(forged.lock(), Relaxed);
    let refused = space.await_lock(Participant(0), lock, &world).expect_err("forged");
    assert_eq!(refused.code(), "SEGMENT_CORRUPT");
    let mut commit = Commit::default();
    commit.locks.push(lock);
    commit.writes.push((at, 1));
    let refused = space.commit(Participant(0), &mut commit, &world).expect_err("forged");
    assert_eq!(refused.code(), "SEGMENT_CORRUPT");
    // Other objects are as they were, for this thread as well.
    let mut commit = Commit::default();
    commit.restart(space.now().expect("sound"));
    commit.locks.push(cell(2).0);
    commit.writes.push((cell(2).1, 3));
    let outcome = space.commit(Participant(0), &mut commit, &world).expect("sound");
    assert!(matches!(outcome, Outcome::Committed(_)));
}

#[test]
fn figures_are_those_of_all_participants() {
    let space = space();
    let world = World::default();
    let attach = |state| space.attach(state, |_| true, &world).expect("a free number");
    let (one, other) = (attach(1), attach(2));
    for me in [one, other, other] {
        transfer(&space, me, [0, 1], &world).expect("commits");
    }
    // A snapshot that another commit has made old.
    let mut stale = Commit::default();
    let read = read_all(&space, &mut stale, |_| Ok(())).expect("sound");
    assert!(read.is_some());
    transfer(&space, one, [1, 2], &world).expect("commits");
    stale.locks.push(cell(1).0);
    stale.writes.push((cell(1).1, 7));
    let outcome = space.commit(other, &mut stale, &world).expect("sound");
    assert!(matches!(outcome, Outcome::Conflict));
    let figures = space.figures().expect("sound");
    assert_eq!(figures.participants, 2);
    assert_eq!(figures.counts[counter::COMMITS as usize], 4);
    assert_eq!(figures.counts[counter::CONFLICTS as usize], 1);
    assert_eq!(figures.heap_words, 0);
    let taken = space.take(one, 64, &world).expect("memory");
    assert!(taken > 0 && space.figures().expect("sound").heap_words > 0);
}

/// A conflict of `me` about the cell `number`, which `other` changes.
fn conflict(space: &Space<Words>, me: Participant, other: Participant, number: u32) {
    let mut stale = Commit::default();
    let (lock, at) = cell(number);
    stale.restart(space.now().expect("sound"));
    stale.reads.push(lock);
    let next = (number + 1) % CELLS;
    transfer(space, other, [number, next], &Calm).expect("commits");
    stale.locks.push(cell(next).0);
    stale.writes.push((at, 7));
    let outcome = space.commit(me, &mut stale, &Calm).expect("sound");
    assert!(matches!(outcome, Outcome::Conflict));
}

#[test]
fn what_is_fought_over_is_found_among_other_conflicts() {
    let space = space();
    let (one, other) = (Participant(0), Participant(1));
    assert_eq!(space.contended().expect("sound"), []);
    for round in 0..3 * MAX_CONFLICTS {
        conflict(&space, one, other, if round % 3 == 0 { round % CELLS } else { 2 });
    }
    let most = |space: &Space<Words>| {
        let found = space.contended().expect("sound");
        found.into_iter().max_by_key(|each| each.conflicts).expect("there were conflicts")
    };
    assert_eq!(most(&space).object, cell(2).0);
    // The next one comes first after some thousands of its own, and not after a day of them.
    for _ in 0..3 * MAX_CONFLICTS {
        conflict(&space, one, other, 0);
    }
    assert_eq!(most(&space).object, cell(0).0);
    assert!(most(&space).conflicts <= MAX_CONFLICTS);
}

/// Lets another participant steal the locks of a commit once it has them, and write something else.
struct Theft<'space> {
    space: &'space Space<Words>,
    thief: Participant,
    lock: u32,
    writes: [(u32, u32); 2],
}

impl Surroundings for Theft<'_> {
    fn pass(&self, step: u8) -> Result<()> {
        if step == 3 {
            let mut commit = Commit::default();
            commit.restart(self.space.now()?);
            commit.locks.push(self.lock);
            commit.writes.extend(self.writes);
            let outcome = self.space.commit(self.thief, &mut commit, &Calm)?;
            assert!(matches!(outcome, Outcome::Committed(_)));
        }
        Ok(())
    }

    fn wait(&self, tries: u32, on: Peer) -> Result<bool> {
        Calm.wait(tries, on)
    }
}

#[test]
fn a_commit_whose_locks_were_stolen_is_a_conflict_whatever_it_reads_then() {
    let space = space();
    let [me, thief] = [1, 2].map(|owner| space.attach(owner, |_| true, &Calm).expect("room"));
    space.enter(me).expect("sound");
    let (lock, at) = cell(0);
    // A half of what the thief writes: bytes, and not yet where.
    let theft = Theft { space: &space, thief, lock, writes: [(at, value::BYTES), (at + 1, 0)] };
    let mut commit = Commit::default();
    commit.restart(space.now().expect("sound"));
    commit.locks.push(lock);
    commit.replaced.push(at);
    commit.writes.push((at, 5));
    let outcome = space.commit(me, &mut commit, &theft).expect("a conflict is no error");
    assert!(matches!(outcome, Outcome::Conflict));
    // Without a theft the same words are damage.
    commit.restart(space.now().expect("sound"));
    commit.locks.push(lock);
    commit.replaced.push(at);
    commit.writes.push((at, 5));
    assert!(space.commit(me, &mut commit, &Calm).is_err());
}
