//! The surroundings of transactions in a real process: threads of the system, waits that grow, futexes.

use super::commit::{Peer, Surroundings, TRIES_PER_QUESTION};
use super::space::Life;
use crate::error::{CoreError, Result};
use crate::sync::AtomicU32;
use crate::sys;
use std::cell::Cell;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Threads of the system, as one number: the thread's, and the low bits of its start time. Linux has at most 2²²
/// threads.
const THREAD_BITS: u32 = 22;

/// The number that stands for a thread of the system; `None`: there is none, or it has ended.
pub fn thread_state(thread: u32) -> Option<u32> {
    state_in(&std::fs::read_to_string(format!("/proc/{thread}/stat")).ok()?, thread)
}

fn state_in(text: &str, thread: u32) -> Option<u32> {
    // The name, in brackets, may contain anything; field 3 follows it.
    let fields: Vec<&str> = text[text.rfind(')')? + 1..].split_ascii_whitespace().collect();
    if matches!(fields.first(), None | Some(&"Z" | &"X" | &"x")) {
        return None;
    }
    let start: u64 = fields.get(19)?.parse().ok()?;
    Some((start as u32) << THREAD_BITS | thread & ((1 << THREAD_BITS) - 1))
}

/// True: the thread of this state still runs, or that cannot be said: a system may hide the threads of other users, and
/// a process may have no descriptor left.
pub fn is_alive(state: u32) -> bool {
    if state == 0 {
        return false; // no thread, whose number would be that of a process group
    }
    let thread = thread_of(state);
    match std::fs::read_to_string(format!("/proc/{thread}/stat")) {
        Ok(text) => state_in(&text, thread) == Some(state),
        Err(_) => sys::is_thread(thread),
    }
}

/// The number of a thread in the system.
pub fn thread_of(state: u32) -> u32 {
    state & ((1 << THREAD_BITS) - 1)
}

/// Tries without, and with a call of the system, before a wait sleeps.
const SPINS: u32 = 30;
const YIELDS: u32 = 128;
const NAP: Duration = Duration::from_micros(50);
/// Epochs that are held back before the same question.
const HELD_BACK: u32 = 16;

/// The longest wait for a thread that lives, where none is set.
const PATIENCE: Duration = Duration::from_secs(1);

/// One for each thread.
#[derive(Debug, Default)]
pub struct Live {
    began: Cell<Option<Instant>>,
    patience: Duration,
    /// For tests: this process kills or stops itself before a step, at a passing of it.
    kill_at: Cell<Option<(u8, u32)>>,
    stop_at: Cell<Option<(u8, u32)>>,
}

/// Read once, by the first thread of JavaScript: another one may write the environment later.
static PASSINGS: OnceLock<[Option<(u8, u32)>; 2]> = OnceLock::new();

/// The step and the passing that a variable of the environment names, as `7:3`.
fn passing_in(variable: &str) -> Option<(u8, u32)> {
    let text = std::env::var(variable).ok()?;
    let (step, passing) = text.split_once(':')?;
    Some((step.parse().ok()?, passing.parse().ok()?))
}

/// Counts a passing of `step`; true: it is the one.
fn is_reached(place: &Cell<Option<(u8, u32)>>, step: u8) -> bool {
    let Some((at, passings)) = place.get().filter(|&(at, _)| at == step) else { return false };
    place.set((passings > 1).then_some((at, passings - 1)));
    passings <= 1
}

impl Live {
    /// For tests, `MANYCORE_STM_KILL=7:3` ends this process when it is before step 7 for the third time, and
    /// `MANYCORE_STM_STOP` stops it there.
    pub fn new() -> Live {
        Live::with_patience(PATIENCE)
    }

    /// `patience`: the longest wait for a thread that lives and does not go on.
    pub fn with_patience(patience: Duration) -> Live {
        let [kill_at, stop_at] =
            *PASSINGS.get_or_init(|| ["MANYCORE_STM_KILL", "MANYCORE_STM_STOP"].map(passing_in));
        Live {
            began: Cell::new(None),
            patience,
            kill_at: Cell::new(kill_at),
            stop_at: Cell::new(stop_at),
        }
    }
}

impl Surroundings for Live {
    fn pass(&self, step: u8) -> Result<()> {
        if is_reached(&self.kill_at, step) {
            sys::kill_self();
        }
        if is_reached(&self.stop_at, step) {
            sys::stop_self();
        }
        Ok(())
    }

    fn wait(&self, tries: u32, on: Peer) -> Result<bool> {
        match tries {
            0 => self.began.set(None),
            1..SPINS => std::hint::spin_loop(),
            SPINS..YIELDS => std::thread::yield_now(),
            _ => std::thread::sleep(NAP),
        }
        if tries % TRIES_PER_QUESTION != TRIES_PER_QUESTION - 1 {
            return Ok(false);
        }
        if !is_alive(on.life.state) {
            return Ok(true);
        }
        let began = self.began.get().unwrap_or_else(Instant::now);
        self.began.set(Some(began));
        if began.elapsed() > self.patience {
            return Err(CoreError::Stuck { thread: thread_of(on.life.state) });
        }
        Ok(false)
    }

    fn has_gone(&self, times: u32, life: Life) -> Result<bool> {
        Ok(times >= HELD_BACK && !is_alive(life.state))
    }

    fn ring(&self, bell: &AtomicU32) {
        sys::futex_wake(bell);
    }
}
