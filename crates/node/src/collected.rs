//! Keys of buffers that no object refers to any more. V8 frees them on any thread, and on another one than
//! ours after a transfer; JavaScript takes their keys in the event loop of the thread that made them.
//!
//! The async handle lives until `close` or the end of the environment. `Keys` rings it under its lock, and
//! `close` removes it under the same lock first: so no thread rings a handle that is closing.

use crate::call::call_into_js;
use crate::error::{Result, refused};
use crate::uv::{self, Handle, Uv};
use napi::bindgen_prelude::{Env, Function};
use napi::{JsValue, sys};
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The handle that wakes the loop of the reader.
struct Bell {
    uv: Uv,
    handle: *mut Handle,
}

// SAFETY: `uv_async_send` is what libuv allows on any thread; nothing else is done with it elsewhere.
unsafe impl Send for Bell {}

#[derive(Default)]
struct State {
    keys: Vec<f64>,
    /// `None`: nobody reads any more.
    bell: Option<Bell>,
}

/// Written by finalizers, on any thread.
#[derive(Default)]
pub struct Keys {
    state: Mutex<State>,
}

impl Keys {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, key: f64) {
        let mut state = self.state();
        let is_first = state.keys.is_empty();
        let State { keys, bell } = &mut *state;
        let Some(bell) = bell else { return };
        keys.push(key);
        if is_first {
            bell.uv.send(bell.handle);
        }
    }
}

/// Adds its key when it is dropped.
pub struct Notice {
    keys: Arc<Keys>,
    key: f64,
}

impl Drop for Notice {
    fn drop(&mut self) {
        self.keys.add(self.key);
    }
}

/// The reader's side, on its own thread.
pub struct Collected {
    keys: Arc<Keys>,
    wake: Rc<Wake>,
}

struct Wake {
    uv: Uv,
    env: sys::napi_env,
    callback: sys::napi_ref,
    keys: Arc<Keys>,
    /// Null once it is closing.
    handle: Cell<*mut Handle>,
    cleanup: Cell<sys::napi_async_cleanup_hook_handle>,
}

impl Collected {
    /// Calls `callback` in this thread's event loop when there are keys.
    pub fn new(env: &Env, callback: &Function<'_, (), ()>) -> Result<Collected> {
        let uv = Uv::find().ok_or_else(|| refused("this runtime does not export libuv"))?;
        let at = Uv::loop_of(env.raw()).ok_or_else(|| refused("this thread has no event loop"))?;
        let keys: Arc<Keys> = Arc::default();
        let mut reference = null_mut();
        // SAFETY: `callback` is a live value of this call.
        unsafe { sys::napi_create_reference(env.raw(), callback.raw(), 1, &mut reference) };
        let wake = Rc::new(Wake {
            uv,
            env: env.raw(),
            callback: reference,
            keys: Arc::clone(&keys),
            handle: Cell::new(null_mut()),
            cleanup: Cell::new(null_mut()),
        });
        let data = Rc::into_raw(Rc::clone(&wake)).cast_mut().cast();
        // SAFETY: on the thread of a live loop.
        let Some(handle) = (unsafe { uv.init_async(at, data, on_keys) }) else {
            // SAFETY: from `into_raw` above, and no handle took it.
            drop(unsafe { Rc::from_raw(data.cast_const().cast::<Wake>()) });
            // SAFETY: made above, on this thread.
            unsafe { sys::napi_delete_reference(env.raw(), reference) };
            return Err(refused("no descriptor is left to wake the event loop"));
        };
        wake.handle.set(handle);
        let mut hook = null_mut();
        // SAFETY: `on_closed` removes the hook before it drops `data`.
        unsafe {
            sys::napi_add_async_cleanup_hook(env.raw(), Some(on_environment_end), data, &mut hook)
        };
        wake.cleanup.set(hook);
        keys.state().bell = Some(Bell { uv, handle });
        Ok(Collected { keys, wake })
    }

    /// Makes the value that a buffer with `key` drops when it is collected.
    pub fn notice(&self, key: f64) -> Notice {
        Notice { keys: Arc::clone(&self.keys), key }
    }

    /// For a thread that adds keys by itself.
    pub(crate) fn keys(&self) -> Arc<Keys> {
        Arc::clone(&self.keys)
    }

    /// Takes the keys collected since the last call.
    pub fn take(&self) -> Vec<f64> {
        std::mem::take(&mut self.keys.state().keys)
    }

    /// Ends the notifications.
    pub fn close(&self) {
        self.wake.close();
    }
}

impl Drop for Collected {
    fn drop(&mut self) {
        self.close();
    }
}

impl Wake {
    fn close(&self) {
        let handle = self.handle.replace(null_mut());
        if handle.is_null() {
            return;
        }
        *self.keys.state() = State::default();
        // SAFETY: made in `Collected::new`, on this thread; the handle that uses it runs no more.
        unsafe { sys::napi_delete_reference(self.env, self.callback) };
        self.uv.close(handle, on_closed);
    }
}

unsafe extern "C" fn on_keys(handle: *mut Handle) {
    // SAFETY: the handle carries a `Wake`, until `on_closed`.
    let wake: Rc<Wake> = unsafe { uv::carried_by(handle) };
    if !wake.handle.get().is_null() {
        call_into_js(wake.env, wake.callback);
    }
}

unsafe extern "C" fn on_closed(handle: *mut Handle) {
    // SAFETY: the handle carries a `Wake`; the close callback runs once.
    let wake: Rc<Wake> = unsafe { uv::reclaim(handle) };
    wake.uv.free(handle);
    // SAFETY: from `napi_add_async_cleanup_hook`; it is removed here alone.
    unsafe { sys::napi_remove_async_cleanup_hook(wake.cleanup.get()) };
}

unsafe extern "C" fn on_environment_end(
    _hook: sys::napi_async_cleanup_hook_handle,
    wake: *mut c_void,
) {
    // SAFETY: from `Rc::into_raw` in `Collected::new`; `on_closed`, which drops it, has removed this hook
    // or is still to come.
    let wake = unsafe { &*wake.cast::<Wake>() };
    wake.close();
}
