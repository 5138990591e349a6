//! Chooses the loop for the next connection. Pure: the caller reads the scoreboard and the clock.
//!
//! By default that is the least loaded live loop. A loop counts as live while it takes its connections
//! and answers pings. A loop that does neither for long is in a callback of the program that does not
//! return. Envoy's `exact_balance` and Puma's pull request 2092 place by load; neither checks liveness.

/// A loop that has been silent for this long is in a long callback: others come first.
pub const SLOW_MS: u32 = 2;
/// A loop that has been silent for this long is blocked: it gets nothing.
pub const BLOCKED_MS: u32 = 20;

/// Criterion for the choice between live loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Fewest open connections and requests in flight, in all processes.
    LeastLoaded,
    /// One after the other, through all processes, as node:cluster does.
    RoundRobin,
    /// The kernel chooses the process; within it, as `LeastLoaded`.
    Kernel,
    /// A router has chosen the loop (`sticky.rs`). Other sockets: as `Kernel`.
    Sticky,
}

impl Policy {
    pub fn named(name: &str) -> Option<Policy> {
        match name {
            "least-loaded" => Some(Policy::LeastLoaded),
            "round-robin" => Some(Policy::RoundRobin),
            // Under `reuseport` each process has a socket of its own.
            "kernel" | "reuseport" => Some(Policy::Kernel),
            "sticky" => Some(Policy::Sticky),
            _ => None,
        }
    }
}

/// The row whose turn it is, of `rows` rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    pub row: u32,
    pub rows: u32,
}

/// Load of a loop that takes connections, from the scoreboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Number of the row, counted through all processes.
    pub row: u32,
    pub open: u32,
    pub in_flight: u32,
    /// Maximum number of connections for the loop.
    pub limit: u32,
    /// Time for which a connection was left untaken or a ping unanswered, in ms; 0 for neither.
    pub silent_ms: u32,
}

/// True: the loop gets no connection now.
pub fn is_closed(load: Load) -> bool {
    load.open >= load.limit || load.silent_ms >= BLOCKED_MS
}

/// Set in the score of a loop that is slow.
const SLOW: u32 = 1 << 31;

/// True: the score of a loop that has been silent for a moment.
pub fn is_slow(score: u32) -> bool {
    score & SLOW != 0
}

/// Amount of work of a loop; the smallest comes first. `None`: it gets no connection now.
pub fn score(policy: Policy, turn: Turn, load: Load) -> Option<u32> {
    if is_closed(load) {
        return None;
    }
    let work = match policy {
        Policy::RoundRobin => (turn.rows + load.row - turn.row % turn.rows) % turn.rows,
        _ => load.open.saturating_add(load.in_flight).min(SLOW - 1),
    };
    Some(if load.silent_ms >= SLOW_MS { SLOW | work } else { work })
}

/// Index and score of the best loop; of equals the first from `first` on, wrapping around.
pub fn best(scores: &[Option<u32>], first: usize) -> Option<(usize, u32)> {
    let count = scores.len();
    let in_turn = (0..count).map(|step| (first + step) % count);
    in_turn.filter_map(|index| scores[index].map(|score| (index, score))).min_by_key(|(_, s)| *s)
}

