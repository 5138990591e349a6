//! The few functions of libuv that the event-loop hooks need, found by name at run time: Node exports
//! them, other runtimes may not. Without them only the shm channel is missing.

use crate::symbols::find;
use napi::sys;
use std::ffi::{c_int, c_void};
use std::rc::Rc;

/// `uv_loop_t` and every `uv_*_t`: opaque here; the library returns their size.
pub type Loop = c_void;
pub type Handle = c_void;

pub const KIND_ASYNC: c_int = 1;
pub const KIND_CHECK: c_int = 2;
pub const KIND_IDLE: c_int = 6;
pub const KIND_POLL: c_int = 8;
pub const KIND_PREPARE: c_int = 9;
const READABLE: c_int = 1;
pub const WRITABLE: c_int = 2;

pub type HandleCallback = unsafe extern "C" fn(*mut Handle);
pub type PollCallback = unsafe extern "C" fn(*mut Handle, c_int, c_int);

type Init = unsafe extern "C" fn(*mut Loop, *mut Handle) -> c_int;
type Start = unsafe extern "C" fn(*mut Handle, HandleCallback) -> c_int;
type Stop = unsafe extern "C" fn(*mut Handle) -> c_int;
type Plain = unsafe extern "C" fn(*mut Handle);

/// Functions that start and stop one kind of handle.
#[derive(Clone, Copy)]
pub struct Hook {
    pub kind: c_int,
    pub init: Init,
    pub start: Start,
    pub stop: Stop,
}

#[derive(Clone, Copy)]
pub struct Uv {
    pub prepare: Hook,
    pub check: Hook,
    pub idle: Hook,
    handle_size: unsafe extern "C" fn(c_int) -> usize,
    poll_init: unsafe extern "C" fn(*mut Loop, *mut Handle, c_int) -> c_int,
    poll_start: unsafe extern "C" fn(*mut Handle, c_int, PollCallback) -> c_int,
    poll_stop: Stop,
    async_init: unsafe extern "C" fn(*mut Loop, *mut Handle, HandleCallback) -> c_int,
    async_send: unsafe extern "C" fn(*mut Handle) -> c_int,
    set_data: unsafe extern "C" fn(*mut Handle, *mut c_void),
    reference: Plain,
    unreference: Plain,
    close: unsafe extern "C" fn(*mut Handle, Option<HandleCallback>),
    backend_timeout: unsafe extern "C" fn(*const Loop) -> c_int,
    backend_fd: unsafe extern "C" fn(*const Loop) -> c_int,
    idle_time: unsafe extern "C" fn(*const Loop) -> u64,
}

/// A loop's address, for the one call that libuv allows from other threads.
struct Elsewhere(*const Loop);

// SAFETY: `uv_metrics_idle_time` is documented as thread-safe.
unsafe impl Send for Elsewhere {}
// SAFETY: as above.
unsafe impl Sync for Elsewhere {}

macro_rules! symbol {
    ($name:literal) => {
        // SAFETY: the field that this fills has the signature of libuv's manual, unchanged since 1.0
        // (1.19 for the handle data, 1.39 for the idle time).
        unsafe { find($name) }?
    };
}

impl Uv {
    /// `None` when this runtime does not export libuv.
    pub fn find() -> Option<Uv> {
        Some(Uv {
            prepare: Hook {
                kind: KIND_PREPARE,
                init: symbol!(c"uv_prepare_init"),
                start: symbol!(c"uv_prepare_start"),
                stop: symbol!(c"uv_prepare_stop"),
            },
            check: Hook {
                kind: KIND_CHECK,
                init: symbol!(c"uv_check_init"),
                start: symbol!(c"uv_check_start"),
                stop: symbol!(c"uv_check_stop"),
            },
            idle: Hook {
                kind: KIND_IDLE,
                init: symbol!(c"uv_idle_init"),
                start: symbol!(c"uv_idle_start"),
                stop: symbol!(c"uv_idle_stop"),
            },
            handle_size: symbol!(c"uv_handle_size"),
            poll_init: symbol!(c"uv_poll_init"),
            poll_start: symbol!(c"uv_poll_start"),
            poll_stop: symbol!(c"uv_poll_stop"),
            async_init: symbol!(c"uv_async_init"),
            async_send: symbol!(c"uv_async_send"),
            set_data: symbol!(c"uv_handle_set_data"),
            reference: symbol!(c"uv_ref"),
            unreference: symbol!(c"uv_unref"),
            close: symbol!(c"uv_close"),
            backend_timeout: symbol!(c"uv_backend_timeout"),
            backend_fd: symbol!(c"uv_backend_fd"),
            idle_time: symbol!(c"uv_metrics_idle_time"),
        })
    }

