//! Measures since when clients wait in the queue of a listening socket. The kernel reports only their
//! number. So each observation notes how many had come by then; since the queue is first in, first out,
//! that dates the client that is next. Pure: the caller reads the clock and the counters.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Many times the pause between two observations: a longer gap means that there was no reason to
/// observe.
const LAPSE: Duration = Duration::from_millis(200);

/// By `at`, `come` clients had come.
#[derive(Debug, Clone, Copy)]
struct Mark {
    come: u32,
    at: Instant,
}

#[derive(Debug, Clone, Default)]
pub struct Queue {
    /// Marks of clients that have not left, the oldest first.
    marks: VecDeque<Mark>,
    seen: Option<Instant>,
}

impl Queue {
    /// Observes a queue with `waiting` clients, of which `gone` have left so far (a counter that wraps
    /// and may be ahead). Returns how long the next client has waited at least.
    pub fn oldest_waits(&mut self, now: Instant, waiting: u32, gone: u32) -> Duration {
        if self.seen.is_none_or(|seen| now - seen >= LAPSE) {
            self.marks.clear();
        }
        self.seen = Some(now);
        while self.marks.front().is_some_and(|mark| !is_behind(gone, mark.come)) {
            self.marks.pop_front();
        }
        let come = gone.wrapping_add(waiting);
        if is_behind(self.marks.back().map_or(gone, |last| last.come), come) {
            self.marks.push_back(Mark { come, at: now });
        }
        self.marks.front().map_or(Duration::ZERO, |oldest| now - oldest.at)
    }
}

fn is_behind(one: u32, other: u32) -> bool {
    (other.wrapping_sub(one) as i32) > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    /// Shortly before the counter wraps.
    const BEFORE: u32 = u32::MAX - 2;

    /// Result of each observation in ms, for (ms since the last, waiting, gone).
    fn waits(looks: &[(u32, u32, u32)]) -> Vec<u128> {
        let mut queue = Queue::default();
        let mut now = Instant::now();
        let mut look = |&(pause, waiting, gone): &(u32, u32, u32)| {
            now += MS * pause;
            queue.oldest_waits(now, waiting, BEFORE.wrapping_add(gone)).as_millis()
        };
        looks.iter().map(&mut look).collect()
    }

    #[test]
    fn the_first_waits_until_the_queue_moves() {
        assert_eq!(waits(&[(0, 1, 0), (50, 1, 0), (50, 4, 0)]), [0, 50, 100]);
    }

    #[test]
    fn each_waits_since_it_came() {
        let looks = [(0, 1, 0), (50, 3, 0), (50, 2, 1), (50, 1, 2), (50, 1, 3)];
        assert_eq!(waits(&looks), [0, 50, 50, 100, 0]);
    }

    #[test]
    fn a_client_of_an_emptied_queue_has_not_waited() {
        assert_eq!(waits(&[(0, 3, 0), (100, 3, 0), (10, 1, 3), (10, 1, 3)]), [0, 100, 0, 10]);
    }

    #[test]
    fn an_empty_queue_has_no_wait() {
        assert_eq!(waits(&[(0, 0, 0), (100, 0, 0), (10, 1, 0), (10, 1, 0)]), [0, 0, 0, 10]);
    }

    #[test]
    fn a_queue_without_recent_observations_was_empty() {
        assert_eq!(waits(&[(0, 1, 0), (199, 1, 0), (200, 1, 0), (5, 1, 0)]), [0, 199, 0, 5]);
    }

    #[test]
    fn a_counter_that_is_ahead_makes_no_wait_longer() {
        assert_eq!(waits(&[(0, 2, 0), (50, 2, 5), (50, 2, 5)]), [0, 0, 50]);
    }
}
