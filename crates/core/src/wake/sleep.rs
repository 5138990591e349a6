//! The sleep word: 1 while its side sleeps or is about to, 0 while it is awake.
//!
//! Sleeper: `arm`, check once more everything that could wake it, sleep, `disarm`.
//! Waker: publish (tail, state, room), then `must_ring`, and wake only when that returns true.
//!
//! Nothing is missed, because either the waker sees the 1 or the sleeper sees the published words: each
//! side stores, fences, then loads the other's store. The waker that clears the word is the one that
//! wakes: a batch costs one wake-up. A waker that dies between clearing and waking leaves a sleeper
//! with word 0 and a published frame. Its death wakes the sleeper (the exit event of the process),
//! which then checks the ring again.
//!
//! `src/channels/shm/ring-writer.ts` is the same waker in JavaScript, where every `Atomics` call is
//! sequentially consistent.

use crate::sync::{AtomicU32, Ordering, fence};

pub const AWAKE: u32 = 0;
pub const ASLEEP: u32 = 1;

/// Announces sleep; the caller must check once more before it really sleeps.
pub fn arm(word: &AtomicU32) {
    word.store(ASLEEP, Ordering::Relaxed);
    // SeqCst pairs with the fence in `must_ring`. Without it this store could pass the loads that
    // follow: the sleeper reads the old tail, the waker reads the old word, both go on, and the ring is
    // lost.
    fence(Ordering::SeqCst);
}

/// Announces that this side is awake.
pub fn disarm(word: &AtomicU32) {
    // Relaxed: a waker that still sees the 1 rings once too often, which is harmless.
    word.store(AWAKE, Ordering::Relaxed);
}

/// Returns, after publishing, whether the caller has to wake the other side. True for one caller only.
pub fn must_ring(word: &AtomicU32) -> bool {
    // SeqCst pairs with the fence in `arm`: the published stores stay before this load.
    fence(Ordering::SeqCst);
    word.load(Ordering::Relaxed) != AWAKE && word.swap(AWAKE, Ordering::Relaxed) != AWAKE
}
