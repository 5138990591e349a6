//! An event loop's inbox at the listener thread: takes connections when its doorbell rings, and calls
//! JavaScript with their descriptors.
//!
//! They go through a batch, memory that both sides use, because a call with arguments costs more than
//! the numbers. JavaScript first sets the count to 0. If JavaScript may not run any more, the remaining
//! connections go to other loops of this process.
//!
//! Where the loop accepts by itself (accept/direct.rs), the inbox's poller has the sockets; accepted
//! connections go the same way.
//!
//! Long (over 400 lines): one object with the life of its handles.

use crate::acceptor::{acceptor_of, buffer_of};
use crate::call::call_into_js;
use crate::descriptors::borrow;
use crate::error::{Result, refused, to_js};
use crate::segment::external_buffer;
use crate::uv::{self, Handle, PollCallback, Uv};
use manycore_core::accept::acceptor::Acceptor;
use manycore_core::accept::board::Board;
use manycore_core::accept::files::{FileSource, Files};
use manycore_core::accept::idle::WORDS_BYTES;
use manycore_core::accept::loop_inbox::{AcceptedConnection, LoopInbox};
use manycore_core::accept::rescue::LoopThread;
use manycore_core::sync::AtomicU32;
use manycore_core::sync::Ordering::Relaxed;
use manycore_core::sys as core_sys;
use manycore_core::wake::doorbell::Doorbell;
use napi::JsValue;
use napi::bindgen_prelude::{Buffer, Env, Function, Unknown};
use napi::sys;
use napi_derive::napi;
use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::ptr::{NonNull, null_mut};
use std::rc::Rc;
use std::sync::Arc;

/// Connections in one call: the remaining ones may still go to another loop.
const MAX_BATCH: usize = 8;

/// The count, then three words for each connection: the number of its socket, its descriptor, and the time
/// since which it waits for a loop of this process, by `sys::now_ms` (0: this loop has accepted it).
#[repr(C)]
struct Batch {
    count: AtomicU32,
    entries: [[AtomicU32; 3]; MAX_BATCH],
}

/// A connection that this loop gets, as in `Batch`.
struct Entry {
    socket: u32,
    fd: OwnedFd,
    since_ms: u32,
}

struct Inner {
    uv: Uv,
    env: sys::napi_env,
    deliver: sys::napi_ref,
    /// `None` once it is closed.
    acceptor: RefCell<Option<Arc<Acceptor>>>,
    inbox: Arc<LoopInbox>,
    /// Set by `serve_files`.
    files: RefCell<Option<Arc<Files>>>,
    batch: Arc<Batch>,
    /// Polls the bell.
    poll: Cell<*mut Handle>,
    /// Polls the inbox's poller.
    direct_poll: Cell<*mut Handle>,
    /// Number of handles whose close callback has not run yet.
    handles: Cell<u32>,
    is_held: Cell<bool>,
    /// Makes the end of the environment wait for `finish`.
    cleanup: Cell<sys::napi_async_cleanup_hook_handle>,
    is_ending: Cell<bool>,
}

#[napi]
pub struct NativeLoopInbox {
    /// `None` once it is closed.
    inner: RefCell<Option<Rc<Inner>>>,
    board: Arc<Board>,
}

