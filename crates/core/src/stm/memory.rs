//! Blocks for objects. Each participant has lists of free blocks of its own, so that taking one costs no atomic
//! operation that others see; lists that grow too long pass batches to shared ones (`batches`).
//!
//! No block is lost when a participant ends, except one in the moment in which it comes from the heap, and what is
//! divided or merged then (`resize`). A block that is taken stands in the log until the transaction commits, and the
//! same commit retires what it replaces. A retired block waits in limbo until no reader can see it any more (`epoch`).

use super::commit::Surroundings;
use super::epoch::is_past;
use super::layout::{
    CHUNK_WORDS, CLASS_BITS, CLASS_WORDS, HEADER_WORDS, LIMBOS, Log, participant as field, word,
};
use super::resize::Merge;
use super::space::{Participant, Space};
use crate::error::{CoreError, Result};
use crate::region::Region;
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};

impl<R: Region> Space<R> {
    /// Takes a block for an object of `words` words; the result is the place of the object. Its words have any
    /// values, and its lock must be set. It is the transaction's, until that commits or gives it back.
    pub fn take(&self, me: Participant, words: u32, around: &impl Surroundings) -> Result<u32> {
        self.take_beside(me, words, self.reserve_words(), around)
    }

    /// Takes a block for a transaction that frees memory: half of the reserve is for those.
    pub fn take_to_free(
        &self,
        me: Participant,
        words: u32,
        around: &impl Surroundings,
    ) -> Result<u32> {
        self.take_beside(me, words, self.reserve_words() / 2, around)
    }

    /// Words at the end of the heap for logs, and for transactions that free memory: a full memory can be emptied.
    fn reserve_words(&self) -> u32 {
        4 * Log::words(self.shape().large_writes)
    }

    /// `kept_words`: those at the end of the heap that stay free.
    fn take_beside(
        &self,
        me: Participant,
        words: u32,
        kept_words: u32,
        around: &impl Surroundings,
    ) -> Result<u32> {
        let needed = words.saturating_add(HEADER_WORDS);
        let class = CLASS_WORDS.iter().position(|&size| size >= needed);
        let class = class.ok_or(CoreError::Full { size_bytes: u64::from(needed) * 4 })? as u32;
        let count = self.of(me, field::TAKEN_COUNT)?;
        let taken = count.load(Relaxed);
        if taken >= self.shape().large_writes {
            return Err(CoreError::TooLarge { writes: taken.into() });
        }
        self.grow_log(me, taken + 1, kept_words / 2)?;
        let list = self.of(me, field::FREE + class)?;
        if list.load(Relaxed) == 0 {
            self.refill(me, class, kept_words, around)?;
        }
        let block = list.load(Relaxed);
        self.class_of(block)?;
        let next = self.word(block - HEADER_WORDS)?.load(Relaxed);
        // In this order: whoever recovers this participant finds the block in the log, in the list, or in both.
        self.word(self.log(me)?.taken(taken))?.store(block, Relaxed);
        count.store(taken + 1, Release);
        around.pass(31)?;
        list.store(next, Release);
        let blocks = self.of(me, field::FREE_COUNT + class)?;
        blocks.store(blocks.load(Relaxed).saturating_sub(1), Relaxed);
        Ok(block)
    }

    /// The class of an object's block; an error where no object can be.
    pub fn class_of(&self, object: u32) -> Result<u32> {
        let forged = CoreError::Corrupt { what: "the index of an object", value: object.into() };
        if object < self.shape().chunks_at() + HEADER_WORDS {
            return Err(forged);
        }
        let class = self.word(object - 1)?.load(Relaxed) & ((1 << CLASS_BITS) - 1);
        let Some(&words) = CLASS_WORDS.get(class as usize) else { return Err(forged) };
        let end = u64::from(object - HEADER_WORDS) + u64::from(words);
        if end > self.shape().size_words.into() { Err(forged) } else { Ok(class) }
    }

    /// Gives back what a participant took beyond the first `kept` blocks; for itself, or for its claimant, who may
    /// end at any instruction.
    pub fn give_taken_back(&self, of: Participant, kept: u32) -> Result<()> {
        let log = self.log(of)?;
        let count = self.of(of, field::TAKEN_COUNT)?;
        for taken in (kept..count.load(Acquire).min(log.writes)).rev() {
            let block = self.word(log.taken(taken))?.load(Relaxed);
            let class = self.class_of(block)?;
            if !self.is_first(of, class, block)? {
                // The generation changes: a handle that left the transaction fits no later object here.
                self.word(block - 1)?.fetch_add(1 << CLASS_BITS, Relaxed);
                self.push_free(of, class, block)?;
            }
            count.store(taken, Release);
        }
        Ok(())
    }