    /// The loop of an environment.
    pub fn loop_of(env: sys::napi_env) -> Option<*mut Loop> {
        let mut found: *mut sys::uv_loop_s = std::ptr::null_mut();
        // SAFETY: called on the thread of `env` with a live out-parameter.
        let status = unsafe { sys::napi_get_uv_event_loop(env, &mut found) };
        (status == sys::Status::napi_ok && !found.is_null()).then_some(found.cast())
    }

    fn allocate(&self, kind: c_int) -> *mut Handle {
        // SAFETY: plain query.
        let size = unsafe { (self.handle_size)(kind) };
        // SAFETY: plain allocation; freed by `free`.
        unsafe { libc::calloc(1, size) }
    }

    /// Makes a stopped, unreferenced handle of a hook, which carries `data`.
    ///
    /// # Safety
    /// Called on the thread of `at`, which is a live loop.
    pub unsafe fn init_hook(&self, at: *mut Loop, hook: Hook, data: *mut c_void) -> *mut Handle {
        let handle = self.allocate(hook.kind);
        // SAFETY: `handle` has the size that libuv asks for; the loop is live (contract).
        unsafe { (hook.init)(at, handle) };
        // SAFETY: initialised just above.
        unsafe { (self.set_data)(handle, data) };
        handle
    }

    /// Makes a running, unreferenced poll of `fd` for input; `None` when the kernel refuses to poll it.
    ///
    /// # Safety
    /// Called on the thread of `at`, which is a live loop; `fd` stays open until the handle closed.
    pub unsafe fn start_poll(
        &self,
        at: *mut Loop,
        fd: c_int,
        data: *mut c_void,
        callback: PollCallback,
    ) -> Option<*mut Handle> {
        // SAFETY: the contract is the same.
        let handle = unsafe { self.init_poll(at, fd, data) }?;
        self.watch(handle, READABLE, callback);
        self.unref(handle);
        Some(handle)
    }

    /// Makes a stopped poll of `fd`, which carries `data`; `None` when the kernel refuses to poll it.
    ///
    /// # Safety
    /// As of `start_poll`.
    pub unsafe fn init_poll(
        &self,
        at: *mut Loop,
        fd: c_int,
        data: *mut c_void,
    ) -> Option<*mut Handle> {
        let handle = self.allocate(KIND_POLL);
        // SAFETY: `handle` has the size that libuv asks for; the loop is live (contract).
        if unsafe { (self.poll_init)(at, handle, fd) } != 0 {
            self.free(handle);
            return None;
        }
        // SAFETY: initialised just above.
        unsafe { (self.set_data)(handle, data) };
        Some(handle)
    }

    /// Makes an unreferenced handle that runs `callback` after `send` from any thread; `None` when the
    /// kernel gives no descriptor for it.
    ///
    /// # Safety
    /// Called on the thread of `at`, which is a live loop.
    pub unsafe fn init_async(
        &self,
        at: *mut Loop,
        data: *mut c_void,
        callback: HandleCallback,
    ) -> Option<*mut Handle> {
        let handle = self.allocate(KIND_ASYNC);
        // SAFETY: `handle` has the size that libuv asks for; the loop is live (contract).
        if unsafe { (self.async_init)(at, handle, callback) } != 0 {
            self.free(handle);
            return None;
        }
        // SAFETY: initialised just above.
        unsafe { (self.set_data)(handle, data) };
        self.unref(handle);
        Some(handle)
    }

    /// Makes the loop of an async handle run its callback; on any thread.
    pub fn send(&self, handle: *mut Handle) {
        // SAFETY: callers pass an async handle that is initialised and not closing.
        unsafe { (self.async_send)(handle) };
    }

