//! The threads behind the participants' numbers. A number of a thread that has ended goes to the next one, which
//! first undoes or completes its commit, and inherits its free memory.

use super::commit::{Peer, Surroundings};
use super::layout::{participant as field, phase, word};
use super::space::{Participant, Space, Status};
use crate::error::{CoreError, Result};
use crate::region::Region;
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sys;

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

impl<R: Region> Space<R> {
    /// Takes a number for the thread of `state`: a free one, or that of a thread that has ended.
    pub fn attach(
        &self,
        state: u32,
        is_alive: impl Fn(u32) -> bool,
        around: &impl Surroundings,
    ) -> Result<Participant> {
        for number in 0..self.shape().participants {
            let me = Participant(number);
            let found = self.of(me, field::STATE)?.load(Acquire);
            if found != 0 && is_alive(found) {
                continue;
            }
            let own = self.of(me, field::STATE)?;
            if own.compare_exchange(found, state, AcqRel, Relaxed).is_err() {
                continue;
            }
            let life = self.of(me, field::LIFE)?;
            life.store(life.load(Relaxed).wrapping_add(1), Release);
            self.word(word::NUMBERS)?.fetch_max(number + 1, AcqRel);
            self.of(me, field::BELL_OF)?.store(number, Relaxed);
            self.recover_own(me, around)?;
            return Ok(me);
        }
        Err(CoreError::Crowded { participants: self.shape().participants })
    }

    /// Frees the number of a thread that goes on, or ends in order, outside of a transaction.
    pub fn detach(&self, me: Participant) -> Result<()> {
        self.give_taken_back(me, 0)?;
        self.leave(me)?;
        self.of(me, field::STATE)?.store(0, Release);
        Ok(())
    }

    /// Recovers all participants whose threads have ended and that hold locks or memory.
    pub fn recover_ended(
        &self,
        me: Participant,
        is_alive: impl Fn(u32) -> bool,
        around: &impl Surroundings,
    ) -> Result<()> {
        for number in 0..self.word(word::NUMBERS)?.load(Acquire).min(self.shape().participants) {
            let number = Participant(number);
            let life = self.life(number)?;
            let is_busy = Status(self.of(number, field::STATUS)?.load(Acquire)).phase()
                != phase::IDLE
                || self.of(number, field::EPOCH)?.load(Acquire) != 0;
            if number != me && is_busy && life.state != 0 && !is_alive(life.state) {
                self.recover(me, Peer { number, life }, around)?;
            }
        }
        Ok(())
    }
}
