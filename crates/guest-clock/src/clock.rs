//! The clock that all threads of a program share. Two places for the line (`Scale`): readers use the one of the
//! present generation, a measurement fills the other and then makes it the present one. No reader waits, so that a
//! signal handler may read while its own thread measures.

use crate::scale::{FIRST_NS, Reading, Scale};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, fence};

const NS: u64 = 1_000_000_000;
/// Readings of one measurement; the fastest counts, because nothing has come between its two parts.
const TRIES: u32 = 3;

/// A `Scale`, and the distance from the monotonic clock to the time of day.
struct Place {
    ticks: AtomicU64,
    ns: AtomicU64,
    slope: AtomicU64,
    span: AtomicU64,
    day_ns: AtomicU64,
}

pub struct Clock {
    /// The present generation; its place is the lowest bit. 0: nothing is measured.
    generation: AtomicU64,
    places: [Place; 2],
    is_measuring: AtomicBool,
    first_ticks: AtomicU64,
    first_ns: AtomicU64,
    /// The latest time that the monotonic clock has returned.
    latest_ns: AtomicU64,
}

impl Clock {
    pub const fn new() -> Clock {
        Clock {
            generation: AtomicU64::new(0),
            places: [Place::new(), Place::new()],
            is_measuring: AtomicBool::new(false),
            first_ticks: AtomicU64::new(0),
            first_ns: AtomicU64::new(0),
            latest_ns: AtomicU64::new(0),
        }
    }

    /// Nanoseconds of CLOCK_MONOTONIC.
    pub fn monotonic(&self) -> u64 {
        let (ns, _) = self.now();
        // Relaxed: a number by itself. Threads with different generations agree by it.
        self.latest_ns.fetch_max(ns, Relaxed).max(ns)
    }

    /// Nanoseconds of CLOCK_REALTIME.
    pub fn realtime(&self) -> u64 {
        let (ns, day_ns) = self.now();
        ns.wrapping_add(day_ns)
    }

    /// The time, and the distance to the time of day.
    fn now(&self) -> (u64, u64) {
        if !has_steady_counter() {
            return kernel_now();
        }
        let ticks = ticks();
        match self.read() {
            Some((scale, day_ns)) if !scale.is_over(ticks) => (scale.ns(ticks), day_ns),
            known => self.measure(known.map(|(scale, _)| scale)),
        }
    }

    /// The present line; `None`: nothing is measured.
    fn read(&self) -> Option<(Scale, u64)> {
        loop {
            // Acquire pairs with the Release store of `publish`: its place is filled.
            let generation = self.generation.load(Acquire);
            if generation == 0 {
                return None;
            }
            let read = self.places[(generation & 1) as usize].get();
            // Pairs with the fence in `publish`: a read of a later generation's numbers also shows that
            // generation's predecessor here, which is not the one of above.
            fence(Acquire);
            if self.generation.load(Relaxed) == generation {
                return Some(read);
            }
        }
    }

    /// Measures, unless another thread does so; then the clock of the kernel answers.
    fn measure(&self, known: Option<Scale>) -> (u64, u64) {
        // Acquire and Release of `is_measuring`: the first reading is seen by the next thread that measures.
        if self.is_measuring.swap(true, Acquire) {
            return kernel_now();
        }
        let scale = match known {
            Some(scale) => Some(scale.next(self.first(), reading())),
            None => self.begin(),
        };
        let (now_ns, day_ns) = kernel_now();
        if let Some(scale) = scale {
            self.publish(scale, day_ns);
        }
        self.is_measuring.store(false, Release);
        (scale.map_or(now_ns, |scale| scale.ns(ticks())), day_ns)
    }

    fn first(&self) -> Reading {
        Reading { ticks: self.first_ticks.load(Relaxed), ns: self.first_ns.load(Relaxed) }
    }

    fn begin(&self) -> Option<Scale> {
        let first = reading();
        let mut second = reading();
        while second.ns.saturating_sub(first.ns) < FIRST_NS {
            second = reading();
        }
        self.first_ticks.store(first.ticks, Relaxed);
        self.first_ns.store(first.ns, Relaxed);
        Scale::through(first, second)
    }

    /// Makes this line the present one; only with `is_measuring`.
    fn publish(&self, scale: Scale, day_ns: u64) {
        let next = self.generation.load(Relaxed) + 1;
        // Pairs with the fence in `read`: before a number of this place, its generation's predecessor is seen.
        fence(Release);
        self.places[(next & 1) as usize].set(scale, day_ns);
        // Release pairs with the Acquire load in `read`.
        self.generation.store(next, Release);
    }
}

impl Place {
    const fn new() -> Place {
        Place {
            ticks: AtomicU64::new(0),
            ns: AtomicU64::new(0),
            slope: AtomicU64::new(0),
            span: AtomicU64::new(0),
            day_ns: AtomicU64::new(0),
        }
    }

