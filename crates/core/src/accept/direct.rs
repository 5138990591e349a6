//! Decides when the loops of a process accept by themselves. Pure: the caller reads the scoreboard and
//! the clock.
//!
//! A connection that the listener thread accepts wakes two threads. Loops that get many connections and
//! hardly sleep poll the sockets themselves, as plain Node does. The listener thread then only checks
//! that they take waiting connections. It accepts again when they do not, or when they have less to do.
//! `bench/cases/serve.js` measures it (new connections).

use super::placement::{self, Load, Policy};

/// Time over which the load of the loops is measured.
const WINDOW_MS: u64 = 50;
/// Time between two checks of loops that accept by themselves. A loop that had no core for a few
/// milliseconds is not blocked: with checks 2 ms apart a busy machine ended the mode at nearly each of
/// them.
pub const CHECK_MS: u64 = 10;

/// Input of one check.
#[derive(Debug, Clone, Copy)]
pub struct Observation {
    pub now_ms: u64,
    /// Number of loops.
    pub loops: u32,
    /// Connections that the loops have got so far.
    pub placed: u32,
    /// Time for which the loops have slept so far, summed over all of them.
    pub slept_ms: u64,
    /// True: a connection waits.
    pub has_waiting: bool,
    /// True: connections have to be placed (`needs_placing`).
    pub needs_placing: bool,
}

/// The mode, and the counters at the start of the window and at the last check.
#[derive(Debug, Default)]
pub struct Direct {
    is_on: bool,
    since_ms: u64,
    placed: u32,
    slept_ms: u64,
    checked_ms: u64,
    placed_at_check: u32,
}

impl Direct {
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    pub fn is_check_due(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.checked_ms) >= if self.is_on { CHECK_MS } else { WINDOW_MS }
    }

    /// Updates the mode from one check. True: the loops leave waiting connections untaken.
    pub fn check(&mut self, policy: Policy, observed: Observation) -> bool {
        let is_left = observed.has_waiting && observed.placed == self.placed_at_check;
        let must_stop = is_left || observed.needs_placing;
        (self.checked_ms, self.placed_at_check) = (observed.now_ms, observed.placed);
        let ms = observed.now_ms.saturating_sub(self.since_ms);
        if ms < WINDOW_MS && !(self.is_on && must_stop) {
            return false;
        }
        let window = Window {
            ms,
            loops: observed.loops,
            placed: observed.placed.wrapping_sub(self.placed),
            slept_ms: observed.slept_ms.saturating_sub(self.slept_ms),
        };
        let was_on = std::mem::replace(&mut self.is_on, false);
        // Under round-robin only the listener threads keep the order of the rows.
        self.is_on = !must_stop && policy != Policy::RoundRobin && is_worth_it(was_on, window);
        (self.since_ms, self.placed, self.slept_ms) =
            (observed.now_ms, observed.placed, observed.slept_ms);
        was_on && is_left
    }
}

/// Work of the loops in a window of time.
#[derive(Debug, Clone, Copy)]
struct Window {
    ms: u64,
    loops: u32,
    placed: u32,
    slept_ms: u64,
}

/// True: accepting by themselves pays. It wakes every loop for each connection, so they must be awake
/// anyway. Between the two limits the mode does not change.
fn is_worth_it(is_so: bool, window: Window) -> bool {
    let (min_per_second, max_asleep_percent) = if is_so { (500, 75) } else { (1000, 50) };
    let is_enough = u64::from(window.placed) * 1000 >= min_per_second * window.ms;
    let time_ms = window.ms * u64::from(window.loops);
    is_enough && window.slept_ms * 100 <= max_asleep_percent * time_ms
}