/// True: a process with `own` as its best score leaves a connection to another with `other`. The
/// hand-over wakes a thread, so it needs a difference of at least two connections plus an eighth of
/// `own`.
pub fn is_worth_leaving(policy: Policy, own: Option<u32>, other: Option<u32>) -> bool {
    const MARGIN: u32 = 2;
    const SHARE: u32 = 8;
    let margin = |own| if policy == Policy::RoundRobin { 1 } else { MARGIN + own / SHARE };
    match (own, other) {
        // Without a loop here any other process is better, under every policy.
        (Some(_), _) if matches!(policy, Policy::Kernel | Policy::Sticky) => false,
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(own), Some(other)) => other.saturating_add(margin(own)) <= own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Turn = Turn { row: 0, rows: 4 };
    const IDLE: Load = Load { row: 0, open: 0, in_flight: 0, limit: 100, silent_ms: 0 };

    fn score(load: Load) -> Option<u32> {
        super::score(Policy::LeastLoaded, FIRST, load)
    }

    fn place(loads: &[Load]) -> Option<usize> {
        let scores: Vec<_> = loads.iter().copied().map(score).collect();
        best(&scores, 0).map(|(index, _)| index)
    }

    #[test]
    fn the_loop_with_the_least_to_do_comes_first() {
        let busy = Load { open: 3, ..IDLE };
        assert_eq!(place(&[busy, IDLE]), Some(1));
        let asked = Load { open: 2, in_flight: 2, ..IDLE };
        assert_eq!(place(&[asked, busy]), Some(1));
    }

    #[test]
    fn a_slow_loop_comes_last_and_a_blocked_one_gets_nothing() {
        let slow = Load { silent_ms: SLOW_MS, ..IDLE };
        let blocked = Load { silent_ms: BLOCKED_MS, ..IDLE };
        assert_eq!(place(&[slow, Load { open: 50, ..IDLE }]), Some(1));
        assert_eq!(place(&[slow, blocked]), Some(0));
        assert_eq!(place(&[blocked, blocked]), None);
    }

    #[test]
    fn a_full_loop_gets_nothing() {
        assert_eq!(place(&[Load { open: 100, ..IDLE }]), None);
        assert_eq!(place(&[Load { limit: 0, ..IDLE }]), None);
        assert_eq!(place(&[]), None);
    }

    #[test]
    fn equals_get_connections_in_turn() {
        let scores = [Some(1), Some(1), None, Some(1)];
        let turns: Vec<_> = (0..4).map(|first| best(&scores, first).expect("one").0).collect();
        assert_eq!(turns, [0, 1, 3, 3]);
    }

    #[test]
    fn a_connection_is_left_to_a_process_that_has_clearly_less_to_do() {
        let is_worth = |own, other| is_worth_leaving(Policy::LeastLoaded, own, other);
        assert!(!is_worth(Some(3), Some(2)));
        assert!(is_worth(Some(4), Some(2)));
        assert!(!is_worth(Some(80), Some(70)), "of many, more");
        assert!(is_worth(Some(80), Some(68)));
        assert!(is_worth(Some(1 << 31), Some(500)), "a slow loop to any other");
        assert!(is_worth(None, Some(9)));
        assert!(!is_worth(None, None));
        assert!(!is_worth(Some(3), None));
    }

    #[test]
    fn in_turn_the_next_live_row_of_the_circle_comes_first() {
        let in_turn = |row, turn| {
            let load = Load { row, open: 50, ..IDLE };
            super::score(Policy::RoundRobin, Turn { row: turn, rows: 4 }, load)
        };
        assert_eq!([0, 1, 2, 3].map(|row| in_turn(row, 2)), [2, 3, 0, 1].map(Some));
        assert_eq!(in_turn(1, 7), Some(2), "a turn beyond the last row begins anew");
        let blocked = Load { silent_ms: BLOCKED_MS, ..IDLE };
        assert_eq!(super::score(Policy::RoundRobin, FIRST, blocked), None);
        assert!(is_worth_leaving(Policy::RoundRobin, Some(1), Some(0)));
        assert!(!is_worth_leaving(Policy::RoundRobin, Some(0), Some(1)));
    }

    #[test]
    fn under_the_kernels_choice_only_connections_without_a_loop_here_are_left_to_others() {
        assert!(!is_worth_leaving(Policy::Kernel, Some(90), Some(0)));
        assert!(is_worth_leaving(Policy::Kernel, None, Some(0)));
    }

    #[test]
    fn no_load_is_too_large_to_be_compared() {
        let most = Load { open: u32::MAX - 1, in_flight: u32::MAX, limit: u32::MAX, ..IDLE };
        assert!(score(most) < score(Load { silent_ms: SLOW_MS, ..IDLE }));
    }
}
