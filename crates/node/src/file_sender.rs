//! Sends a file into a socket: the kernel copies; JavaScript decides how much and waits for room here.
//!
//! The event loop already watches the socket under its number, so this object has a descriptor of its
//! own for the same socket.

use crate::call::call_into_js;
use crate::descriptors::borrow;
use crate::error::{Result, refused, to_js};
use crate::uv::{self, Handle, Uv, WRITABLE};
use manycore_core::sys::{self as core_sys, Sent};
use napi::JsValue;
use napi::bindgen_prelude::{Env, Function};
use napi::sys;
use napi_derive::napi;
use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr::null_mut;
use std::rc::Rc;

struct Open {
    socket: OwnedFd,
    file: OwnedFd,
}

struct Inner {
    uv: Uv,
    env: sys::napi_env,
    on_room: sys::napi_ref,
    /// `None` once it is closed, which must not wait for the garbage collector.
    open: RefCell<Option<Open>>,
    /// Null once it is closed.
    poll: Cell<*mut Handle>,
    cleanup: Cell<sys::napi_async_cleanup_hook_handle>,
}

#[napi]
pub struct NativeFileSender {
    inner: Rc<Inner>,
}

#[napi]
impl NativeFileSender {
    /// Both descriptors stay the caller's. `on_room` is called once after each `wait`.
    #[napi(constructor)]
    pub fn new(
        env: &Env,
        socket: i32,
        file: i32,
        on_room: Function<'_, (), ()>,
    ) -> Result<NativeFileSender> {
        let missing = || refused("this runtime does not export its event loop");
        let uv = Uv::find().ok_or_else(missing)?;
        let at = Uv::loop_of(env.raw()).ok_or_else(missing)?;
        let (socket, file) = (duplicate(socket)?, duplicate(file)?);
        let fd = socket.as_raw_fd();
        let mut on_room_ref = null_mut();
        // SAFETY: `on_room` is a live value of this call.
        unsafe { sys::napi_create_reference(env.raw(), on_room.raw(), 1, &mut on_room_ref) };
        let inner = Rc::new(Inner {
            uv,
            env: env.raw(),
            on_room: on_room_ref,
            open: RefCell::new(Some(Open { socket, file })),
            poll: Cell::new(null_mut()),
            cleanup: Cell::new(null_mut()),
        });
        let data = Rc::into_raw(Rc::clone(&inner)).cast_mut();
        // SAFETY: on the loop's thread; `inner` holds the descriptor, and the handle holds `inner`.
        let poll = unsafe { uv.init_poll(at, fd, data.cast()) };
        let Some(poll) = poll else {
            // SAFETY: from `into_raw` above, and no handle took it.
            drop(unsafe { Rc::from_raw(data) });
            inner.forget_callback();
            return Err(refused("the event loop refused to poll a socket"));
        };
        inner.poll.set(poll);
        let data = Rc::into_raw(Rc::clone(&inner)).cast_mut().cast();
        let mut cleanup = null_mut();
        // SAFETY: `data` stays valid until the hook takes it back, or `close` removes the hook.
        unsafe {
            sys::napi_add_async_cleanup_hook(
                env.raw(),
                Some(on_environment_end),
                data,
                &mut cleanup,
            )
        };
        inner.cleanup.set(cleanup);
        Ok(NativeFileSender { inner })
    }

    /// Sends up to `count` bytes from `offset` on. Returns their number: 0 at the end of the file, -1
    /// when the client has to read first.
    #[napi]
    pub fn send(&self, offset: f64, count: f64) -> Result<f64> {
        let open = self.inner.open.borrow();
        let Open { socket, file } = open.as_ref().ok_or_else(|| refused("it is closed"))?;
        let (socket, file) = (socket.as_fd(), file.as_fd());
        let sent = core_sys::send_file(socket, file, offset as u64, count as usize);
        Ok(match sent.map_err(to_js)? {
            Sent::Bytes(bytes) => bytes as f64,
            Sent::Full => -1.0,
        })
    }

    /// Calls `on_room` once there is room, or the connection has failed.
    #[napi]
    pub fn wait(&self) {
        let poll = self.inner.poll.get();
        if !poll.is_null() {
            self.inner.uv.watch(poll, WRITABLE, on_room);
        }
    }

    #[napi]
    pub fn close(&self) {
        self.inner.close();
    }
}

fn duplicate(fd: i32) -> Result<OwnedFd> {
    core_sys::duplicate(borrow(fd)?).map_err(to_js)
}

impl Inner {
    fn close(&self) {
        let poll = self.poll.replace(null_mut());
        if !poll.is_null() {
            self.uv.close(poll, on_closed);
            // libuv has stopped watching it.
            self.open.take();
            self.forget_callback();
        }
    }

    fn forget_callback(&self) {
        // SAFETY: on the thread of `env`, once: the reference was made with this object.
        unsafe { sys::napi_delete_reference(self.env, self.on_room) };
    }
}

unsafe extern "C" fn on_room(handle: *mut Handle, _status: c_int, _events: c_int) {
    // SAFETY: from `Rc::into_raw` in `NativeFileSender::new`, taken back only in `on_closed`.
    let inner = unsafe { uv::carried_by::<Inner>(handle) };
    inner.uv.unwatch(handle);
    call_into_js(inner.env, inner.on_room);
}

unsafe extern "C" fn on_closed(handle: *mut Handle) {
    // SAFETY: from `Rc::into_raw` in `NativeFileSender::new`; the close callback runs once.
    let inner = unsafe { uv::reclaim::<Inner>(handle) };
    inner.uv.free(handle);
    let cleanup = inner.cleanup.replace(null_mut());
    if !cleanup.is_null() {
        // SAFETY: removed once; Node does not call the hook after this, or waits for exactly this call.
        unsafe { sys::napi_remove_async_cleanup_hook(cleanup) };
        // SAFETY: what the hook carried: it did not run, or left this to us.
        unsafe { Rc::decrement_strong_count(Rc::as_ptr(&inner)) };
    }
}

unsafe extern "C" fn on_environment_end(
    _cleanup: sys::napi_async_cleanup_hook_handle,
    inner: *mut c_void,
) {
    let data: *const Inner = inner.cast::<Inner>().cast_const();
    // SAFETY: carried by the hook until `on_closed` takes it back.
    unsafe { &*data }.close();
}
