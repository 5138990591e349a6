//! Blocks: taken, given back, retired, and those of participants that end.

use super::super::commit::{Commit, Outcome, Peer, Surroundings};
use super::super::layout::{
    CHUNK_WORDS, CLASS_WORDS, CLASSES, HEADER_WORDS, LIMBOS, participant as field, word,
};
use super::super::space::{Participant, Space};
use super::{Calm, ENDED, SHAPE, Words, World, cell, space};
use crate::sync::Ordering::Relaxed;
use std::collections::HashSet;

const ME: Participant = Participant(0);
const OTHER: Participant = Participant(1);
const THIRD: Participant = Participant(2);

/// All blocks of a list, each once.
fn blocks_of(space: &Space<Words>, mut block: u32, seen: &mut HashSet<u32>) -> u32 {
    let mut count = 0;
    while block != 0 {
        assert!(seen.insert(block), "{block} is in two lists");
        count += 1;
        block = space.word(block - HEADER_WORDS).expect("inside").load(Relaxed);
    }
    count
}

fn first(space: &Space<Words>, of: Participant, list: u32) -> u32 {
    space.of(of, list).expect("inside").load(Relaxed)
}

/// Blocks in all lists, and in the logs.
fn free_blocks(space: &Space<Words>) -> u32 {
    let mut seen = HashSet::new();
    let mut count = 0;
    for number in 0..SHAPE.participants {
        let of = Participant(number);
        for class in 0..CLASSES {
            count += blocks_of(space, first(space, of, field::FREE + class), &mut seen);
        }
        for limbo in 0..LIMBOS {
            count += blocks_of(space, first(space, of, field::LIMBO + limbo), &mut seen);
        }
        let log = space.log(of).expect("inside");
        for taken in 0..first(space, of, field::TAKEN_COUNT) {
            let block = space.word(log.taken(taken)).expect("inside").load(Relaxed);
            assert!(seen.insert(block), "{block} is taken and free");
            count += 1;
        }
    }
    for class in 0..CLASSES {
        let list = space.word(SHAPE.shared_list(class) + 1).expect("inside");
        let mut batch = list.load(Relaxed);
        while batch != 0 {
            count += blocks_of(space, batch, &mut seen);
            batch = space.word(batch).expect("inside").load(Relaxed);
        }
    }
    count
}

/// Commits a write of a cell, with what `fill` adds.
fn commit(
    space: &Space<Words>,
    me: Participant,
    around: &impl Surroundings,
    fill: impl Fn(&mut Commit),
) {
    let mut commit = Commit::default();
    commit.restart(space.now().expect("sound"));
    let (lock, at) = cell(me.0);
    commit.locks.push(lock);
    commit.writes.push((at, 1));
    commit.keeps_taken = true;
    fill(&mut commit);
    let outcome = space.commit(me, &mut commit, around);
    if around.has_ended() {
        assert_eq!(outcome, Err(ENDED));
    } else {
        assert!(matches!(outcome, Ok(Outcome::Committed(_))), "{outcome:?}");
    }
}

fn recover(space: &Space<Words>, dead: Participant, around: &impl Surroundings) -> bool {
    recover_by(space, OTHER, dead, around)
}

fn recover_by(
    space: &Space<Words>,
    me: Participant,
    dead: Participant,
    around: &impl Surroundings,
) -> bool {
    let life = space.life(dead).expect("inside");
    space.recover(me, Peer { number: dead, life }, around).is_ok()
}

