//! Checked access to the words of a space. Every index that comes from shared memory may be forged: it is
//! compared with the size, and gives an error, never a panic.

use super::layout::{self, Log, Shape, constant, phase, word};
use crate::error::{CoreError, Result};
use crate::region::Region;
use crate::sync::{AtomicU32, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};

/// A thread that makes transactions, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Participant(pub u32);

impl Participant {
    /// The value of a lock word that it holds: odd, where versions are even.
    pub fn lock(self) -> u32 {
        self.0 << 1 | 1
    }

    /// The holder of a lock word; `None`: it is a version.
    pub fn of_lock(value: u32) -> Option<Participant> {
        (value & 1 == 1).then_some(Participant(value >> 1))
    }
}

/// The thread that has a participant's number now. Two threads that have had one number differ in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    /// The thread in the system (`registry`); 0: none.
    pub state: u32,
    pub count: u32,
}

/// A right of one participant to act for another, or alone; it ends with its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim(pub u32);

impl Claim {
    const NUMBER_BITS: u32 = 11;

    fn new(Participant(number): Participant, life: Life) -> Claim {
        Claim(life.count << Claim::NUMBER_BITS | (number + 1))
    }

    /// `None`: nobody's.
    pub fn holder(self) -> Option<Participant> {
        (self.0 & ((1 << Claim::NUMBER_BITS) - 1)).checked_sub(1).map(Participant)
    }

    /// False: its holder's number has another thread since.
    pub fn is_of(self, life: Life) -> bool {
        self.0 >> Claim::NUMBER_BITS == life.count << Claim::NUMBER_BITS >> Claim::NUMBER_BITS
    }
}

/// The state of a participant's commit: which one, and how far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status(pub u32);

impl Status {
    pub fn phase(self) -> u32 {
        self.0 & phase::MASK
    }

    pub fn with(self, phase: u32) -> Status {
        Status(self.0 & !phase::MASK | phase)
    }

    /// The status of the next commit, which takes locks.
    pub fn next(self) -> Status {
        Status(self.0.wrapping_add(phase::SEQUENCE)).with(phase::LOCKING)
    }
}

/// True: a snapshot is so old that versions cannot be compared with it for much longer. `now`: the clock.
pub(super) fn is_old(snapshot: u32, now: u32) -> bool {
    now.wrapping_sub(snapshot) >= 1 << 30
}

/// True: version `left` is newer than `right`; the clock wraps.
pub fn is_newer(left: u32, right: u32) -> bool {
    left.wrapping_sub(right) as i32 > 0
}

#[derive(Debug)]
pub struct Space<R> {
    region: R,
    shape: Shape,
}

impl<R: Region> Space<R> {
    /// True: nobody has opened a space in this region.
    pub fn is_unused(region: &R) -> bool {
        region.word(constant::ID as usize * 4).load(Acquire) == 0 // written last
    }

    /// Opens the space of this shape, in a region whose words are 0 until somebody opens it. `id`: the number of
    /// the space, if this is the first to open it.
    pub fn open(region: R, shape: Shape, id: u32) -> Result<Space<R>> {
        if region.size_bytes() < shape.size_words as usize * 4 {
            let value = region.size_bytes() as u64;
            return Err(CoreError::Corrupt { what: "the size of a space", value });
        }
        let space = Space { region, shape };
        let constants = [
            (constant::VERSION, layout::VERSION),
            (constant::SIZE_WORDS, shape.size_words),
            (constant::PARTICIPANTS, shape.participants),
            (constant::MAGIC, layout::MAGIC),
            (word::EPOCH, 1),
            (word::HEAP_TOP, shape.chunks_at()),
            (constant::ID, id.max(1)),
        ];
        for (at, value) in constants {
            // All write the same, so any order of several who open it gives one result.
            let found = space.word(at)?.compare_exchange(0, value, AcqRel, Acquire);
            let is_fixed = at < layout::LINE_WORDS && at != constant::ID;
            if let Err(found) = found
                && is_fixed
                && found != value
            {
                return Err(Self::refusal(at, found));
            }
        }
        Ok(space)
    }

    /// The error for a space with a constant that is none of this binary.
    fn refusal(at: u32, found: u32) -> CoreError {
        let what = match at {
            constant::VERSION => {
                let (what, own) = ("the transactional memory", layout::VERSION);
                return CoreError::Version { what, found, own };
            }
            constant::MAGIC => "the magic number of TVars",
            constant::SIZE_WORDS => "the number of words for TVars",
            _ => "the number of threads for TVars",
        };
        CoreError::Corrupt { what, value: found.into() }
    }

    pub fn shape(&self) -> Shape {
        self.shape
    }

    pub fn region(&self) -> &R {
        &self.region
    }

    /// The number of this space.
    pub fn id(&self) -> Result<u32> {
        Ok(self.word(constant::ID)?.load(Relaxed))
    }

    pub fn word(&self, at: u32) -> Result<&AtomicU32> {
        if at >= self.shape.size_words {
            return Err(CoreError::Corrupt { what: "the index of a word", value: at.into() });
        }
        Ok(self.region.word(at as usize * 4))
    }

    /// The lock word of an object, which lies behind the logs.
    pub fn lock(&self, at: u32) -> Result<&AtomicU32> {
        if at < self.shape.heap_at() {
            return Err(CoreError::Corrupt { what: "the index of an object", value: at.into() });
        }
        self.word(at)
    }

    /// A word of a participant; `field`: of `layout::participant`.
    pub fn of(&self, Participant(number): Participant, field: u32) -> Result<&AtomicU32> {
        self.word(self.field_at(Participant(number), field)?)
    }

    /// The place of a word of a participant.
    pub fn field_at(&self, Participant(number): Participant, field: u32) -> Result<u32> {
        if number >= self.shape.participants {
            return Err(CoreError::Corrupt { what: "a participant", value: number.into() });
        }
        Ok(layout::PARTICIPANTS_AT + number * layout::PARTICIPANT_WORDS + field)
    }

    /// The log of a participant now.
    pub fn log(&self, of: Participant) -> Result<Log> {
        let at = self.of(of, layout::participant::LOG_AT)?.load(Acquire);
        Ok(match at {
            0 => self.shape.small_log(of.0),
            _ => Log { at, writes: self.shape.large_writes },
        })
    }

    /// Adds 1 to a counter of `me`.
    pub fn count(&self, me: Participant, counter: u32) -> Result<()> {
        let word = self.of(me, layout::participant::COUNTERS + counter)?;
        word.store(word.load(Relaxed).wrapping_add(1), Relaxed);
        Ok(())
    }

    /// The thread that has a participant's number.
    pub fn life(&self, of: Participant) -> Result<Life> {
        Ok(Life {
            state: self.of(of, layout::participant::STATE)?.load(Acquire),
            count: self.of(of, layout::participant::LIFE)?.load(Acquire),
        })
    }

    /// The claim of `me`.
    pub fn claim_of(&self, me: Participant) -> Result<Claim> {
        Ok(Claim::new(me, self.life(me)?))
    }
}
