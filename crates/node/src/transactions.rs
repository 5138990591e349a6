//! Transactional memory as JavaScript uses it: it reads the words of the space by itself, and notes reads and writes
//! on a desk, memory that both sides see. What must not be interrupted is one call: a commit, a block, a watch.

use crate::bare_function::bare_function;
use crate::collected::Collected;
use crate::desk::{
    DESK_READS, DESK_WORDS, DESK_WRITES, Desk, FREES, MAX_READS, MAX_WRITES, RETIRES, WRITE_WORDS,
};
use crate::error::{Result, refused, to_js};
use crate::segment::external_buffer;
use crate::space_file;
use crate::uncounted::uncounted_buffer;
use manycore_core::region::{Mapping, Region};
use manycore_core::stm::contention::Contended;
use manycore_core::stm::figures::Figures;
use manycore_core::stm::layout::{Shape, counter, participant, word};
use manycore_core::stm::live::Live;
use manycore_core::stm::live::{is_alive, thread_state};
use manycore_core::stm::waiter::{self, MappedSpace, Waiter};
use manycore_core::stm::{Commit, Outcome, Participant, Space, value};
use manycore_core::{CoreError, sys as core_sys};
use napi::bindgen_prelude::{Env, Function, Unknown};
use napi_derive::napi;
use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The same for all that share a space.
fn shape_of(mapping: &Mapping) -> Shape {
    Shape {
        size_words: (mapping.size_bytes() / 4) as u32,
        participants: 1024,
        small_writes: 256,
        large_writes: 4 * MAX_WRITES as u32 + 64,
        watch_words: 4096,
    }
}

/// The parts of a participant that a commit uses.
pub struct Committer {
    space: Arc<MappedSpace>,
    me: Participant,
    around: Live,
    desk: Arc<Desk>,
    commit: RefCell<Commit>,
    is_closed: Cell<bool>,
}

impl Committer {
    /// 0: a conflict, without an effect. The snapshot is the commit's version otherwise.
    fn commit(&self) -> Result<u32> {
        self.check_open()?;
        let mut commit = self.commit.borrow_mut();
        self.read_desk(&mut commit).map_err(to_js)?;
        let outcome = self.space.commit(self.me, &mut commit, &self.around).map_err(to_js)?;
        let Outcome::Committed(version) = outcome else { return Ok(0) };
        self.desk.0[0].set(version);
        Ok(1)
    }

    /// Takes memory for an object of `words` words.
    fn take(&self, words: u32) -> Result<u32> {
        self.check_open()?;
        self.space.take(self.me, words, &self.around).map_err(to_js)
    }

    /// The same for a transaction that frees memory.
    fn take_to_free(&self, words: u32) -> Result<u32> {
        self.check_open()?;
        self.space.take_to_free(self.me, words, &self.around).map_err(to_js)
    }

    fn check_open(&self) -> Result<()> {
        let is_open = !self.is_closed.get();
        is_open.then_some(()).ok_or_else(|| refused("this thread has left the memory"))
    }

    fn read_desk(&self, commit: &mut Commit) -> std::result::Result<(), CoreError> {
        let desk = &self.desk.0;
        let [snapshot, reads, writes] = [0, 1, 2].map(|at| desk[at].get());
        let (reads, writes) = ((reads as usize).min(MAX_READS), (writes as usize).min(MAX_WRITES));
        commit.restart(snapshot);
        commit.keeps_taken = true;
        commit.reads.extend(desk[DESK_READS..DESK_READS + reads].iter().map(Cell::get));
        for write in desk[DESK_WRITES..].chunks_exact(WRITE_WORDS).take(writes) {
            let [lock, header, kind, lo, hi, what] = [0, 1, 2, 3, 4, 5].map(|at| write[at].get());
            self.space.class_of(lock)?;
            if what == RETIRES {
                commit.retired.push(lock);
                continue;
            }
            commit.locks.push(lock);
            commit.unchanged.push((lock - 1, header));
            commit.replaced.push(lock + 1);
            if what == FREES {
                self.space.free_object(lock, commit)?;
            } else {
                commit.writes.extend([(lock + 1, kind), (lock + 2, lo), (lock + 3, hi)]);
            }
        }
        Ok(())
    }
}

#[napi]
pub struct NativeTransactions {
    committer: Rc<Committer>,
    waiter: RefCell<Option<Arc<Waiter>>>,
    woken: Collected,
    held_back: Cell<u32>,
}

impl Deref for NativeTransactions {
    type Target = Committer;

    fn deref(&self) -> &Committer {
        &self.committer
    }
}

