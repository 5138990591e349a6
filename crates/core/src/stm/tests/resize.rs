//! Free blocks that get other sizes, where the heap is used up.

use super::super::layout::{CLASS_WORDS, HEADER_WORDS, participant as field, word};
use super::super::space::{Participant, Space};
use super::{Calm, Words, space};
use crate::sync::Ordering::Relaxed;

const ME: Participant = Participant(1);

/// Takes blocks of so many words until there is no room, and keeps them.
fn fill(space: &Space<Words>, words: u32) -> Vec<u32> {
    let mut taken = Vec::new();
    loop {
        match space.take(ME, words, &Calm) {
            Ok(block) => taken.push(block),
            Err(error) => {
                assert_eq!(error.code(), "SHARED_MEMORY_FULL");
                return taken;
            }
        }
        space.of(ME, field::TAKEN_COUNT).expect("inside").store(0, Relaxed);
    }
}

/// Frees blocks.
fn free(space: &Space<Words>, by: Participant, blocks: &[u32]) {
    let log = space.log(by).expect("inside");
    for some in blocks.chunks(30) {
        for (at, &block) in (0..).zip(some) {
            space.word(log.taken(at)).expect("inside").store(block, Relaxed);
        }
        let count = space.of(by, field::TAKEN_COUNT).expect("inside");
        count.store(some.len() as u32, Relaxed);
        space.give_taken_back(by, 0).expect("sound");
        space.share_free(by, &Calm).expect("sound");
    }
}

#[test]
fn a_heap_that_blocks_of_one_size_have_filled_has_room_for_every_other_size() {
    let space = space();
    let sizes = [4000, 120, 300, 8000, 1000];
    let mut counts = Vec::new();
    for turn in 0..2 * sizes.len() {
        let words = sizes[turn % sizes.len()];
        let mut taken = fill(&space, words);
        counts.push(taken.len());
        taken.sort_unstable();
        let whole = CLASS_WORDS.iter().find(|&&class| class >= words + HEADER_WORDS);
        let whole = *whole.expect("a class");
        assert!(taken.windows(2).all(|pair| pair[1] - pair[0] >= whole), "two blocks overlap");
        let first = counts[turn % sizes.len()];
        // Some rests are too small.
        assert!(taken.len() * 10 >= first * 8, "{words}: {} of {first}", taken.len());
        free(&space, ME, &taken);
    }
}

#[test]
fn blocks_of_variables_stay_what_they_are() {
    let space = space();
    let taken = fill(&space, 4);
    free(&space, ME, &taken);
    assert_eq!(fill(&space, 1000), []);
    let again = fill(&space, 4);
    assert_eq!(again.len(), taken.len());
    for block in again {
        assert_eq!(space.class_of(block).expect("sound"), 0);
    }
}

#[test]
fn forged_lists_do_not_merge() {
    let forgeries: [fn(&Space<Words>, u32); 2] = [
        // It leads back to itself, or into another block.
        |space, block| space.word(block - HEADER_WORDS).expect("inside").store(block, Relaxed),
        |space, block| {
            space.word(block + 7).expect("inside").store(3, Relaxed);
            space.word(block - HEADER_WORDS).expect("inside").store(block + 8, Relaxed);
        },
    ];
    for forge in forgeries {
        let space = space();
        let taken = fill(&space, 30);
        free(&space, ME, &taken[..100]);
        let list = space.of(ME, field::FREE + 3).expect("inside");
        forge(&space, list.load(Relaxed));
        let error = space.take(ME, 8000, &Calm).expect_err("it is forged");
        assert_eq!(error.code(), "SEGMENT_CORRUPT", "{error}");
    }
}

#[test]
fn threads_that_merge_at_once_take_nothing_from_each_other() {
    let space = space();
    let sizes = [4000, 20, 300, 1000, 40, 120];
    let work = |me: Participant, space: &Space<Words>| {
        let mut random = me.0;
        for _ in 0..20 {
            random = random.wrapping_mul(0x9e37_79b1).wrapping_add(12345);
            let words = sizes[(random >> 16) as usize % sizes.len()];
            let mut taken = Vec::new();
            for _ in 0..400 {
                match space.take(me, words, &Calm) {
                    Ok(block) => taken.push(block),
                    Err(error) => {
                        assert_eq!(error.code(), "SHARED_MEMORY_FULL", "{error}");
                        break;
                    }
                }
                space.of(me, field::TAKEN_COUNT).expect("inside").store(0, Relaxed);
            }
            // Blocks of two overlap, if one finds the mark of another.
            for &block in &taken {
                space.word(block).expect("inside").store(me.0, Relaxed);
            }
            for &block in &taken {
                assert_eq!(space.word(block).expect("inside").load(Relaxed), me.0);
            }
            free(space, me, &taken);
        }
    };
    std::thread::scope(|scope| {
        for number in 1..4 {
            let space = &space;
            scope.spawn(move || work(Participant(number), space));
        }
    });
    assert_eq!(space.word(word::MERGER).expect("inside").load(Relaxed), 0);
}