    /// Starts a poll for `events`.
    pub fn watch(&self, handle: *mut Handle, events: c_int, callback: PollCallback) {
        // SAFETY: callers pass a poll that is initialised and not closing, with an open descriptor.
        unsafe { (self.poll_start)(handle, events, callback) };
    }

    pub fn unwatch(&self, handle: *mut Handle) {
        // SAFETY: as of `watch`.
        unsafe { (self.poll_stop)(handle) };
    }

    pub fn start(&self, hook: Hook, handle: *mut Handle, callback: HandleCallback) {
        // SAFETY: callers pass a handle of this hook that is initialised and not closing.
        unsafe { (hook.start)(handle, callback) };
        self.unref(handle);
    }

    pub fn stop(&self, hook: Hook, handle: *mut Handle) {
        // SAFETY: callers pass a handle of this hook that is initialised and not closing.
        unsafe { (hook.stop)(handle) };
    }

    pub fn r#ref(&self, handle: *mut Handle) {
        // SAFETY: callers pass an initialised handle.
        unsafe { (self.reference)(handle) };
    }

    pub fn unref(&self, handle: *mut Handle) {
        // SAFETY: callers pass an initialised handle.
        unsafe { (self.unreference)(handle) };
    }

    /// Closes; the callback must free.
    pub fn close(&self, handle: *mut Handle, callback: HandleCallback) {
        // SAFETY: callers pass an initialised handle, once.
        unsafe { (self.close)(handle, Some(callback)) };
    }

    pub fn free(&self, handle: *mut Handle) {
        // SAFETY: from `allocate`; libuv is done with it (never initialised, or its close callback).
        unsafe { libc::free(handle) };
    }

    /// Time that the loop has slept in its poller since it started, in ms. May be called only while it
    /// lives.
    pub fn idle_clock(&self, at: *mut Loop) -> Box<dyn Fn() -> u64 + Send + Sync> {
        const NANOSECONDS: u64 = 1_000_000;
        let (at, idle_time) = (Elsewhere(at), self.idle_time);
        Box::new(move || {
            let Elsewhere(at) = &at;
            // SAFETY: the loop lives (contract), and the call may come from any thread.
            unsafe { idle_time(*at) / NANOSECONDS }
        })
    }

    /// The descriptor of the loop's poller.
    pub fn backend_fd(&self, at: *mut Loop) -> c_int {
        // SAFETY: callers pass the live loop of this thread.
        unsafe { (self.backend_fd)(at) }
    }

    /// 0: the loop does not sleep. Otherwise, or when a new descriptor waits for its registration, it
    /// may sleep.
    pub fn backend_timeout(&self, at: *mut Loop) -> c_int {
        // SAFETY: callers pass the live loop of this thread.
        unsafe { (self.backend_timeout)(at) }
    }
}

/// The data pointer of a handle.
///
/// # Safety
/// The handle is initialised and not freed.
pub unsafe fn data_of<T>(handle: *mut Handle) -> *mut T {
    // SAFETY: the first field of every libuv handle is its data pointer.
    unsafe { *handle.cast::<*mut T>() }
}

/// The value that a handle carries, alive while a callback of it runs.
///
/// # Safety
/// Its data is the result of `Rc::into_raw` for a `T`, and was not reclaimed.
pub unsafe fn carried_by<T>(handle: *mut Handle) -> Rc<T> {
    // SAFETY: a handle that carries is one that lives (contract).
    let data: *const T = unsafe { data_of(handle) };
    // SAFETY: from `Rc::into_raw` (contract).
    unsafe { Rc::increment_strong_count(data) };
    // SAFETY: counted just above.
    unsafe { Rc::from_raw(data) }
}

/// Reclaims the value that a handle carries: once, in its close callback.
///
/// # Safety
/// As of `carried_by`.
pub unsafe fn reclaim<T>(handle: *mut Handle) -> Rc<T> {
    // SAFETY: as in `carried_by`.
    let data: *const T = unsafe { data_of(handle) };
    // SAFETY: from `Rc::into_raw` (contract).
    unsafe { Rc::from_raw(data) }
}
