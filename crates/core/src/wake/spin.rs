//! Decides from recent results whether to spin. A side that polls its rings for a moment before it
//! sleeps gets the next frame sooner, or burns a core for nothing. Not here: whether the peer runs at
//! all.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Spins in vain before pausing, and the maximum pause, in chances to spin.
const MISSES_ALLOWED: u32 = 3;
const MAX_PAUSE: u32 = 64;

#[derive(Debug, Default)]
pub struct SpinHistory {
    misses: u32,
    pause: u32,
    is_fresh: bool,
    /// Length of the last spin that paid.
    reach: Duration,
}

impl SpinHistory {
    /// Records that a frame came or went.
    pub fn note_frame(&mut self) {
        self.is_fresh = true;
    }

    /// True: a frame came or went since the last spin in vain.
    pub fn is_fresh(&self) -> bool {
        self.is_fresh
    }

    /// True: spin now. A chance that is not taken shortens the pause.
    pub fn takes_chance(&mut self) -> bool {
        if self.pause > 0 {
            self.pause -= 1;
            return false;
        }
        true
    }

    /// Maximum length of a spin, twice that of the last one that paid. The spin behind a pause has all of
    /// `limits`: it must also reach a frame of a peer that slept, or two sides that both sleep never meet awake.
    pub fn window(&self, limits: RangeInclusive<Duration>) -> Duration {
        let (least, most) = limits.into_inner();
        if self.misses >= MISSES_ALLOWED { most } else { (2 * self.reach).clamp(least, most) }
    }

    /// Records the end of a spin: its length until a frame came, or `None` in vain.
    pub fn note_spin(&mut self, came_after: Option<Duration>) {
        if let Some(length) = came_after {
            self.misses = 0;
            self.reach = length;
            return;
        }
        self.is_fresh = false;
        self.misses += 1;
        if self.misses >= MISSES_ALLOWED {
            self.pause = (1 << (self.misses - MISSES_ALLOWED).min(6)).min(MAX_PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_three_spins_in_vain_the_pauses_grow_until_one_pays() {
        let mut history = SpinHistory::default();
        for _ in 0..MISSES_ALLOWED {
            assert!(history.takes_chance());
            history.note_spin(None);
        }
        for pause in [1, 2, 4, 8, 16, 32, 64, 64] {
            assert!((0..pause).all(|_| !history.takes_chance()), "pause of {pause}");
            assert!(history.takes_chance());
            history.note_spin(None);
        }
        while !history.takes_chance() {}
        history.note_spin(Some(Duration::ZERO));
        assert!(history.takes_chance());
    }

    #[test]
    fn the_window_follows_what_paid_and_is_whole_behind_a_pause() {
        let [least, paid, most] = [50, 80, 200].map(Duration::from_micros);
        let mut history = SpinHistory::default();
        assert_eq!(history.window(least..=most), least);
        history.note_spin(Some(paid));
        assert_eq!(history.window(least..=most), 2 * paid);
        for _ in 0..MISSES_ALLOWED {
            assert_eq!(history.window(least..=most), 2 * paid);
            history.note_spin(None);
        }
        assert_eq!(history.window(least..=most), most);
        assert_eq!(history.window(least..=least), least);
    }

    #[test]
    fn a_spin_in_vain_is_not_repeated_before_a_frame() {
        let mut history = SpinHistory::default();
        assert!(!history.is_fresh());
        history.note_frame();
        assert!(history.is_fresh());
        history.note_spin(None);
        assert!(!history.is_fresh());
    }
}