#[napi]
impl NativeLoopInbox {
    /// Creates the inbox of loop `index` at the listener thread `key`. `deliver` is called when the
    /// batch holds connections.
    #[napi(constructor)]
    pub fn new(
        env: &Env,
        key: u32,
        index: u32,
        deliver: Function<'_, (), ()>,
    ) -> Result<NativeLoopInbox> {
        let acceptor = acceptor_of(key)?;
        let missing = || refused("this runtime does not export its event loop");
        let uv = Uv::find().ok_or_else(missing)?;
        let at = Uv::loop_of(env.raw()).ok_or_else(missing)?;
        let bell = Doorbell::new().map_err(to_js)?;
        let fd = bell.raw();
        // The loop outlives its inbox: `on_environment_end` closes the inbox at the latest.
        let idle_ms = uv.idle_clock(at);
        let rescues = acceptor.rescues();
        let thread = rescues.then(|| LoopThread::here(uv.backend_fd(at))).flatten();
        let inbox = acceptor.add_inbox(index, bell, idle_ms, thread).map_err(to_js)?;
        let mut deliver_ref = null_mut();
        // SAFETY: `deliver` is a live value of this call.
        unsafe { sys::napi_create_reference(env.raw(), deliver.raw(), 1, &mut deliver_ref) };
        let board = Arc::clone(acceptor.board());
        let inner = Rc::new(Inner {
            uv,
            env: env.raw(),
            deliver: deliver_ref,
            acceptor: RefCell::new(Some(acceptor)),
            inbox,
            files: RefCell::new(None),
            batch: Arc::new(Batch { count: AtomicU32::new(0), entries: Default::default() }),
            poll: Cell::new(null_mut()),
            direct_poll: Cell::new(null_mut()),
            handles: Cell::new(0),
            is_held: Cell::new(false),
            cleanup: Cell::new(null_mut()),
            is_ending: Cell::new(false),
        });
        let data = Rc::into_raw(Rc::clone(&inner)).cast_mut().cast();
        let mut hook = null_mut();
        // SAFETY: `data` stays valid until the hook takes it back, or `finish` does.
        unsafe {
            sys::napi_add_async_cleanup_hook(env.raw(), Some(on_environment_end), data, &mut hook)
        };
        inner.cleanup.set(hook);
        let direct_fd = inner.inbox.poller().as_raw_fd();
        for (place, fd, callback) in [
            (&inner.poll, fd, on_ring as PollCallback),
            (&inner.direct_poll, direct_fd, on_connection),
        ] {
            let data = Rc::into_raw(Rc::clone(&inner)).cast_mut();
            // SAFETY: on the loop's thread; `inner` holds the descriptor, and the handle holds `inner`.
            let Some(poll) = (unsafe { uv.start_poll(at, fd, data.cast(), callback) }) else {
                // SAFETY: from `into_raw` above, and no handle took it.
                drop(unsafe { Rc::from_raw(data) });
                inner.close();
                if inner.handles.get() == 0 {
                    inner.finish();
                }
                return Err(refused("the event loop refused to poll a descriptor"));
            };
            place.set(poll);
            inner.handles.set(inner.handles.get() + 1);
        }
        Ok(NativeLoopInbox { inner: RefCell::new(Some(inner)), board })
    }

