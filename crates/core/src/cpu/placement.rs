//! Moves a worker off the core that it shares with its parent. The scheduler prefers to wake a thread
//! on the core of its waker, and leaves the two there while they alternate. Without a move such a
//! worker never spins (bench/cases/round-trip.js).
//!
//! This matters for short tasks alone. After a long task a worker gains nothing by a move and may lose
//! much: its new core often has another worker that is just as busy. The scheduler may leave the two
//! there while the parent's core is free (bench/cases/fibonacci.js).

use super::affinity;
use std::time::{Duration, Instant};

/// Time before a worker may move again. It doubles with each move, and starts over when a move has held
/// for `STEADY_TIME`.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const MAX_PAUSE: Duration = Duration::from_millis(256);
const STEADY_TIME: Duration = Duration::from_secs(1);
/// A worker whose last delivery took longer stays where it is.
const MAX_DELIVERY_TIME: Duration = Duration::from_micros(200);

/// Decides when one worker may move again.
#[derive(Debug)]
pub struct Moves {
    /// No move before this time.
    until: Instant,
    pause: Duration,
}

impl Moves {
    pub fn new(now: Instant) -> Moves {
        Moves { until: now, pause: FIRST_PAUSE }
    }

    /// True: move now, after a delivery (with its tasks) that took `delivery_took`. The move counts as
    /// made.
    pub fn takes_chance(&mut self, now: Instant, delivery_took: Duration) -> bool {
        if now < self.until || delivery_took > MAX_DELIVERY_TIME {
            return false;
        }
        let has_held = now.duration_since(self.until) > STEADY_TIME;
        self.pause = if has_held { FIRST_PAUSE } else { (self.pause * 2).min(MAX_PAUSE) };
        self.until = now + self.pause;
        true
    }
}

/// Moves this thread off `core`; false when it may run on no other.
pub fn leave(core: u32) -> bool {
    let Ok(allowed) = affinity::allowed() else { return false };
    let others: Vec<u32> = allowed.iter().copied().filter(|&other| other != core).collect();
    let has_moved = !others.is_empty() && affinity::pin(&others).is_ok();
    // The move is done; from here on the scheduler may place it as before.
    has_moved && affinity::pin(&allowed).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_micros(5);

    #[test]
    fn moves_that_do_not_hold_become_rare() {
        let mut now = Instant::now();
        let mut moves = Moves::new(now);
        for pause_ms in [4, 8, 16, 32, 64, 128, 256, 256] {
            assert!(moves.takes_chance(now, SHORT));
            now += Duration::from_millis(pause_ms - 1);
            assert!(!moves.takes_chance(now, SHORT), "{pause_ms} ms");
            now += Duration::from_millis(1);
        }
        now += STEADY_TIME * 2;
        assert!(moves.takes_chance(now, SHORT));
        assert!(moves.takes_chance(now + FIRST_PAUSE, SHORT));
    }

    #[test]
    fn after_a_long_task_a_worker_stays_where_it_is() {
        let now = Instant::now();
        let mut moves = Moves::new(now);
        assert!(!moves.takes_chance(now, MAX_DELIVERY_TIME * 2));
        assert!(moves.takes_chance(now, SHORT));
    }

    #[test]
    fn a_thread_that_left_a_core_may_run_where_it_might_before() {
        let run = || {
            let before = affinity::allowed().expect("affinity");
            assert_eq!(leave(before[0]), before.len() > 1);
            assert_eq!(affinity::allowed().expect("affinity"), before);
        };
        std::thread::spawn(run).join().expect("the thread");
    }
}