/// True: a loop of `own` may get no more, or holds far more than the emptiest live loop of `own` and
/// `others`. A loop that accepts first gets a few more at any time; the margin ignores these.
pub fn needs_placing(own: &[Load], others: &[Load]) -> bool {
    const FEW: u32 = 64;
    if own.iter().any(|&load| placement::is_closed(load)) {
        return true;
    }
    let live = own.iter().chain(others).filter(|&&load| !placement::is_closed(load));
    let least = live.map(|load| load.open).min().unwrap_or(0);
    own.iter().any(|load| load.open > least.saturating_mul(2).saturating_add(FEW))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUSY: Window = Window { ms: 50, loops: 2, placed: 500, slept_ms: 10 };

    #[test]
    fn loops_that_are_awake_and_get_many_connections_accept_by_themselves() {
        assert!(is_worth_it(false, BUSY));
        assert!(!is_worth_it(false, Window { placed: 49, ..BUSY }));
        assert!(!is_worth_it(false, Window { slept_ms: 51, ..BUSY }));
    }

    #[test]
    fn between_the_limits_the_mode_does_not_change() {
        let between = Window { placed: 40, slept_ms: 60, ..BUSY };
        assert!(is_worth_it(true, between));
        assert!(!is_worth_it(false, between));
        assert!(!is_worth_it(true, Window { placed: 24, ..BUSY }));
        assert!(!is_worth_it(true, Window { slept_ms: 76, ..BUSY }));
    }

    /// A check `ms` after the start, of two loops that never sleep.
    fn observed(ms: u64, placed: u32) -> Observation {
        let (has_waiting, needs_placing) = (false, false);
        Observation { now_ms: ms, loops: 2, placed, slept_ms: 0, has_waiting, needs_placing }
    }

    fn begun() -> Direct {
        let mut direct = Direct::default();
        assert!(!direct.is_check_due(49) && direct.is_check_due(50));
        assert!(!direct.check(Policy::LeastLoaded, observed(50, 500)));
        assert!(direct.is_on());
        direct
    }

    #[test]
    fn it_begins_and_ends_with_the_rate_of_connections() {
        let mut direct = begun();
        assert!(!direct.is_check_due(59) && direct.is_check_due(60));
        assert!(!direct.check(Policy::LeastLoaded, observed(99, 501)));
        assert!(direct.is_on(), "the window goes on");
        assert!(!direct.check(Policy::LeastLoaded, observed(100, 502)));
        assert!(!direct.is_on());
    }

    #[test]
    fn it_ends_at_once_when_waiting_connections_are_not_taken() {
        let mut direct = begun();
        let waiting = |ms, placed| Observation { has_waiting: true, ..observed(ms, placed) };
        assert!(!direct.check(Policy::LeastLoaded, waiting(60, 510)));
        assert!(direct.is_on());
        assert!(direct.check(Policy::LeastLoaded, waiting(70, 510)));
        assert!(!direct.is_on());
        assert!(!direct.check(Policy::LeastLoaded, waiting(121, 510)), "it was off");
    }

    #[test]
    fn connections_that_must_be_placed_end_it_and_keep_it_off() {
        let mut direct = begun();
        let lopsided = |ms, placed| Observation { needs_placing: true, ..observed(ms, placed) };
        assert!(!direct.check(Policy::LeastLoaded, lopsided(60, 600)));
        assert!(!direct.is_on());
        direct.check(Policy::LeastLoaded, lopsided(110, 1200));
        assert!(!direct.is_on());
        direct.check(Policy::LeastLoaded, observed(160, 1800));
        assert!(direct.is_on());
        let mut in_turn = Direct::default();
        in_turn.check(Policy::RoundRobin, observed(50, 500));
        assert!(!in_turn.is_on());
    }

    #[test]
    fn connections_that_stay_at_one_loop_need_placing() {
        let load = |open| Load { row: 0, open, in_flight: 0, limit: 2000, silent_ms: 0 };
        assert!(!needs_placing(&[load(64), load(0)], &[]));
        assert!(needs_placing(&[load(65), load(0)], &[]));
        assert!(!needs_placing(&[load(1000)], &[load(500)]));
        assert!(needs_placing(&[load(1065)], &[load(500)]));
        let blocked = Load { silent_ms: 1000, ..load(0) };
        assert!(!needs_placing(&[load(1065)], &[blocked]));
        assert!(needs_placing(&[load(2000)], &[]), "full");
        assert!(needs_placing(&[blocked], &[]));
        assert!(!needs_placing(&[], &[load(0)]));
    }
}
