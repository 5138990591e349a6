//! Sleeping on the sleep word itself, for threads without an event loop (native producers, the death
//! suite). Event loops use `eventfd`: a thread in a futex runs no timer, no signal handler and no
//! inspector, and the wake-up costs the same.

use super::sleep;
use crate::error::Result;
use crate::sync::AtomicU32;
use crate::sys;
use std::time::{Duration, Instant};

/// Sleeps until `is_ready` or the deadline; false at the deadline. `is_ready` looks at what the peer
/// publishes before it calls `wake`.
pub fn wait(
    word: &AtomicU32,
    deadline: Instant,
    mut is_ready: impl FnMut() -> bool,
) -> Result<bool> {
    loop {
        if is_ready() {
            return Ok(true);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        sleep::arm(word);
        if is_ready() {
            sleep::disarm(word);
            return Ok(true);
        }
        // Bounded, so that a peer killed between clearing the word and the wake costs time, not life.
        let slept = sys::futex_wait(word, sleep::ASLEEP, left.min(Duration::from_millis(50)));
        sleep::disarm(word);
        slept?;
    }
}

/// After publishing: wakes the sleeper of `word`, if there is one.
pub fn wake(word: &AtomicU32) {
    if sleep::must_ring(word) {
        sys::futex_wake(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::Ordering;
    use std::sync::Arc;

    #[test]
    fn a_sleeper_sees_what_was_published_before_the_wake() {
        let words = Arc::new((AtomicU32::new(0), AtomicU32::new(0)));
        let sleeper = {
            let words = Arc::clone(&words);
            let deadline = Instant::now() + Duration::from_secs(10);
            std::thread::spawn(move || {
                wait(&words.0, deadline, || words.1.load(Ordering::Acquire) == 1)
            })
        };
        words.1.store(1, Ordering::Release);
        wake(&words.0);
        assert_eq!(sleeper.join().expect("the sleeper"), Ok(true));
    }

    #[test]
    fn a_sleeper_whom_nobody_wakes_returns_at_its_deadline() {
        let word = AtomicU32::new(0);
        let deadline = Instant::now() + Duration::from_millis(20);
        assert_eq!(wait(&word, deadline, || false), Ok(false));
        assert_eq!(word.load(Ordering::Relaxed), sleep::AWAKE);
    }
}
