//! Serves all channels of one event loop: sleeps without missing a frame, and calls JavaScript.
//!
//! There is one set of hooks per environment for any number of channels. `prepare` runs before the loop
//! sleeps: it delivers frames and spins a little when an answer is near. Otherwise it arms the sleep
//! words, checks once more (`wake::sleep`) and lets epoll block. `check` runs after: it disarms and
//! delivers. Peers ring an eventfd only when the word is 1; its poll callback only clears it. An `idle`
//! handle keeps the loop from sleeping when a delivery had to stop for its time limit.
//!
//! Hooks, bells and handles share one life: they are closed together, when the environment ends, and
//! the order is in one place here. Not here: whether to spin, and on which core (spin.rs).

use crate::call::call_into_js;
use crate::channel_end::{End, EndWords};
use crate::error::{Result, refused, to_js};
use crate::spin::Spin;
use crate::uv::{self, Handle, Hook, Loop, Uv};
use manycore_core::sync::Ordering::{Relaxed, SeqCst};
use manycore_core::sync::fence;
use manycore_core::wake::doorbell::{Doorbell, Rung};
use manycore_core::wake::sleep;
use napi::sys;
use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time for which one `prepare` may deliver before other I/O gets its turn.
const DELIVERY_LIMIT: Duration = Duration::from_micros(500);

/// A doorbell that this loop polls.
pub(crate) struct Bell {
    pub(crate) doorbell: Rc<Doorbell>,
    poll: *mut Handle,
    ref_count: Cell<u32>,
    /// Number of ends and offers that use it; at zero it is closed.
    pub(crate) user_count: Cell<u32>,
}

/// Data of a libuv handle.
struct HandleData {
    shared: Rc<Shared>,
    doorbell: Option<Rc<Doorbell>>,
    /// Words of the only end that has this doorbell.
    words: Option<Arc<EndWords>>,
}

pub(crate) struct Shared {
    uv: Uv,
    at: *mut Loop,
    env: sys::napi_env,
    deliver: sys::napi_ref,
    hooks: Cell<Option<Hooks>>,
    pub(crate) ends: RefCell<Vec<Option<End>>>,
    pub(crate) own_bell: RefCell<Option<Rc<Bell>>>,
    is_hooked: Cell<bool>,
    is_idle_running: Cell<bool>,
    spin: Spin,
    /// Number of handles whose close callback has not run yet, and the hook that waits for them at the
    /// end.
    closing_count: Cell<u32>,
    cleanup: Cell<sys::napi_async_cleanup_hook_handle>,
}

#[derive(Clone, Copy)]
struct Hooks {
    prepare: *mut Handle,
    check: *mut Handle,
    idle: *mut Handle,
}

impl Shared {
    /// Creates the hooks, stopped; they are closed when the environment ends.
    pub(crate) fn new(
        env: sys::napi_env,
        uv: Uv,
        at: *mut Loop,
        deliver: sys::napi_ref,
    ) -> Rc<Shared> {
        let shared = Rc::new(Shared {
            uv,
            at,
            env,
            deliver,
            hooks: Cell::new(None),
            ends: RefCell::default(),
            own_bell: RefCell::default(),
            is_hooked: Cell::new(false),
            is_idle_running: Cell::new(false),
            spin: Spin::new(),
            closing_count: Cell::new(0),
            cleanup: Cell::new(null_mut()),
        });
        let make = |hook: Hook| {
            // SAFETY: on the loop's thread, and the loop of a running environment is live.
            unsafe { uv.init_hook(at, hook, shared.handle_data(None, None)) }
        };
        let hooks = Hooks { prepare: make(uv.prepare), check: make(uv.check), idle: make(uv.idle) };
        shared.hooks.set(Some(hooks));
        let data = Rc::into_raw(Rc::clone(&shared)).cast_mut().cast();
        // SAFETY: `data` stays valid until the hook takes it back.
        unsafe {
            sys::napi_add_async_cleanup_hook(env, Some(on_environment_end), data, null_mut())
        };
        shared
    }

    fn for_each(&self, mut visit: impl FnMut(&mut End)) {
        self.ends.borrow_mut().iter_mut().flatten().for_each(&mut visit);
    }

    fn is_any_pending(&self) -> bool {
        self.ends.borrow().iter().flatten().any(End::is_pending)
    }

    fn arm(&self) {
        for end in self.ends.borrow().iter().flatten() {
            // The fence below makes it `sleep::arm` for all of them at once.
            end.segment.word(end.words.own_asleep).store(sleep::ASLEEP, Relaxed);
        }
        // SeqCst pairs with the fence in `sleep::must_ring` and with JavaScript's `Atomics`: the stores
        // above stay before the checks that follow.
        fence(SeqCst);
    }

