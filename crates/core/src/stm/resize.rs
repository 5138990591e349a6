//! Other sizes for free blocks, where the heap is used up: a larger one is divided, and smaller ones that lie side by side
//! merge. Blocks of the smallest class never merge: variables are of that class, and a handle of one that has ended
//! finds its end by the header, which must stay one. Larger blocks are bytes of values, and no handle leads to them.
//!
//! One thread at a time merges. One that ends in the middle loses what it was merging, `MERGED_WORDS` and some more;
//! what else it has taken for that is in its lists, which the next thread with its number inherits.

use super::commit::Surroundings;
use super::layout::{CLASS_WORDS, CLASSES, HEADER_WORDS, participant as field, word};
use super::space::{Claim, Participant, Space};
use crate::error::{CoreError, Result};
use crate::region::Region;
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::collections::HashSet;
use std::ops::Range;

/// Words of the blocks that one call makes, if there are so many.
const MERGED_WORDS: u32 = 1 << 18;
/// The smallest class that merges.
const FIRST_CLASS: u32 = 1;
/// The class of 24 words.
const ODD_CLASS: u32 = 2;

/// The end of a merge.
pub(super) enum Merge {
    Made,
    /// No blocks lie side by side that have so many words.
    NoneFits,
    /// A merge of somebody else has ended meanwhile.
    Waited,
}

