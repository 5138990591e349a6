//! The surroundings of transactions in a real process: waits that grow, threads of the system, futexes.

use super::commit::{Peer, Surroundings};
use super::registry::{is_alive, thread_of};
use super::space::Life;
use crate::error::{CoreError, Result};
use crate::sync::AtomicU32;
use crate::sys;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// Tries without, and with a call of the system, before a wait sleeps.
const SPINS: u32 = 30;
const YIELDS: u32 = 128;
const NAP: Duration = Duration::from_micros(50);
/// Tries between two questions whether a thread lives, which read a file of /proc.
const TRIES_PER_QUESTION: u32 = 128;
/// Epochs that are held back before the same question.
const HELD_BACK: u32 = 16;

/// The longest wait for a thread that lives.
const PATIENCE: Duration = Duration::from_secs(1);

/// One for each thread.
#[derive(Debug, Default)]
pub struct Live {
    began: Cell<Option<Instant>>,
    /// For tests: this process kills itself before a step, at a passing of it.
    kill_at: Cell<Option<(u8, u32)>>,
}

impl Live {
    /// For tests, `MANYCORE_STM_KILL=7:3` ends this process when it is before step 7 for the third time.
    pub fn new() -> Live {
        let kill_at = std::env::var("MANYCORE_STM_KILL").ok().and_then(|text| {
            let (step, passing) = text.split_once(':')?;
            Some((step.parse().ok()?, passing.parse().ok()?))
        });
        Live { began: Cell::new(None), kill_at: Cell::new(kill_at) }
    }
}

impl Surroundings for Live {
    fn pass(&self, step: u8) -> Result<()> {
        if let Some((at, passings)) = self.kill_at.get()
            && at == step
        {
            if passings <= 1 {
                sys::kill_self();
            }
            self.kill_at.set(Some((at, passings - 1)));
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
        if began.elapsed() > PATIENCE {
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