    /// True: the block is still the first of a list, or again.
    fn is_first(&self, of: Participant, class: u32, block: u32) -> Result<bool> {
        let lists = (0..LIMBOS).map(|limbo| field::LIMBO + limbo);
        for list in lists.chain([field::FREE + class]) {
            if self.of(of, list)?.load(Acquire) == block {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn push_free(&self, of: Participant, class: u32, block: u32) -> Result<()> {
        let list = self.of(of, field::FREE + class)?;
        self.word(block - HEADER_WORDS)?.store(list.load(Relaxed), Relaxed);
        list.store(block, Release);
        let blocks = self.of(of, field::FREE_COUNT + class)?;
        blocks.store(blocks.load(Relaxed).saturating_add(1), Relaxed);
        Ok(())
    }

    /// Fills the empty list of a class: from the shared one, from the heap, by dividing a larger free block, or by
    /// merging smaller ones.
    fn refill(
        &self,
        me: Participant,
        class: u32,
        kept_words: u32,
        around: &impl Surroundings,
    ) -> Result<()> {
        loop {
            if self.take_batch(me, class, around)? {
                return Ok(());
            }
            let full = match self.carve(me, class, kept_words) {
                Err(full @ CoreError::Full { .. }) => full,
                carved => return carved,
            };
            if self.divide(me, class, around)? {
                return Ok(());
            }
            match self.merge(me, class, around)? {
                Merge::Made => return Ok(()),
                Merge::NoneFits => return Err(full),
                Merge::Waited => {} // another one has merged: there may be blocks now
            }
        }
    }

    /// Takes words from the heap, of which `kept_words` stay free, and memory for them.
    fn take_heap(&self, words: u32, kept_words: u32) -> Result<u32> {
        let top = self.word(word::HEAP_TOP)?;
        loop {
            let at = top.load(Relaxed);
            let end = u64::from(at) + u64::from(words);
            if end + u64::from(kept_words) > self.shape().size_words.into() {
                return Err(CoreError::Full { size_bytes: u64::from(words) * 4 });
            }
            // Before they are taken: a refusal has no effect.
            self.region().populate(at as usize * 4, words as usize * 4)?;
            if top.compare_exchange(at, end as u32, AcqRel, Relaxed).is_ok() {
                return Ok(at);
            }
        }
    }

    /// Makes free blocks of a new chunk.
    fn carve(&self, me: Participant, class: u32, kept_words: u32) -> Result<()> {
        let words = CLASS_WORDS[class as usize];
        let blocks = (CHUNK_WORDS / words).max(1);
        let at = self.take_heap(blocks * words, kept_words)?;
        self.make_blocks(me, class, at, blocks)
    }

    pub(super) fn make_blocks(
        &self,
        me: Participant,
        class: u32,
        at: u32,
        blocks: u32,
    ) -> Result<()> {
        let words = CLASS_WORDS[class as usize];
        for number in (0..blocks).rev() {
            let block = at + number * words + HEADER_WORDS;
            self.word(block - 1)?.store(class, Relaxed);
            self.push_free(me, class, block)?;
        }
        Ok(())
    }

    /// The limbo list for what is retired in the epoch of this transaction, emptied if it is an old one.
    pub(super) fn limbo_of_now(&self, me: Participant) -> Result<u32> {
        let epoch = self.of(me, field::EPOCH)?.load(Relaxed);
        if epoch == 0 {
            return Err(CoreError::Corrupt { what: "the epoch of a transaction", value: 0 });
        }
        let epochs = self.of_limbos(me)?;
        if let Some(limbo) = epochs.iter().position(|&of| of == epoch) {
            return Ok(limbo as u32);
        }
        // Among three lists with earlier epochs, one is empty or old enough.
        let old = epochs.iter().position(|&of| of == 0 || is_past(of, epoch));
        let limbo = old.ok_or(CoreError::Corrupt { what: "an epoch", value: epoch.into() })? as u32;
        self.free_limbo(me, limbo)?;
        self.of(me, field::LIMBO_EPOCH + limbo)?.store(epoch, Release);
        Ok(limbo)
    }

    fn of_limbos(&self, me: Participant) -> Result<[u32; LIMBOS as usize]> {
        let mut epochs = [0; LIMBOS as usize];
        for (limbo, epoch) in (0..).zip(&mut epochs) {
            *epoch = self.of(me, field::LIMBO_EPOCH + limbo)?.load(Relaxed);
        }
        Ok(epochs)
    }

    /// Frees the retired blocks that no reader sees any more.
    pub fn free_retired(&self, me: Participant) -> Result<()> {
        let now = self.word(word::EPOCH)?.load(Acquire);
        for (limbo, epoch) in (0..).zip(self.of_limbos(me)?) {
            if epoch != 0 && is_past(epoch, now) {
                self.free_limbo(me, limbo)?;
                self.of(me, field::LIMBO_EPOCH + limbo)?.store(0, Release);
            }
        }
        Ok(())
    }

    /// Moves all blocks of a limbo list to the free ones, each by way of the log.
    fn free_limbo(&self, me: Participant, limbo: u32) -> Result<()> {
        let list = self.of(me, field::LIMBO + limbo)?;
        let count = self.of(me, field::TAKEN_COUNT)?;
        let taken = count.load(Relaxed);
        self.grow_log(me, taken + 1, 0)?;
        let place = self.word(self.log(me)?.taken(taken))?;
        loop {
            let block = list.load(Relaxed);
            if block == 0 {
                return Ok(());
            }
            let class = self.class_of(block)?;
            let next = self.word(block - HEADER_WORDS)?.load(Relaxed);
            place.store(block, Relaxed);
            count.store(taken + 1, Release);
            list.store(next, Release);
            self.push_free(me, class, block)?;
            count.store(taken, Release);
        }
    }

    /// Gives `me` a large log if the small one has no room for `writes`. The blocks that it took stay in the log.
    pub(super) fn grow_log(&self, me: Participant, writes: u32, kept_words: u32) -> Result<()> {
        let old = self.log(me)?;
        if writes <= old.writes {
            return Ok(());
        }
        let at = self.take_heap(Log::words(self.shape().large_writes), kept_words)?;
        let new = Log { at, writes: self.shape().large_writes };
        for taken in 0..self.of(me, field::TAKEN_COUNT)?.load(Relaxed).min(old.writes) {
            let block = self.word(old.taken(taken))?.load(Relaxed);
            self.word(new.taken(taken))?.store(block, Relaxed);
        }
        self.of(me, field::LOG_AT)?.store(at, Release);
        Ok(())
    }
}