#[test]
fn a_block_fits_what_it_is_taken_for_and_has_no_neighbour_in_it() {
    let space = space();
    let mut ends: Vec<(u32, u32)> = Vec::new();
    for class in CLASS_WORDS.iter().filter(|&&words| words <= 8192) {
        for words in [class - HEADER_WORDS, class - HEADER_WORDS - 1] {
            let block = space.take(ME, words, &Calm).expect("room");
            ends.push((block - HEADER_WORDS, block + words));
        }
    }
    ends.sort_unstable();
    assert!(ends.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{ends:?}");
    let largest = *CLASS_WORDS.last().expect("some");
    assert_eq!(space.take(ME, largest, &Calm).expect_err("too large").code(), "SHARED_MEMORY_FULL");
}

#[test]
fn a_block_is_kept_for_a_reader_of_the_epoch_behind_that_of_its_committer() {
    let space = space();
    space.word(word::NUMBERS).expect("inside").store(2, Relaxed);
    let block = space.take(ME, 4, &Calm).expect("room");
    space.enter(ME).expect("sound");
    commit(&space, ME, &Calm, |_| {});
    space.advance().expect("sound");
    space.enter(OTHER).expect("sound");
    commit(&space, ME, &Calm, |commit| space.free_object(block, commit).expect("sound"));
    space.leave(ME).expect("sound");
    let reclaim = || {
        for _ in 0..4 {
            space.reclaim(ME, &mut 0, &World::default()).expect("sound");
        }
    };
    reclaim();
    let is_taken = || (0..40).any(|_| space.take(ME, 4, &Calm).expect("room") == block);
    assert!(!is_taken());
    space.leave(OTHER).expect("sound");
    reclaim();
    assert!(is_taken());
}

#[test]
fn a_full_heap_is_an_error_without_an_effect() {
    let space = space();
    let mut blocks = 0;
    let error = loop {
        match space.take(ME, 8000, &Calm) {
            Ok(_) => blocks += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error.code(), "SHARED_MEMORY_FULL");
    assert!(blocks > 10);
    space.give_taken_back(ME, 0).expect("sound");
    assert_eq!(free_blocks(&space), blocks + blocks % 2);
    assert!(space.take(ME, 8000, &Calm).is_ok());
}

#[test]
fn large_blocks_of_a_full_heap_are_divided_into_small_ones() {
    let space = space();
    while space.take(ME, 8000, &Calm).is_ok() {}
    assert!(space.take(ME, 4, &Calm).is_err());
    space.give_taken_back(ME, 0).expect("sound");
    let mut taken = Vec::new();
    // Blocks of 8 words each: a tenth of the space fits at least.
    while taken.len() < (SHAPE.size_words / 80) as usize {
        let block = space.take(ME, 4, &Calm).expect("room in what was given back");
        taken.push(block);
        if taken.len() % 1000 == 0 {
            let count = space.of(ME, field::TAKEN_COUNT).expect("inside");
            count.store(0, Relaxed); // they are in use
        }
    }
    taken.sort_unstable();
    assert!(taken.windows(2).all(|pair| pair[1] - pair[0] >= 8), "two blocks overlap");
    assert!(space.take(ME, 8000, &Calm).is_ok(), "the other large blocks are as they were");
}

#[test]
fn what_a_transaction_took_and_did_not_commit_is_free_again() {
    let space = space();
    for _ in 0..100 {
        space.take(ME, 4, &Calm).expect("room");
    }
    let all = free_blocks(&space);
    assert_eq!(all, CHUNK_WORDS / 8);
    space.give_taken_back(ME, 40).expect("sound");
    assert_eq!(first(&space, ME, field::TAKEN_COUNT), 40);
    commit(&space, ME, &Calm, |_| {});
    assert_eq!(first(&space, ME, field::TAKEN_COUNT), 0);
    assert_eq!(free_blocks(&space), all - 40);
}

#[test]
fn a_retired_block_is_free_once_nobody_can_see_it() {
    let space = space();
    space.word(word::NUMBERS).expect("inside").store(2, Relaxed);
    let block = space.take(ME, 4, &Calm).expect("room");
    commit(&space, ME, &Calm, |_| {});
    space.enter(OTHER).expect("sound"); // a reader, which may have seen the block
    space.enter(ME).expect("sound");
    commit(&space, ME, &Calm, |commit| space.free_object(block, commit).expect("sound"));
    space.leave(ME).expect("sound");
    let is_free = || {
        let mut seen = HashSet::new();
        blocks_of(&space, first(&space, ME, field::FREE), &mut seen);
        seen.contains(&block)
    };
    for _ in 0..10 {
        space.reclaim(ME, &mut 0, &World::default()).expect("sound");
        assert!(!is_free(), "a reader may see it");
    }
    space.leave(OTHER).expect("sound");
    for _ in 0..3 {
        space.reclaim(ME, &mut 0, &World::default()).expect("sound");
    }
    assert!(is_free());
    let generation = space.word(block - 1).expect("inside").load(Relaxed) >> 8;
    assert_eq!(generation, 1);
}

#[test]
fn a_thread_that_ended_in_a_transaction_holds_no_memory_back() {
    let space = space();
    let world = World::default();
    let dead = space.attach(77, |_| true, &world).expect("room");
    let me = space.attach(78, |_| true, &world).expect("room");
    space.enter(dead).expect("sound");
    space.advance().expect("sound");
    world.gone.lock().expect("no panic").push(77);
    let mut held_back = 0;
    space.reclaim(me, &mut held_back, &world).expect("sound");
    assert_eq!(first(&space, dead, field::EPOCH), 0);
    assert_eq!(first(&space, dead, field::STATE), 0);
}

/// Ends a participant at each step of taking, committing and retiring, and its repair at each of its own steps.
#[test]
fn no_block_is_lost_or_twice_there_wherever_its_owner_ends() {
    let steps: Vec<(u8, u32)> = (1..=10).map(|step| (step, 0)).chain([(31, 0), (31, 1)]).collect();
    for repair in [None, Some(16), Some(17), Some(18), Some(19)] {
        for &(step, passes) in &steps {
            let space = space();
            space.word(word::NUMBERS).expect("inside").store(SHAPE.participants, Relaxed);
            let old = space.take(ME, 4, &Calm).expect("room");
            commit(&space, ME, &Calm, |_| {});
            let all = free_blocks(&space) + 1;
            let world = World::default();
            world.end_at.set(Some((step, passes)));
            space.enter(ME).expect("sound");
            let taken = space.take(ME, 4, &world).and_then(|_| space.take(ME, 4, &world));
            if taken.is_ok() {
                commit(&space, ME, &world, |commit| space.free_object(old, commit).expect("sound"));
            }
            world.dead.lock().expect("no panic").push(ME);
            world.end_at.set(repair.map(|step| (step, 0)));
            recover(&space, ME, &world);
            world.end_at.set(None);
            // The repairer has ended, too: the next one takes its claim away.
            world.dead.lock().expect("no panic").push(OTHER);
            assert!(recover_by(&space, THIRD, ME, &world));
            // Committed: `old` is in limbo and two blocks are in use. Not committed: `old` alone is in use.
            let is_committed = step > 6 && step < 31;
            let in_use = if is_committed { 2 } else { 1 };
            assert_eq!(free_blocks(&space) + in_use, all, "step {step}, repair {repair:?}");
        }
    }
}

#[test]
fn what_one_takes_and_another_frees_comes_back() {
    let space = space();
    space.word(word::NUMBERS).expect("inside").store(2, Relaxed);
    let mut held_back = 0;
    for _ in 0..200 {
        let blocks: Vec<u32> = (0..20).map(|_| space.take(ME, 100, &Calm).expect("room")).collect();
        commit(&space, ME, &Calm, |_| {});
        space.enter(OTHER).expect("sound");
        commit(&space, OTHER, &Calm, |commit| {
            for &block in &blocks {
                space.free_object(block, commit).expect("sound");
            }
        });
        space.leave(OTHER).expect("sound");
        space.reclaim(OTHER, &mut held_back, &World::default()).expect("sound");
        space.share_free(OTHER, &Calm).expect("sound");
    }
    let used = space.word(word::HEAP_TOP).expect("inside").load(Relaxed) - SHAPE.chunks_at();
    assert!(used <= 8 * CHUNK_WORDS, "{} chunks", used / CHUNK_WORDS);
    free_blocks(&space);
}

#[test]
fn large_blocks_that_one_frees_are_there_for_others_at_once() {
    let space = space();
    let blocks = std::iter::from_fn(|| space.take(ME, 8000, &Calm).ok()).count();
    space.give_taken_back(ME, 0).expect("sound");
    space.share_free(ME, &Calm).expect("sound");
    let taken = std::iter::from_fn(|| space.take(OTHER, 8000, &Calm).ok()).count();
    assert!(taken + 2 >= blocks, "{taken} of {blocks}");
}

#[test]
fn a_full_heap_has_blocks_for_transactions_that_free() {
    let space = space();
    while space.take(ME, 4, &Calm).is_ok() {
        let count = space.of(ME, field::TAKEN_COUNT).expect("inside");
        if count.load(Relaxed) == SHAPE.large_writes - 1 {
            count.store(0, Relaxed); // they are in use
        }
    }
    assert_eq!(space.take(ME, 4, &Calm).expect_err("full").code(), "SHARED_MEMORY_FULL");
    // A map deletes in this way: the block of the leaf before is free afterwards.
    for step in 0..100 {
        let taken = space.take_to_free(ME, 4, &Calm);
        assert!(taken.is_ok(), "step {step}: {taken:?}");
        space.give_taken_back(ME, 0).expect("sound");
    }
}

#[test]
fn forged_lists_are_errors() {
    let space = space();
    space.take(ME, 4, &Calm).expect("room");
    for forged in [1, SHAPE.heap_at(), SHAPE.size_words - 1, u32::MAX] {
        space.of(ME, field::FREE).expect("inside").store(forged, Relaxed);
        assert_eq!(space.take(ME, 4, &Calm).expect_err("forged").code(), "SEGMENT_CORRUPT");
    }
}

#[test]
fn a_large_transaction_has_a_larger_log_and_one_that_is_too_large_is_refused() {
    let space = space();
    for _ in 0..3 * SHAPE.small_writes {
        space.take(ME, 4, &Calm).expect("room");
    }
    let all = free_blocks(&space);
    commit(&space, ME, &Calm, |commit| {
        let (_, at) = cell(0);
        for value in 0..1000 {
            commit.writes.push((at, value));
        }
    });
    assert_eq!(space.word(cell(0).1).expect("inside").load(Relaxed), 999);
    assert_eq!(free_blocks(&space), all - 3 * SHAPE.small_writes);
    let mut commit = Commit::default();
    commit.locks.push(cell(0).0);
    commit.writes.resize(SHAPE.large_writes as usize, (cell(0).1, 5));
    let refused = space.commit(ME, &mut commit, &Calm).expect_err("too large");
    assert_eq!(refused.code(), "STM_TOO_LARGE");
    assert_eq!(space.word(cell(0).1).expect("inside").load(Relaxed), 999);
}