    fn get(&self) -> (Scale, u64) {
        let at = Reading { ticks: self.ticks.load(Relaxed), ns: self.ns.load(Relaxed) };
        let scale = Scale { at, slope: self.slope.load(Relaxed), span: self.span.load(Relaxed) };
        (scale, self.day_ns.load(Relaxed))
    }

    fn set(&self, scale: Scale, day_ns: u64) {
        self.ticks.store(scale.at.ticks, Relaxed);
        self.ns.store(scale.at.ns, Relaxed);
        self.slope.store(scale.slope, Relaxed);
        self.span.store(scale.span, Relaxed);
        self.day_ns.store(day_ns, Relaxed);
    }
}

/// The counter and the kernel's clock, as near together as `TRIES` readings get.
fn reading() -> Reading {
    let mut best = (u64::MAX, Reading { ticks: 0, ns: 0 });
    for _ in 0..TRIES {
        let before = ticks();
        let ns = kernel_ns(libc::CLOCK_MONOTONIC);
        let took = ticks().wrapping_sub(before);
        if took < best.0 {
            best = (took, Reading { ticks: before.wrapping_add(took / 2), ns });
        }
    }
    best.1
}

fn ticks() -> u64 {
    use std::arch::x86_64::{_mm_lfence, _rdtsc};
    // The counter is not read before what the program did before.
    // SAFETY: every processor of this architecture has it.
    unsafe { _mm_lfence() };
    // SAFETY: every processor of this architecture has it, and kernels leave it to programs.
    unsafe { _rdtsc() }
}

/// True: the counter has one rate and never stops ("invariant TSC": leaf 0x8000_0007, bit 8 of EDX).
fn has_steady_counter() -> bool {
    use std::arch::x86_64::__cpuid;
    const UNKNOWN: u64 = 0;
    const YES: u64 = 1;
    const NO: u64 = 2;
    static KNOWN: AtomicU64 = AtomicU64::new(UNKNOWN);
    // Relaxed: every thread finds the same.
    match KNOWN.load(Relaxed) {
        UNKNOWN => {
            let has_leaf = __cpuid(0x8000_0000).eax >= 0x8000_0007;
            let is_steady = has_leaf && __cpuid(0x8000_0007).edx & (1 << 8) != 0;
            KNOWN.store(if is_steady { YES } else { NO }, Relaxed);
            is_steady
        }
        known => known == YES,
    }
}

fn kernel_now() -> (u64, u64) {
    let ns = kernel_ns(libc::CLOCK_MONOTONIC);
    (ns, kernel_ns(libc::CLOCK_REALTIME).wrapping_sub(ns))
}

/// The time of the kernel; past the functions of this library.
pub fn kernel_ns(id: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is live.
    unsafe { libc::syscall(libc::SYS_clock_gettime, id, &mut now) };
    (now.tv_sec as u64).wrapping_mul(NS).wrapping_add(now.tv_nsec as u64)
}

pub fn timespec(ns: u64) -> libc::timespec {
    libc::timespec { tv_sec: (ns / NS) as libc::time_t, tv_nsec: (ns % NS) as libc::c_long }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    /// Far more than a busy machine stops a thread for.
    const MINUTE_NS: u64 = 60 * NS;

    #[test]
    fn it_goes_with_the_clocks_of_the_kernel() {
        let clock = Clock::new();
        let begin = kernel_ns(libc::CLOCK_MONOTONIC);
        // Several measurements: the intervals grow from 2 ms, and a busy machine may stop this thread for any time.
        let is_measured = || !has_steady_counter() || clock.generation.load(Relaxed) > 2;
        while kernel_ns(libc::CLOCK_MONOTONIC) - begin < NS / 5 || !is_measured() {
            assert!(kernel_ns(libc::CLOCK_MONOTONIC) - begin < MINUTE_NS, "it was measured once");
            let before = kernel_ns(libc::CLOCK_MONOTONIC);
            let own = clock.monotonic();
            let after = kernel_ns(libc::CLOCK_MONOTONIC);
            let slack = NS / 100;
            assert!(own + slack > before && own < after + slack, "{before} {own} {after}");
        }
        let own = clock.realtime();
        assert!(own.abs_diff(kernel_ns(libc::CLOCK_REALTIME)) < MINUTE_NS);
    }

    #[test]
    fn no_thread_gets_a_time_before_that_of_another() {
        let clock = Clock::new();
        let latest = AtomicU64::new(0);
        let end = kernel_ns(libc::CLOCK_MONOTONIC) + NS / 10;
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while kernel_ns(libc::CLOCK_MONOTONIC) < end {
                        let seen = latest.load(Acquire);
                        let now = clock.monotonic();
                        assert!(now >= seen, "{now} comes after {seen}");
                        latest.fetch_max(now, Release);
                    }
                });
            }
        });
    }
}