    fn disarm(&self) {
        for end in self.ends.borrow().iter().flatten() {
            sleep::disarm(end.segment.word(end.words.own_asleep));
        }
    }

    /// Calls JavaScript; false when it threw or must not run any more.
    fn deliver(self: &Rc<Self>) -> bool {
        self.for_each(End::begin_delivery);
        let start = Instant::now();
        let is_done = call_into_js(self.env, self.deliver);
        self.spin.note_delivery(start.elapsed());
        is_done
    }

    fn start_idle(&self, hooks: Hooks) {
        if !self.is_idle_running.replace(true) {
            self.uv.start(self.uv.idle, hooks.idle, on_idle);
        }
    }

    fn stop_idle(&self, hooks: Hooks) {
        if self.is_idle_running.replace(false) {
            self.uv.stop(self.uv.idle, hooks.idle);
        }
    }

    /// True when something came while spinning.
    fn spin(&self) -> bool {
        let is_alone = || self.uv.backend_timeout(self.at) != 0;
        let limit = self.spin.limit(&self.ends.borrow(), is_alone);
        limit.is_some_and(|limit| self.spin.run(limit, || self.is_any_pending()))
    }

    fn handle_data(
        self: &Rc<Self>,
        doorbell: Option<Rc<Doorbell>>,
        words: Option<Arc<EndWords>>,
    ) -> *mut c_void {
        let data = HandleData { shared: Rc::clone(self), doorbell, words };
        Box::into_raw(Box::new(data)).cast()
    }

    fn close(&self, handle: *mut Handle) {
        self.closing_count.set(self.closing_count.get() + 1);
        self.uv.close(handle, on_closed);
    }

    /// Starts the hooks when there is an end, otherwise stops them.
    pub(crate) fn update_hooks(&self) {
        let wanted = self.ends.borrow().iter().any(Option::is_some);
        let Some(hooks) = self.hooks.get() else { return };
        if wanted == self.is_hooked.replace(wanted) {
            return;
        }
        if wanted {
            self.uv.start(self.uv.prepare, hooks.prepare, on_prepare);
            self.uv.start(self.uv.check, hooks.check, on_check);
        } else {
            self.uv.stop(self.uv.prepare, hooks.prepare);
            self.uv.stop(self.uv.check, hooks.check);
            self.stop_idle(hooks);
        }
    }

    /// `words`: those of the end that has this bell for itself, which notes its rings there.
    pub(crate) fn new_bell(
        self: &Rc<Self>,
        doorbell: Doorbell,
        words: Option<Arc<EndWords>>,
    ) -> Result<Rc<Bell>> {
        let doorbell = Rc::new(doorbell);
        let fd = doorbell.raw();
        let data = self.handle_data(Some(Rc::clone(&doorbell)), words);
        // SAFETY: on the loop's thread; the handle data keeps the descriptor open until it closed.
        let poll = unsafe { self.uv.start_poll(self.at, fd, data, on_ring) };
        let Some(poll) = poll else {
            // SAFETY: from `handle_data`, and no handle took it.
            drop(unsafe { Box::from_raw(data.cast::<HandleData>()) });
            return Err(refused("the event loop refused to poll a doorbell"));
        };
        Ok(Rc::new(Bell { doorbell, poll, ref_count: Cell::new(0), user_count: Cell::new(0) }))
    }

    /// The bell of all ends for which this side is the parent, made at first use.
    pub(crate) fn own_bell(self: &Rc<Self>) -> Result<Rc<Bell>> {
        if let Some(bell) = self.own_bell.borrow().as_ref() {
            return Ok(Rc::clone(bell));
        }
        let bell = self.new_bell(Doorbell::new().map_err(to_js)?, None)?;
        *self.own_bell.borrow_mut() = Some(Rc::clone(&bell));
        Ok(bell)
    }

    pub(crate) fn leave_bell(&self, bell: &Rc<Bell>) {
        let left = bell.user_count.get().saturating_sub(1);
        bell.user_count.set(left);
        if left > 0 {
            return;
        }
        let mut own = self.own_bell.borrow_mut();
        if own.as_ref().is_some_and(|own| Rc::ptr_eq(own, bell)) {
            *own = None;
        }
        self.close(bell.poll);
    }

    /// Removes the end; its own bell is closed with it.
    pub(crate) fn remove(&self, index: u32) {
        let removed = self.ends.borrow_mut().get_mut(index as usize).and_then(Option::take);
        let Some(end) = removed else { return };
        if end.own_words.is_held() {
            self.count_ref(&end.bell, false);
        }
        self.leave_bell(&end.bell);
        self.update_hooks();
    }

