//! The line from the counter of the processor to nanoseconds: a point on it, and its slope. Pure numbers, so that
//! tests can pass any counter.

/// Parts of a nanosecond in `slope`, as a power of two.
const SLOPE_BITS: u32 = 32;
/// Time for which the first slope is measured: its error is that of a reading, some 10 µs, in this time.
pub const FIRST_NS: u64 = 2_000_000;
/// Each interval is so many times longer than the one before.
const GROWTH: u64 = 8;
const LONGEST_NS: u64 = 60_000_000_000;
/// The largest correction of the slope, as a part of it: 1/16. A larger lead is worked off in several intervals.
const CORRECTION: u64 = 16;

/// A reading of the counter and of the kernel's clock at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    pub ticks: u64,
    pub ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    pub at: Reading,
    /// Nanoseconds for each tick, times 2^32.
    pub slope: u64,
    /// Ticks from `at` to the next measurement.
    pub span: u64,
}

impl Scale {
    /// The line through two readings; `None` where the counter did not go forward with the clock.
    pub fn through(first: Reading, second: Reading) -> Option<Scale> {
        let slope = slope(first, second)?;
        let span = (second.ticks - first.ticks).saturating_mul(GROWTH);
        Some(Scale { at: second, slope, span })
    }

    /// The time at a reading of the counter; before `at`: the time there.
    pub fn ns(&self, ticks: u64) -> u64 {
        let passed = u128::from(ticks.saturating_sub(self.at.ticks));
        let ns = (passed * u128::from(self.slope)) >> SLOPE_BITS;
        self.at.ns.saturating_add(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// True: it is time to measure again, or the counter has gone back.
    pub fn is_over(&self, ticks: u64) -> bool {
        ticks.wrapping_sub(self.at.ticks) >= self.span
    }

    /// The line after a measurement. `first`: the reading with which all began. A clock that is late goes to the
    /// kernel's; one that is early goes on from its own time, and slower until both meet.
    pub fn next(&self, first: Reading, now: Reading) -> Scale {
        // A counter that has gone back begins again.
        let slope = slope(first, now).unwrap_or(self.slope);
        let span = self.next_span(slope);
        let own = self.ns(now.ticks);
        let Some(lead) = own.checked_sub(now.ns).filter(|&lead| lead > 0) else {
            return Scale { at: now, slope, span };
        };
        let span_ns = ((u128::from(span) * u128::from(slope)) >> SLOPE_BITS).max(1);
        let share = u128::from(slope) * u128::from(lead) / span_ns;
        let most = slope / CORRECTION;
        let less = u64::try_from(share).unwrap_or(most).min(most);
        Scale { at: Reading { ticks: now.ticks, ns: own }, slope: slope - less, span }
    }

    fn next_span(&self, slope: u64) -> u64 {
        let longest = (u128::from(LONGEST_NS) << SLOPE_BITS) / u128::from(slope.max(1));
        self.span.saturating_mul(GROWTH).min(u64::try_from(longest).unwrap_or(u64::MAX))
    }
}

fn slope(first: Reading, second: Reading) -> Option<u64> {
    let ticks = second.ticks.checked_sub(first.ticks).filter(|&ticks| ticks > 0)?;
    let ns = second.ns.checked_sub(first.ns).filter(|&ns| ns > 0)?;
    u64::try_from((u128::from(ns) << SLOPE_BITS) / u128::from(ticks))
        .ok()
        .filter(|&slope| slope > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Reading = Reading { ticks: 1_000_000, ns: 5_000 };
    const MINUTE: u64 = 60_000_000_000;

    fn reading(ticks: u64, ns: u64) -> Reading {
        Reading { ticks, ns }
    }

    /// Three ticks for each nanosecond.
    fn scale() -> Scale {
        Scale::through(FIRST, reading(7_000_000, 2_005_000)).expect("it went forward")
    }

    #[test]
    fn time_is_on_the_line() {
        assert_eq!(scale().ns(7_000_000), 2_005_000);
        assert!(scale().ns(7_000_000 + 3_000_000).abs_diff(3_005_000) <= 1);
        assert_eq!(scale().ns(10), 2_005_000);
    }

    #[test]
    fn a_counter_that_stands_still_or_goes_back_has_no_line() {
        for second in [FIRST, reading(999_999, 6_000), reading(2_000_000, 5_000)] {
            assert_eq!(Scale::through(FIRST, second), None);
        }
    }

    #[test]
    fn measurements_grow_apart_up_to_a_minute() {
        let mut scale = scale();
        let mut spans = Vec::new();
        for _ in 0..12 {
            let ticks = scale.at.ticks + scale.span;
            assert!(scale.is_over(ticks) && !scale.is_over(ticks - 1));
            scale = scale.next(FIRST, reading(ticks, FIRST.ns + (ticks - FIRST.ticks) / 3));
            spans.push(scale.ns(scale.at.ticks + scale.span) - scale.at.ns);
        }
        assert!(spans.is_sorted(), "{spans:?}");
        assert!(spans[0] < 1_000_000_000, "{spans:?}");
        assert!(spans[11].abs_diff(MINUTE) < 1000, "{spans:?}");
    }

    #[test]
    fn a_late_clock_goes_to_the_right_time() {
        let now = reading(13_000_000, 4_105_000); // the line says 4,005,000
        assert_eq!(scale().next(FIRST, now).at, now);
    }

    #[test]
    fn an_early_clock_goes_on_slower_until_it_is_right() {
        let wrong = scale();
        let now = reading(55_000_000, 17_905_000); // the line says 18,005,000
        let next = wrong.next(FIRST, now);
        assert_eq!(next.at.ns, wrong.ns(now.ticks));
        let right = slope(FIRST, now).expect("it went forward");
        assert!(next.slope < right, "{} {right}", next.slope);
        let end = now.ticks + next.span;
        let right = Scale { at: now, slope: right, span: 0 };
        assert!(next.ns(end).abs_diff(right.ns(end)) < 100, "{}", next.ns(end));
    }

    #[test]
    fn an_hour_of_lead_does_not_stop_the_clock() {
        let wrong = Scale { at: reading(7_000_000, 3600 * MINUTE), ..scale() };
        let next = wrong.next(FIRST, reading(13_000_000, 4_005_000));
        assert!(next.ns(13_000_000 + 3_000_000) > next.ns(13_000_000) + 900_000);
    }

    #[test]
    fn a_counter_that_has_gone_back_is_measured_again() {
        assert!(scale().is_over(6_999_999));
        let next = scale().next(FIRST, reading(10, 3_000_000));
        assert_eq!((next.at, next.slope), (reading(10, 3_000_000), scale().slope));
    }
}