impl<R: Region> Space<R> {
    /// Makes free blocks of a larger one. No handle of what was in it fits one of a smaller class. False: there is no
    /// larger one. Variables get the largest, so that they lie together: they never merge.
    pub(super) fn divide(
        &self,
        me: Participant,
        class: u32,
        around: &impl Surroundings,
    ) -> Result<bool> {
        let larger = class + 1..CLASSES;
        let tries: Vec<u32> = match class {
            0 => larger.rev().collect(),
            // The next one would leave a rest of 8 words.
            FIRST_CLASS | ODD_CLASS => (class + 2..CLASSES).chain([class + 1]).collect(),
            _ => larger.collect(),
        };
        for larger in tries {
            let is_free = self.of(me, field::FREE + larger)?.load(Relaxed) != 0;
            if is_free || self.take_batch(me, larger, around)? {
                self.divide_first(me, larger, class)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn divide_first(&self, me: Participant, larger: u32, class: u32) -> Result<()> {
        let list = self.of(me, field::FREE + larger)?;
        let block = list.load(Relaxed);
        if self.class_of(block)? != larger {
            return Err(CoreError::Corrupt { what: "a list of free blocks", value: block.into() });
        }
        let at = block - HEADER_WORDS;
        list.store(self.word(at)?.load(Relaxed), Release);
        let count = self.of(me, field::FREE_COUNT + larger)?;
        count.store(count.load(Relaxed).saturating_sub(1), Relaxed);
        self.divide_run(me, class, at..at + CLASS_WORDS[larger as usize])
    }

    /// Makes blocks of `class` from smaller ones that are free, unless another one merges: waits for that.
    pub(super) fn merge(
        &self,
        me: Participant,
        class: u32,
        around: &impl Surroundings,
    ) -> Result<Merge> {
        let merger = self.word(word::MERGER)?;
        let mine = self.claim_of(me)?;
        for tries in 0.. {
            let found = Claim(merger.load(Acquire));
            if found.holder().is_none() {
                // The blocks that another one has taken for its merge are back.
                if tries > 0 {
                    return Ok(Merge::Waited);
                }
                if merger.compare_exchange(0, mine.0, AcqRel, Relaxed).is_ok() {
                    break;
                }
            }
            self.await_claim(word::MERGER, found, tries, around)?;
        }
        let made = self.merge_claimed(me, class, around);
        let _ = merger.compare_exchange(mine.0, 0, AcqRel, Relaxed);
        Ok(if made? { Merge::Made } else { Merge::NoneFits })
    }

    fn merge_claimed(
        &self,
        me: Participant,
        class: u32,
        around: &impl Surroundings,
    ) -> Result<bool> {
        for smaller in FIRST_CLASS..class {
            // A list that leads back to itself has more batches than there is memory for.
            let mut left = self.shape().size_words / CLASS_WORDS[smaller as usize];
            while self.take_batch(me, smaller, around)? {
                left = left.checked_sub(1).ok_or_else(|| forged(0))?;
            }
        }
        let free = self.free_blocks(me, class)?;
        // Blocks of 24 words come in pairs.
        let needed = CLASS_WORDS[class as usize] * if class == ODD_CLASS { 2 } else { 1 };
        let runs = runs_in(&free, needed)?;
        let merged: HashSet<u32> = runs
            .iter()
            .flat_map(|run| free[run.clone()].iter())
            .map(|&(start, _)| start + HEADER_WORDS)
            .collect();
        for smaller in FIRST_CLASS..class {
            self.unlink(me, smaller, &merged)?;
        }
        for run in &runs {
            let (start, _) = free[run.start];
            let (last, words) = free[run.end - 1];
            self.divide_run(me, class, start..last + words)?;
        }
        // Others may need what does not merge.
        for smaller in FIRST_CLASS..class {
            self.share_class(me, smaller, around)?;
        }
        Ok(!runs.is_empty())
    }

    /// The places and the words of this participant's free blocks that may merge into one of `class`, ascending.
    fn free_blocks(&self, me: Participant, class: u32) -> Result<Vec<(u32, u32)>> {
        let mut free = Vec::new();
        for smaller in FIRST_CLASS..class {
            let mut block = self.of(me, field::FREE + smaller)?.load(Acquire);
            while block != 0 {
                let most = self.shape().size_words / CLASS_WORDS[FIRST_CLASS as usize];
                if self.class_of(block)? != smaller || free.len() as u32 > most {
                    return Err(forged(block));
                }
                free.push((block - HEADER_WORDS, CLASS_WORDS[smaller as usize]));
                block = self.word(block - HEADER_WORDS)?.load(Relaxed);
            }
        }
        free.sort_unstable();
        Ok(free)
    }

    /// Takes the blocks of `merged` out of a list.
    fn unlink(&self, me: Participant, class: u32, merged: &HashSet<u32>) -> Result<()> {
        let mut link = self.field_at(me, field::FREE + class)?;
        let mut left = 0;
        loop {
            let mut block = self.word(link)?.load(Relaxed);
            while merged.contains(&block) {
                self.class_of(block)?;
                block = self.word(block - HEADER_WORDS)?.load(Relaxed);
            }
            // The list is whole before and after each of these.
            self.word(link)?.store(block, Release);
            if block == 0 {
                break;
            }
            self.class_of(block)?;
            left += 1;
            link = block - HEADER_WORDS;
        }
        self.of(me, field::FREE_COUNT + class)?.store(left, Relaxed);
        Ok(())
    }

    /// Makes free blocks of `class` of these words, and smaller ones of the rest. A rest of 8 words, which would be a
    /// variable's and never merge, is avoided: blocks of 24 words come in pairs, or take the odd end.
    fn divide_run(&self, me: Participant, class: u32, words: Range<u32>) -> Result<()> {
        let Range { mut start, mut end } = words;
        if class >= ODD_CLASS && is_odd(end - start) {
            end -= CLASS_WORDS[ODD_CLASS as usize];
            self.make_blocks(me, ODD_CLASS, end, 1)?;
        }
        for next in (0..=class).rev() {
            let fit = (end - start) / CLASS_WORDS[next as usize];
            let count = if next == ODD_CLASS && fit > 1 { fit & !1 } else { fit };
            self.make_blocks(me, next, start, count)?;
            start += count * CLASS_WORDS[next as usize];
        }
        Ok(())
    }
}

/// True: so many words are no multiple of 16, as the sizes of all classes but two are.
fn is_odd(words: u32) -> bool {
    words % 16 == 8
}

/// Ranges of blocks that lie side by side and have `needed` words together, as few as do.
fn runs_in(free: &[(u32, u32)], needed: u32) -> Result<Vec<Range<usize>>> {
    let mut runs = Vec::new();
    let (mut first, mut total, mut end) = (0, 0, 0);
    for (at, &(start, words)) in free.iter().enumerate() {
        if start < end {
            return Err(forged(start));
        }
        if start != end {
            (first, total) = (at, 0);
        }
        end = start + words;
        total += words;
        let odd_end = if is_odd(total) { CLASS_WORDS[ODD_CLASS as usize] } else { 0 };
        if total >= needed + odd_end {
            runs.push(first..at + 1);
            (first, total) = (at + 1, 0);
            if runs.len() as u32 * needed >= MERGED_WORDS {
                break;
            }
        }
    }
    Ok(runs)
}

fn forged(block: u32) -> CoreError {
    CoreError::Corrupt { what: "a list of free blocks", value: block.into() }
}

const _: () = assert!(CLASS_WORDS[ODD_CLASS as usize] == 24);
