//! Decides whether an event loop polls its rings for a moment before it sleeps, and on which core.
//!
//! Spinning pays only when the peer really runs on another core, so each side publishes its core. No
//! side spins when more threads of the pool are awake than there are cores, under a CPU quota, when
//! nothing is awaited, or after a few spins in vain. An idle loop never gets here: it sleeps in epoll.
//! Not here: the history of spins and of moves (core's wake/spin.rs and cpu/placement.rs).

use crate::channel_end::End;
use manycore_core::cpu::affinity;
use manycore_core::cpu::placement::{self, Moves};
use manycore_core::layout::word;
use manycore_core::segment::Side;
use manycore_core::sync::Ordering::Relaxed;
use manycore_core::sys as core_sys;
use manycore_core::wake::spin::SpinHistory;
use napi_derive::napi;
use std::cell::{Cell, RefCell};
use std::ops::RangeInclusive;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

/// Maximum times of a spin for an answer (parent) or for the next request (worker). A worker may reach the
/// request of a parent that has to be woken; a parent never waits so long, because it has other work.
const PARENT_SPIN: RangeInclusive<Duration> = Duration::from_micros(20)..=Duration::from_micros(20);
const WORKER_SPIN: RangeInclusive<Duration> =
    Duration::from_micros(50)..=Duration::from_micros(200);
/// Checks of the words between two reads of the clock.
const POLLS_PER_CLOCK: u32 = 64;

/// The core of a guest, and the number of cores outside, which its own kernel cannot find out. 0: this is no
/// guest.
static GUEST_CORES: AtomicU64 = AtomicU64::new(0);

/// Sets the core that this process publishes, and the number of cores that it counts with. For a guest, before its
/// first channel.
#[napi]
pub fn set_guest_cores(core: u32, core_count: u32) {
    // Relaxed: this thread reads it.
    GUEST_CORES.store(u64::from(core) << 32 | u64::from(core_count), Relaxed);
}

/// The core of this thread, and the number of cores that it may use.
fn guest_cores() -> Option<(u32, u32)> {
    let both = GUEST_CORES.load(Relaxed);
    (both != 0).then_some(((both >> 32) as u32, both as u32))
}

fn current_core() -> Option<u32> {
    guest_cores().map(|(core, _)| core).or_else(core_sys::current_cpu)
}

fn core_count() -> u32 {
    let own = || affinity::allowed().map_or(1, |cpus| cpus.len() as u32);
    guest_cores().map_or_else(own, |(_, count)| count)
}

pub(crate) struct Spin {
    cpu_count: u32,
    history: RefCell<SpinHistory>,
    moves: RefCell<Moves>,
    /// Time that JavaScript was busy with the last delivery.
    delivery_took: Cell<Duration>,
}

impl Spin {
    pub(crate) fn new() -> Spin {
        Spin {
            cpu_count: core_count(),
            history: RefCell::default(),
            moves: RefCell::new(Moves::new(Instant::now())),
            delivery_took: Cell::default(),
        }
    }

    /// Records that JavaScript was called and was busy for this time.
    pub(crate) fn note_delivery(&self, took: Duration) {
        self.history.borrow_mut().note_frame();
        self.delivery_took.set(took);
    }

    /// Publishes for the peers the core of this thread and, as the parent, the number of awake threads.
    pub(crate) fn publish(&self, ends: &mut [Option<End>]) {
        let cpu = current_core().map_or(0, |cpu| cpu + 1);
        let mut awake = 1;
        let mut is_fresh = false;
        for end in ends.iter_mut().flatten() {
            awake += u32::from(end.is_peer_awake());
            let out_tail = end.load(end.words.out_tail);
            is_fresh |= out_tail != end.seen_out_tail;
            end.seen_out_tail = out_tail;
        }
        for end in ends.iter().flatten() {
            // Relaxed: a hint. A plain load first, so that the line moves only when it changes.
            let own = end.segment.word(end.words.own_cpu);
            if own.load(Relaxed) != cpu {
                own.store(cpu, Relaxed);
            }
            let count = end.segment.word(word::AWAKE_COUNT);
            if end.side == Side::Parent && count.load(Relaxed) != awake {
                count.store(awake, Relaxed);
            }
        }
        if is_fresh {
            self.history.borrow_mut().note_frame();
        }
    }

    /// Time that is worth spinning now; `None`: not at all. `is_alone` returns true when the loop has
    /// nothing else to do.
    pub(crate) fn limit(
        &self,
        ends: &[Option<End>],
        is_alone: impl Fn() -> bool,
    ) -> Option<Duration> {
        if self.cpu_count < 2 || !self.history.borrow().is_fresh() {
            return None;
        }
        let own_cpu = current_core().map(|cpu| cpu + 1)?;
        let mut limit = None;
        let mut awake_here = 1;
        let mut awake_reported = 0;
        for end in ends.iter().flatten() {
            awake_here += u32::from(end.side == Side::Parent && end.is_peer_awake());
            if !end.own_words.is_held() {
                continue;
            }
            let peer_cpu = end.load(end.words.peer_cpu);
            if !end.may_spin || peer_cpu == 0 {
                return None;
            }
            if end.side == Side::Worker {
                awake_reported = awake_reported.max(end.load(word::AWAKE_COUNT));
            }
            if peer_cpu == own_cpu && !end.is_peer_awake() {
                continue; // the peer sleeps: it needs no core, and no frame is near
            }
            if peer_cpu == own_cpu {
                let is_crowded = awake_reported > self.cpu_count;
                if end.side == Side::Parent || is_crowded || !self.leave_core(own_cpu - 1) {
                    return None;
                }
            }
            let window = self.history.borrow().window(match end.side {
                Side::Parent => PARENT_SPIN,
                Side::Worker => WORKER_SPIN,
            });
            limit = limit.max(Some(window));
        }
        let fits = awake_here.max(awake_reported) <= self.cpu_count;
        limit.filter(|_| fits && is_alone() && self.history.borrow_mut().takes_chance())
    }

    /// Moves this thread off its parent's core; false when it may not, or not yet.
    fn leave_core(&self, core: u32) -> bool {
        let is_due = self.moves.borrow_mut().takes_chance(Instant::now(), self.delivery_took.get());
        is_due && placement::leave(core)
    }

    /// True when something came while spinning.
    pub(crate) fn run(&self, limit: Duration, is_any_pending: impl Fn() -> bool) -> bool {
        let start = Instant::now();
        let came = loop {
            if (0..POLLS_PER_CLOCK).any(|_| {
                std::hint::spin_loop();
                is_any_pending()
            }) {
                break true;
            }
            if start.elapsed() > limit {
                break false;
            }
        };
        self.history.borrow_mut().note_spin(came.then(|| start.elapsed()));
        came
    }
}