#[napi]
impl NativeTransactions {
    /// Makes this thread a participant in the space of its program. `on_wake` is called in its event loop when
    /// something that it watches may have changed. `id` and `size_bytes`: of the space, if this is its first
    /// participant.
    #[napi(constructor)]
    pub fn new(
        env: &Env,
        id: u32,
        size_bytes: f64,
        patience_ms: u32,
        on_wake: Function<'_, (), ()>,
    ) -> Result<NativeTransactions> {
        let mapping = space_file::map(size_bytes as u64).map_err(to_js)?;
        let shape = shape_of(&mapping);
        let space = Space::open(mapping, shape, id).map_err(to_js)?;
        let woken = Collected::new(env, &on_wake)?;
        let around = Live::with_patience(Duration::from_millis(patience_ms.into()));
        let state = thread_state(core_sys::thread_id() as u32)
            .ok_or_else(|| refused("this system has no /proc"))?;
        let me = space.attach(state, is_alive, &around).map_err(to_js)?;
        let committer = Rc::new(Committer {
            space: Arc::new(space),
            me,
            around,
            desk: Arc::new(Desk::new()),
            commit: RefCell::default(),
            is_closed: Cell::new(false),
        });
        let (waiter, held_back) = (RefCell::default(), Cell::new(0));
        Ok(NativeTransactions { committer, waiter, woken, held_back })
    }

    /// All words of the space.
    #[napi]
    pub fn words<'env>(&self, env: &'env Env) -> Result<Unknown<'env>> {
        let mapping = Arc::clone(self.space.region());
        let size_bytes = self.space.shape().size_words as usize * 4;
        shared_buffer(env, mapping.start(), size_bytes, mapping)
    }

    #[napi]
    pub fn desk<'env>(&self, env: &'env Env) -> Result<Unknown<'env>> {
        let start = NonNull::from(&*self.desk.0).cast();
        shared_buffer(env, start, DESK_WORDS * 4, Arc::clone(&self.desk))
    }

    /// Numbers for JavaScript, in the order of `placeNames` (stm/space.ts).
    #[napi]
    pub fn places(&self) -> Result<Vec<u32>> {
        let epoch = self.space.field_at(self.me, participant::EPOCH).map_err(to_js)?;
        let id = self.space.id().map_err(to_js)?;
        Ok(vec![
            id,
            epoch,
            word::EPOCH,
            word::CLOCK,
            word::ROOT,
            self.space.shape().chunks_at(),
            self.space.shape().size_words,
            value::BYTES,
            DESK_READS as u32,
            MAX_READS as u32,
            DESK_WRITES as u32,
            MAX_WRITES as u32,
        ])
    }

    /// A function that takes memory for an object of so many words, and returns its index.
    #[napi]
    pub fn taker<'env>(&self, env: &'env Env) -> napi::Result<Unknown<'env>> {
        let committer = Rc::clone(&self.committer);
        bare_function(env, move |words| committer.take(words))
    }

    /// The same for a transaction that frees memory.
    #[napi]
    pub fn taker_to_free<'env>(&self, env: &'env Env) -> napi::Result<Unknown<'env>> {
        let committer = Rc::clone(&self.committer);
        bare_function(env, move |words| committer.take_to_free(words))
    }

    /// Keeps everything that was taken, outside of a commit.
    #[napi]
    pub fn keep_taken(&self) -> Result<()> {
        let count = self.space.of(self.me, participant::TAKEN_COUNT).map_err(to_js)?;
        count.store(0, Relaxed);
        Ok(())
    }

    /// Gives back what was taken behind the first `kept` objects.
    #[napi]
    pub fn give_back(&self, kept: u32) -> Result<()> {
        self.space.give_taken_back(self.me, kept).map_err(to_js)
    }

    /// A function that commits what the desk holds. 0: a conflict, without an effect.
    #[napi]
    pub fn committer<'env>(&self, env: &'env Env) -> napi::Result<Unknown<'env>> {
        let committer = Rc::clone(&self.committer);
        bare_function(env, move |_| committer.commit())
    }

    /// A later snapshot for the reads of the desk, into its first word. False: one of them has changed.
    #[napi]
    pub fn extend(&self) -> Result<bool> {
        let mut commit = self.commit.borrow_mut();
        self.desk.0[2].set(0);
        self.read_desk(&mut commit).map_err(to_js)?;
        let found = self.space.extend(&commit.reads, commit.snapshot).map_err(to_js)?;
        match found {
            Some(now) => self.desk.0[0].set(now),
            None => self.space.count(self.me, counter::CONFLICTS).map_err(to_js)?,
        }
        Ok(found.is_some())
    }

    /// Returns when the object at `lock` has a version that a snapshot of now can have.
    #[napi]
    pub fn await_object(&self, lock: u32) -> Result<()> {
        self.space.await_lock(self.me, lock, &self.around).map_err(to_js)?;
        let version = self.space.lock(lock).map_err(to_js)?.load(Relaxed);
        if Participant::of_lock(version).is_some() {
            return Ok(());
        }
        self.space.renew(lock, version).map_err(to_js)
    }

    /// Makes changes of what the desk has as reads wake this thread. False: one has changed already.
    #[napi]
    pub fn watch(&self) -> Result<bool> {
        let mut commit = self.commit.borrow_mut();
        self.desk.0[2].set(0);
        self.read_desk(&mut commit).map_err(to_js)?;
        self.space.watch(self.me, &commit.reads, commit.snapshot).map_err(to_js)
    }

    /// One more of this thread's transactions sleeps: `on_wake` is called from now on.
    #[napi]
    pub fn begin_sleep(&self) -> Result<()> {
        self.space.count(self.me, counter::SLEEPS).map_err(to_js)?;
        let mut waiter = self.waiter.borrow_mut();
        if waiter.is_none() {
            let keys = self.woken.keys();
            let notify = Box::new(move || keys.add(0.0));
            *waiter = Some(waiter::add(&self.space, self.me, notify).map_err(to_js)?);
        }
        waiter.as_ref().map_or(Ok(()), |waiter| waiter.begin_sleep().map_err(to_js))
    }

    #[napi]
    pub fn end_sleep(&self) {
        if let Some(waiter) = &*self.waiter.borrow() {
            waiter.end_sleep();
        }
    }

    /// Lets the next wake-up call `on_wake` again.
    #[napi]
    pub fn take_wake(&self) -> Result<()> {
        self.woken.take();
        self.space.take_wake(self.me).map(|_| ()).map_err(to_js)
    }

    /// Keeps others from committing. False: another participant does.
    #[napi]
    pub fn begin_serial(&self) -> Result<bool> {
        self.space.begin_serial(self.me, &self.around).map_err(to_js)
    }

    #[napi]
    pub fn end_serial(&self) -> Result<()> {
        self.space.end_serial(self.me).map_err(to_js)
    }

    /// Counts of all threads so far, in the order of `figureNames` (stm/stats.ts).
    #[napi]
    pub fn figures(&self) -> Result<Vec<u32>> {
        let Figures { participants, counts, heap_words } = self.space.figures().map_err(to_js)?;
        Ok([participants, heap_words].into_iter().chain(counts).collect())
    }

    /// Objects that conflicts were about of late: the index of each, 1 for a collection, and how many.
    #[napi]
    pub fn contended(&self) -> Result<Vec<u32>> {
        let found = self.space.contended().map_err(to_js)?;
        let each = |Contended { object, is_collection, conflicts }| {
            [object, u32::from(is_collection), conflicts]
        };
        Ok(found.into_iter().flat_map(each).collect())
    }

    /// Frees memory that no transaction sees any more; between two transactions.
    #[napi]
    pub fn tidy(&self) -> Result<()> {
        let mut held_back = self.held_back.get();
        let done = self.space.reclaim(self.me, &mut held_back, &self.around);
        self.held_back.set(held_back);
        done.and_then(|()| self.space.share_free(self.me, &self.around)).map_err(to_js)
    }

    /// Gives the participant's number back: nothing may be called afterwards.
    #[napi]
    pub fn close(&self) -> Result<()> {
        self.leave().map_err(to_js)
    }
}

