//! Makes one thread stand still for a moment while another changes what it works with: the protocol on
//! one word. The first is called the loop here; the second, the taker, sends it a signal.
//!
//! ```text
//! free → asked      the taker, then it sends the signal
//! asked → standing  the handler in the loop's thread, which then waits
//! asked → free      the taker, when no handler came within its bound
//! standing → held   the taker: the loop stands until it is let go
//! standing → free   the handler, when the taker did not come within its bound
//! held → free       the taker
//! ```
//!
//! Only while the word is `held` may the taker act. Neither side can leave the other behind: each bound
//! ends with a step that fails when the other was faster. A signal that comes late finds no question, or
//! serves the next one, because a gate belongs to one thread. The model is in `tests/loom.rs`.

use crate::sync::AtomicU32;
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};

const FREE: u32 = 0;
const ASKED: u32 = 1;
const STANDING: u32 = 2;
const HELD: u32 = 3;

#[derive(Debug)]
pub struct Gate {
    word: AtomicU32,
    /// 1 from the sending of a signal to the start of its handler.
    is_signalled: AtomicU32,
}

impl Default for Gate {
    fn default() -> Gate {
        Gate { word: AtomicU32::new(FREE), is_signalled: AtomicU32::new(0) }
    }
}

impl Gate {
    /// For the taker: asks the loop to stand. True: it must be sent a signal; otherwise one is on its way.
    pub fn ask(&self) -> bool {
        self.word.store(ASKED, Release);
        // AcqRel pairs with the handler's swap: a handler that has cleared it comes after the question,
        // or a signal is sent.
        self.is_signalled.swap(1, AcqRel) == 0
    }

    /// For the taker, when the signal that `ask` requested cannot be sent.
    pub fn take_back(&self) {
        self.is_signalled.store(0, Release);
        self.word.store(FREE, Release);
    }

    /// For the taker: true when the loop stands, and stays so until `release`.
    pub fn try_hold(&self) -> bool {
        // Acquire pairs with the Release of `stand`: all that the loop has done is visible.
        self.word.compare_exchange(STANDING, HELD, Acquire, Relaxed).is_ok()
    }

    /// For the taker: stops waiting. False: the loop stands, or stood.
    pub fn withdraw(&self) -> bool {
        self.word.compare_exchange(ASKED, FREE, Relaxed, Relaxed).is_ok()
    }

    /// For the taker, after `try_hold`: the loop goes on.
    pub fn release(&self) {
        // Release pairs with the Acquire load of `stand`: the loop sees all that was changed.
        self.word.store(FREE, Release);
    }

    /// For the loop, in the handler of the signal: stands while it is asked to. `wait` pauses for a moment and
    /// returns false when the bound is over.
    pub fn stand(&self, mut wait: impl FnMut() -> bool) {
        self.is_signalled.swap(0, AcqRel); // before the word is read: see `ask`
        if self.word.compare_exchange(ASKED, STANDING, AcqRel, Relaxed).is_err() {
            return;
        }
        loop {
            match self.word.load(Acquire) {
                STANDING => {
                    let is_over = !wait();
                    if is_over
                        && self.word.compare_exchange(STANDING, FREE, Acquire, Acquire).is_ok()
                    {
                        return;
                    }
                }
                HELD => {
                    wait();
                }
                _ => return,
            }
        }
    }
}