    /// `[count, socket, fd, socket, fd, …]` as uint32. The reader sets the count to 0 and then owns the
    /// descriptors.
    #[napi]
    pub fn batch<'env>(&self, env: &'env Env) -> Result<Unknown<'env>> {
        let inner = self.inner.borrow();
        let batch = inner.as_ref().map(|inner| Arc::clone(&inner.batch));
        let batch = batch.ok_or_else(|| refused("it is closed"))?;
        external_buffer(env, NonNull::from(&*batch).cast(), size_of::<Batch>(), batch)
    }

    /// Uint32 for each descriptor, as in accept/idle.rs; `undefined`: connections stay at this loop.
    #[napi]
    pub fn idle_words<'env>(&self, env: &'env Env) -> Result<Option<Unknown<'env>>> {
        let inner = self.inner.borrow();
        let inner = inner.as_ref().ok_or_else(|| refused("it is closed"))?;
        let Some(thread) = inner.inbox.thread() else { return Ok(None) };
        let idle = Arc::clone(thread.idle());
        let start = idle.mapping().start();
        external_buffer(env, start, WORDS_BYTES, idle).map(Some)
    }

    /// The whole scoreboard.
    #[napi]
    pub fn board<'env>(&self, env: &'env Env) -> Result<Unknown<'env>> {
        buffer_of(env, &self.board)
    }

    /// True: waiting for connections keeps the event loop alive.
    #[napi]
    pub fn hold(&self, is_held: bool) {
        let inner = self.inner.borrow();
        let Some(inner) = &*inner else { return };
        let is_closed = inner.acceptor.borrow().is_none();
        if is_closed || inner.is_held.replace(is_held) == is_held {
            return;
        }
        if is_held {
            inner.uv.r#ref(inner.poll.get());
        } else {
            inner.uv.unref(inner.poll.get());
        }
    }

    /// Makes the listener thread read the loop's row again, after it has changed.
    #[napi]
    pub fn wake(&self) {
        if let Some(inner) = &*self.inner.borrow()
            && let Some(acceptor) = &*inner.acceptor.borrow()
        {
            acceptor.wake();
        }
    }

    /// Closes the inbox, unless a connection waits to be taken: false. Call it once the row says
    /// `DRAINING`.
    #[napi]
    pub fn try_leave(&self) -> bool {
        let has_left = match &*self.inner.borrow() {
            Some(inner) => match &*inner.acceptor.borrow() {
                Some(acceptor) => acceptor.try_leave(&inner.inbox),
                None => true,
            },
            None => true,
        };
        if has_left {
            self.close();
        }
        has_left
    }

    /// True: no connection of `socket` waits to be taken, and none will come. Call it once the row does
    /// not list the socket any more.
    #[napi]
    pub fn is_done_with(&self, socket: u32) -> bool {
        match &*self.inner.borrow() {
            Some(inner) => match &*inner.acceptor.borrow() {
                Some(acceptor) => acceptor.is_done_with(&inner.inbox, socket),
                None => true,
            },
            None => true,
        }
    }

    /// Answers requests for files in a thread of this process from now on (accept/files/mod.rs). Clients are
    /// promised that an idle connection stays open for `keep_alive_s` seconds. False: this server cannot.
    #[napi]
    pub fn serve_files(&self, keep_alive_s: u32) -> Result<bool> {
        let inner = self.inner.borrow();
        let Some(inner) = &*inner else { return Ok(false) };
        let served = match &*inner.acceptor.borrow() {
            Some(acceptor) => acceptor.serve_files(keep_alive_s).map_err(to_js)?,
            None => None,
        };
        let serves = served.is_some();
        inner.files.replace(served);
        Ok(serves)
    }

    /// Adds what this loop has sent for a target: the file of `path`, open as `file` (stays the caller's), with
    /// fields as `[name, value, …]`. False: it is not kept, as it has just changed.
    #[napi]
    pub fn add_file(
        &self,
        target: Buffer,
        accept_encoding: Buffer,
        path: String,
        file: i32,
        fields: Vec<String>,
    ) -> Result<bool> {
        let inner = self.inner.borrow();
        let files = inner.as_ref().and_then(|inner| inner.files.borrow().clone());
        let Some(files) = files else { return Ok(false) };
        let pair = |pair: &[String]| (pair[0].clone(), pair[1].clone());
        let fields = fields.chunks_exact(2).map(pair).collect();
        let source = FileSource { path: path.into(), file: borrow(file)?, fields };
        Ok(files.add(&target, &accept_encoding, source))
    }

    /// Gives a connection back to the thread, which has handed it over for one request. False: more was read,
    /// or it came otherwise; then it stays here. After true the caller closes its descriptor, and sends nothing.
    #[napi]
    pub fn take_back(&self, connection: i32, bytes_read: u32) -> Result<bool> {
        let inner = self.inner.borrow();
        let files = inner.as_ref().and_then(|inner| inner.files.borrow().clone());
        let Some(files) = files else { return Ok(false) };
        Ok(files.take_back(borrow(connection)?, bytes_read))
    }

    /// Closes the inbox: untaken connections go to other loops of this process.
    #[napi]
    pub fn close(&self) {
        if let Some(inner) = self.inner.take() {
            inner.close();
        }
    }
}

impl Inner {
    /// False: it was closed already.
    fn leave(&self) -> bool {
        let Some(acceptor) = self.acceptor.borrow_mut().take() else { return false };
        acceptor.remove_inbox(&self.inbox);
        true
    }

    fn close(&self) {
        if self.leave() {
            for poll in [&self.poll, &self.direct_poll] {
                let handle = poll.replace(null_mut());
                if !handle.is_null() {
                    self.uv.close(handle, on_closed);
                }
            }
        }
    }

