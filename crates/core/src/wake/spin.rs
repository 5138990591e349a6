//! Decides from recent results whether to spin. A side that polls its rings for a moment before it
//! sleeps gets the next frame sooner, or burns a core for nothing. Not here: whether the peer runs at
//! all.

/// Spins in vain before pausing, and the maximum pause, in chances to spin.
const MISSES_ALLOWED: u32 = 3;
const MAX_PAUSE: u32 = 64;

#[derive(Debug, Default)]
pub struct SpinHistory {
    misses: u32,
    pause: u32,
    is_fresh: bool,
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

    /// Records the end of a spin, by a frame or in vain.
    pub fn note_spin(&mut self, came: bool) {
        if came {
            self.misses = 0;
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
            history.note_spin(false);
        }
        for pause in [1, 2, 4, 8, 16, 32, 64, 64] {
            assert!((0..pause).all(|_| !history.takes_chance()), "pause of {pause}");
            assert!(history.takes_chance());
            history.note_spin(false);
        }
        while !history.takes_chance() {}
        history.note_spin(true);
        assert!(history.takes_chance());
    }

    #[test]
    fn a_spin_in_vain_is_not_repeated_before_a_frame() {
        let mut history = SpinHistory::default();
        assert!(!history.is_fresh());
        history.note_frame();
        assert!(history.is_fresh());
        history.note_spin(false);
        assert!(!history.is_fresh());
    }
}