    fn count_ref(&self, bell: &Bell, up: bool) {
        let before = bell.ref_count.get();
        bell.ref_count.set(if up { before + 1 } else { before - 1 });
        match (before, up) {
            (0, true) => self.uv.r#ref(bell.poll),
            (1, false) => self.uv.unref(bell.poll),
            _ => {}
        }
    }

    /// Applies the `ref()` and `unref()` calls of channels since the last time.
    pub(crate) fn settle_refs(&self) {
        self.for_each(|end| {
            if let Some(up) = end.own_words.take_change() {
                self.count_ref(&end.bell, up);
            }
        });
    }

    /// Closes every handle at the end of the environment. The last close callback notifies Node.
    fn tear_down(&self) {
        let end_count = self.ends.borrow().len();
        for index in 0..end_count {
            self.remove(index as u32);
        }
        if let Some(bell) = self.own_bell.borrow_mut().take() {
            self.close(bell.poll);
        }
        if let Some(hooks) = self.hooks.take() {
            for handle in [hooks.prepare, hooks.check, hooks.idle] {
                self.close(handle);
            }
        }
    }

    fn finish_cleanup(&self) {
        let cleanup = self.cleanup.replace(null_mut());
        if !cleanup.is_null() {
            // SAFETY: Node gave this handle and waits for exactly this call.
            unsafe { sys::napi_remove_async_cleanup_hook(cleanup) };
        }
    }
}

/// The data of a handle, with the loop kept alive while the callback runs.
fn shared_of(handle: *mut Handle) -> Rc<Shared> {
    // SAFETY: libuv calls with handles that live.
    let data: *const HandleData = unsafe { uv::data_of(handle) };
    // SAFETY: set from `handle_data` and dropped only in `on_closed`.
    Rc::clone(unsafe { &(*data).shared })
}

unsafe extern "C" fn on_prepare(handle: *mut Handle) {
    let shared = shared_of(handle);
    let Some(hooks) = shared.hooks.get() else { return };
    let mut delivering_since = None;
    loop {
        if shared.is_any_pending() {
            let since = *delivering_since.get_or_insert_with(Instant::now);
            if since.elapsed() > DELIVERY_LIMIT || !shared.deliver() {
                shared.start_idle(hooks);
                return;
            }
            continue;
        }
        // Here and not later: after this hook libuv checks whether anything is alive, and then for how
        // long it may sleep.
        shared.settle_refs();
        shared.spin.publish(&mut shared.ends.borrow_mut());
        if shared.spin() {
            continue;
        }
        shared.arm();
        if !shared.is_any_pending() {
            return;
        }
        shared.disarm();
    }
}

unsafe extern "C" fn on_check(handle: *mut Handle) {
    let shared = shared_of(handle);
    let Some(hooks) = shared.hooks.get() else { return };
    shared.stop_idle(hooks);
    shared.disarm();
    if shared.is_any_pending() {
        shared.deliver();
    }
}

unsafe extern "C" fn on_idle(_handle: *mut Handle) {}

unsafe extern "C" fn on_ring(handle: *mut Handle, _status: c_int, _events: c_int) {
    // SAFETY: libuv calls with handles that live.
    let data: *const HandleData = unsafe { uv::data_of(handle) };
    // SAFETY: set from `handle_data` and dropped only in `on_closed`.
    let data = unsafe { &*data };
    let Some(doorbell) = &data.doorbell else { return };
    let rung = doorbell.take();
    if let Some(words) = &data.words {
        words.note(rung);
    }
    if rung == Rung::Ended {
        data.shared.uv.unwatch(handle); // it would be readable for ever
    }
}

unsafe extern "C" fn on_closed(handle: *mut Handle) {
    // SAFETY: libuv calls with a handle that is not freed yet.
    let data: *mut HandleData = unsafe { uv::data_of(handle) };
    // SAFETY: set from `handle_data`; the close callback runs once.
    let data = unsafe { Box::from_raw(data) };
    data.shared.uv.free(handle);
    let left = data.shared.closing_count.get() - 1;
    data.shared.closing_count.set(left);
    if left == 0 {
        data.shared.finish_cleanup();
    }
}

unsafe extern "C" fn on_environment_end(
    cleanup: sys::napi_async_cleanup_hook_handle,
    shared: *mut c_void,
) {
    // SAFETY: from `Rc::into_raw` in `NativeLoop::new`; the hook runs once.
    let shared = unsafe { Rc::from_raw(shared.cast::<Shared>().cast_const()) };
    shared.cleanup.set(cleanup);
    shared.tear_down();
    if shared.closing_count.get() == 0 {
        shared.finish_cleanup();
    }
}
