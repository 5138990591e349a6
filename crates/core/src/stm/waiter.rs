//! The thread that sleeps for the event loops of a process: an event loop cannot wait on a futex. It is a
//! participant of its own, whose bell those of the process share. It starts with the first sleeper, and waits
//! without end while there is none.

use super::layout::{participant as field, word};
use super::live::{Live, is_alive, thread_state};
use super::space::{Participant, Space};
use crate::error::{CoreError, Result};
use crate::region::Mapping;
use crate::sync::Ordering::{AcqRel, Acquire, Release};
use crate::sys;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

/// The space as a process sees it.
pub type MappedSpace = Space<Arc<Mapping>>;
/// Called on the waiter's thread.
pub type Notify = Box<dyn Fn() + Send>;

/// While somebody sleeps, the end of a participant is noticed after this, also where its parent has noticed nothing.
const ROUND: Duration = Duration::from_secs(1);
const ENDLESS: Duration = Duration::from_secs(3600);

#[derive(Default)]
struct Sleepers {
    /// All that sleep now and then.
    known: Vec<(Participant, Notify)>,
    /// Number of those that sleep now.
    asleep: usize,
    /// True: the thread waits without end.
    is_endless: bool,
}

/// One of a process and a space.
pub struct Waiter {
    space: Arc<MappedSpace>,
    me: Participant,
    sleepers: Mutex<Sleepers>,
}

/// One for each space of this process: a program has one, tests have more.
static WAITERS: Mutex<Vec<Arc<Waiter>>> = Mutex::new(Vec::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the waiter, which calls `notify` whenever `participant` may have been woken, until `remove`.
pub fn add(
    space: &Arc<MappedSpace>,
    participant: Participant,
    notify: Notify,
) -> Result<Arc<Waiter>> {
    let waiter = waiter_of(space)?;
    space.of(participant, field::BELL_OF)?.store(waiter.me.0, Release);
    // A wake-up that came before would let the next one ring nobody.
    space.take_wake(participant)?;
    lock(&waiter.sleepers).known.push((participant, notify));
    Ok(waiter)
}

fn waiter_of(space: &Arc<MappedSpace>) -> Result<Arc<Waiter>> {
    let id = space.id()?;
    let mut waiters = lock(&WAITERS);
    for waiter in waiters.iter() {
        if waiter.space.id()? == id {
            return Ok(Arc::clone(waiter));
        }
    }
    let (started, ready) = mpsc::channel();
    let own = Arc::clone(space);
    let thread = std::thread::Builder::new().name("manycore-stm".to_owned());
    let spawned = thread.spawn(move || {
        let waiter = Waiter::of_this_thread(own).map(Arc::new);
        let sent = started.send(waiter.clone());
        if let (Ok(()), Ok(waiter)) = (sent, waiter) {
            waiter.run();
        }
    });
    spawned.map_err(|error| refused_thread(&error))?;
    let failed = CoreError::Unsupported { what: "thread that waits" };
    let waiter = ready.recv().map_err(|_| failed)??;
    waiters.push(Arc::clone(&waiter));
    Ok(waiter)
}

fn refused_thread(error: &std::io::Error) -> CoreError {
    CoreError::Refused { what: "a thread", errno: error.raw_os_error().unwrap_or(0) }
}

impl Waiter {
    fn of_this_thread(space: Arc<MappedSpace>) -> Result<Waiter> {
        let thread = sys::thread_id() as u32;
        let state = thread_state(thread).ok_or(CoreError::Unsupported { what: "/proc" })?;
        let me = space.attach(state, is_alive, &Live::new())?;
        Ok(Waiter { space, me, sleepers: Mutex::default() })
    }

    /// Ends the calls of `add`; none is running when it returns.
    pub fn remove(&self, participant: Participant) -> Result<()> {
        lock(&self.sleepers).known.retain(|(number, _)| *number != participant);
        self.space.of(participant, field::BELL_OF)?.store(participant.0, Release);
        Ok(())
    }

    /// Notes that one more sleeper sleeps: from now on the ends of threads are noticed, too.
    pub fn begin_sleep(&self) -> Result<()> {
        let mut sleepers = lock(&self.sleepers);
        sleepers.asleep += 1;
        if !std::mem::take(&mut sleepers.is_endless) {
            return Ok(());
        }
        let bell = self.space.of(self.me, field::BELL)?;
        bell.fetch_add(1, AcqRel);
        sys::futex_wake(bell);
        Ok(())
    }

    pub fn end_sleep(&self) {
        let mut sleepers = lock(&self.sleepers);
        sleepers.asleep = sleepers.asleep.saturating_sub(1);
    }

    fn run(&self) {
        let around = Live::new();
        let mut ends = self.ends();
        let mut checked = Instant::now();
        // The own number is in range, so the words exist.
        while let Ok(bell) = self.space.of(self.me, field::BELL) {
            let seen = bell.load(Acquire);
            let is_endless = self.notify();
            let ends_now = self.ends();
            if !is_endless && (checked.elapsed() >= ROUND || ends != ends_now) {
                (ends, checked) = (ends_now, Instant::now());
                // A participant that is stuck, or forged words: the next round tries again.
                let _ = self.space.recover_ended(self.me, is_alive, &around);
            }
            sys::futex_wait(bell, seen, if is_endless { ENDLESS } else { ROUND });
        }
    }

    /// The ends of threads that parents have noticed so far.
    fn ends(&self) -> u32 {
        self.space.word(word::ENDS).map_or(0, |ends| ends.load(Acquire))
    }

    /// Notifies all that were woken. True: nobody sleeps.
    fn notify(&self) -> bool {
        let mut sleepers = lock(&self.sleepers);
        for (participant, notify) in &sleepers.known {
            let wake = self.space.of(*participant, field::WAKE);
            if wake.is_ok_and(|wake| wake.load(Acquire) != 0) {
                notify();
            }
        }
        sleepers.is_endless = sleepers.asleep == 0;
        sleepers.is_endless
    }
}