/// Lets those that sleep complete what a worker of this process, which has just ended, was committing.
#[napi]
pub fn note_end() -> Result<()> {
    let Some(mapping) = space_file::map_if_open().map_err(to_js)? else { return Ok(()) };
    if MappedSpace::is_unused(&mapping) {
        return Ok(());
    }
    let shape = shape_of(&mapping);
    let space = Space::open(mapping, shape, 0).map_err(to_js)?;
    space.note_end(&Live::new()).map_err(to_js)
}

impl NativeTransactions {
    fn leave(&self) -> std::result::Result<(), CoreError> {
        if self.is_closed.replace(true) {
            return Ok(());
        }
        if let Some(waiter) = self.waiter.borrow_mut().take() {
            waiter.remove(self.me)?;
        }
        self.woken.close();
        self.space.end_serial(self.me)?;
        self.space.detach(self.me)
    }
}

impl Drop for NativeTransactions {
    /// Runs when the thread ends, also in the middle of a transaction: a commit is one call, which has returned.
    fn drop(&mut self) {
        // Words that are forged stay: whoever meets them finds the thread ended.
        let _ = self.leave();
    }
}

/// Memory as a buffer whose bytes V8 does not count, where that can be had.
fn shared_buffer<T: Send + 'static>(
    env: &Env,
    start: NonNull<u8>,
    size_bytes: usize,
    keep: T,
) -> Result<Unknown<'_>> {
    // SAFETY: the memory has these bytes, and `keep` holds it.
    match unsafe { uncounted_buffer(env, start, size_bytes, Box::new(keep)) } {
        Ok(made) => made,
        Err(kept) => external_buffer(env, start, size_bytes, kept),
    }
}
