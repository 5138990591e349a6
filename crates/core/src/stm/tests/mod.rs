//! The parts of a space in memory of one process; participants end where a test says so.

mod commits;
mod memory;
mod resize;
mod watches;

use super::commit::{Peer, Surroundings, TRIES_PER_QUESTION};
use super::layout::Shape;
use super::space::{Life, Participant, Space};
use crate::error::{CoreError, Result};
use crate::region::Region;
use crate::sync::AtomicU32;
use std::cell::Cell;
use std::sync::Mutex;

/// Words in memory of this process.
pub struct Words(Vec<AtomicU32>);

impl Words {
    pub fn new(count: u32) -> Words {
        Words((0..count).map(|_| AtomicU32::new(0)).collect())
    }
}

// SAFETY: a word's place depends on its offset alone; there are no copies.
unsafe impl Region for Words {
    fn size_bytes(&self) -> usize {
        self.0.len() * 4
    }
    fn word(&self, offset: usize) -> &AtomicU32 {
        &self.0[offset / 4]
    }
    fn copy_in(&self, _offset: usize, _bytes: &[u8]) {
        unreachable!("words alone")
    }
    fn copy_out(&self, _offset: usize, _bytes: &mut [u8]) {
        unreachable!("words alone")
    }
}

pub const CELLS: u32 = 4;
pub const SHAPE: Shape = Shape {
    size_words: 1 << 20,
    participants: 8,
    small_writes: 32,
    large_writes: 4096,
    watch_words: 16,
};

pub fn space() -> Space<Words> {
    Space::open(Words::new(SHAPE.size_words), SHAPE, 7).expect("sound")
}

/// The lock and the word of a cell, which lies where no chunk comes in these tests.
pub fn cell(number: u32) -> (u32, u32) {
    let lock = SHAPE.size_words - 64 + 4 * number;
    (lock, lock + 1)
}

/// Participants that have ended, and the step at which one ends, with the passings before.
#[derive(Default)]
pub struct World {
    pub dead: Mutex<Vec<Participant>>,
    /// States of threads that have ended.
    pub gone: Mutex<Vec<u32>>,
    pub end_at: Cell<Option<(u8, u32)>>,
}

pub const ENDED: CoreError = CoreError::Unsupported { what: "life any more" };

impl Surroundings for World {
    fn pass(&self, step: u8) -> Result<()> {
        match self.end_at.get() {
            Some((at, 0)) if at == step => Err(ENDED),
            Some((at, passes)) if at == step => {
                self.end_at.set(Some((at, passes - 1)));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn has_ended(&self) -> bool {
        self.end_at.get().is_some_and(|(_, passes)| passes == 0)
    }

    fn wait(&self, tries: u32, on: Peer) -> Result<bool> {
        assert!(tries < 1_000_000, "{on:?} holds up the others");
        std::thread::yield_now();
        // A real one asks as seldom.
        let asks = tries % TRIES_PER_QUESTION == TRIES_PER_QUESTION - 1;
        Ok(asks && self.dead.lock().expect("no panic").contains(&on.number))
    }

    fn has_gone(&self, times: u32, life: Life) -> Result<bool> {
        assert!(times < 1_000, "{life:?} holds the memory back");
        Ok(self.gone.lock().expect("no panic").contains(&life.state))
    }
}

/// A World that several threads share: nobody ends.
pub struct Calm;

impl Surroundings for Calm {
    fn wait(&self, _tries: u32, _on: Peer) -> Result<bool> {
        std::thread::yield_now();
        Ok(false)
    }
}