    /// Delivers the connections that were put into this loop's inbox.
    fn deliver(&self) {
        self.deliver_from(|| {
            self.inbox.take().map(|AcceptedConnection { socket, fd, at_ms, taken_at_ms }| {
                self.enter(Entry { socket, fd, since_ms: at_ms }, taken_at_ms)
            })
        });
        if self.inbox.is_any_untaken() {
            self.inbox.bell().ring(); // after the other input of this loop
        }
    }

    /// Notes a connection that this loop gets.
    fn enter(&self, entry: Entry, taken_at_ms: u32) -> Entry {
        if let Some(thread) = self.inbox.thread() {
            thread.idle().enter(entry.fd.as_raw_fd(), entry.socket, taken_at_ms);
        }
        entry
    }

    /// Delivers connections from `next`, at most one batch.
    fn deliver_from(&self, next: impl Fn() -> Option<Entry>) {
        let mut count = 0;
        for words in &self.batch.entries {
            let Some(Entry { socket, fd, since_ms }) = next() else { break };
            // Relaxed: this thread alone uses the batch.
            words[0].store(socket, Relaxed);
            words[1].store(fd.into_raw_fd() as u32, Relaxed);
            words[2].store(since_ms, Relaxed);
            count += 1;
        }
        if count == 0 {
            return;
        }
        self.batch.count.store(count, Relaxed);
        call_into_js(self.env, self.deliver);
        let left = self.batch.count.swap(0, Relaxed) as usize;
        for [socket, fd, _] in self.batch.entries.iter().take(left) {
            let Ok(fd) = core_sys::adopt(fd.load(Relaxed) as i32) else { continue };
            if let Some(acceptor) = &*self.acceptor.borrow() {
                acceptor.reassign(&self.inbox, socket.load(Relaxed), fd);
            }
        }
    }

    /// Ends the wait of the environment's end, or removes its hook: no callback uses this any more.
    fn finish(self: &Rc<Self>) {
        // SAFETY: made in `NativeLoopInbox::new` on this thread; the end of the environment waits for this.
        unsafe { sys::napi_delete_reference(self.env, self.deliver) };
        // SAFETY: Node gave this handle; at the end of the environment it waits for exactly this call.
        unsafe { sys::napi_remove_async_cleanup_hook(self.cleanup.get()) };
        if !self.is_ending.get() {
            // SAFETY: what the hook would have taken back; `self` is counted apart.
            unsafe { Rc::decrement_strong_count(Rc::as_ptr(self)) };
        }
    }
}

unsafe extern "C" fn on_ring(handle: *mut Handle, _status: c_int, _events: c_int) {
    // SAFETY: from `Rc::into_raw` in `NativeLoopInbox::new`, taken back only in `on_closed`.
    let inner = unsafe { uv::carried_by::<Inner>(handle) };
    inner.inbox.bell().clear();
    inner.inbox.answer_ping();
    inner.deliver();
}

unsafe extern "C" fn on_connection(handle: *mut Handle, _status: c_int, _events: c_int) {
    // SAFETY: as in `on_ring`.
    let inner = unsafe { uv::carried_by::<Inner>(handle) };
    inner.deliver_from(|| {
        let (socket, fd) = inner.inbox.accept()?;
        Some(inner.enter(Entry { socket, fd, since_ms: 0 }, 0))
    });
}

unsafe extern "C" fn on_closed(handle: *mut Handle) {
    // SAFETY: from `Rc::into_raw` in `NativeLoopInbox::new`; the close callback runs once.
    let inner = unsafe { uv::reclaim::<Inner>(handle) };
    inner.uv.free(handle);
    inner.handles.set(inner.handles.get() - 1);
    if inner.handles.get() == 0 {
        inner.finish();
    }
}

unsafe extern "C" fn on_environment_end(
    cleanup: sys::napi_async_cleanup_hook_handle,
    inner: *mut c_void,
) {
    // SAFETY: from `Rc::into_raw` in `NativeLoopInbox::new`; the hook runs once.
    let inner = unsafe { Rc::from_raw(inner.cast::<Inner>().cast_const()) };
    inner.cleanup.set(cleanup);
    inner.is_ending.set(true);
    inner.close();
}
