//! ArrayBuffers over shared memory whose bytes V8 does not count. It counts those of every other external
//! buffer as memory that its collections could free, and collects the whole heap for a few large ones
//! (docs/design/large-results.md). A buffer of N-API is always counted: V8's own functions are found by
//! name, and tested before the first use in a process. Whatever differs: `problem` has the reason, and
//! callers make counted buffers.
//!
//! V8 counts nothing for a backing store with its `EmptyDeleter`, which frees nothing. So what is to be
//! freed hangs on the reference count instead. A `std::shared_ptr` is two pointers, to the store and to a
//! control block with virtual functions; ours drops a Rust value after the store. That happens once, when
//! the last buffer over the store is gone, on any thread: transfers move the `shared_ptr`. The names of the
//! symbols show that both sides mean the `shared_ptr` of libstdc++, whose layout is part of its ABI.

use crate::error::{Result, refused};
use crate::symbols::{check_tested, find};
use manycore_core::sys::check_refusal;
use napi::bindgen_prelude::{Env, FromNapiValue, Unknown};
use napi::sys;
use napi_derive::napi;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, OnceLock};

/// V8 ends the process for sizes that it cannot represent; this is far from the limits of all versions.
const MAX_BYTES: usize = u32::MAX as usize;

/// `v8::Isolate` and `v8::BackingStore`: opaque.
type Isolate = c_void;
type Store = c_void;
type Deleter = unsafe extern "C" fn(*mut c_void, usize, *mut c_void);
/// Result too large for registers, so that it is returned in memory of the caller, as C++ returns a
/// `std::unique_ptr`. Only the first word is written.
type InMemory = MaybeUninit<[*mut Store; 4]>;

#[derive(Clone, Copy)]
struct V8 {
    current: unsafe extern "C" fn() -> *mut Isolate,
    new_store: unsafe extern "C" fn(*mut c_void, usize, Deleter, *mut c_void) -> InMemory,
    empty_deleter: Deleter,
    data: unsafe extern "C" fn(*const Store) -> *mut c_void,
    byte_length: unsafe extern "C" fn(*const Store) -> usize,
    destroy_store: unsafe extern "C" fn(*mut Store),
    delete: unsafe extern "C" fn(*mut c_void),
    /// Takes the `shared_ptr` by its address and leaves an empty one. Returns a `v8::Local`: the address
    /// of a handle, as a `napi_value` is.
    new_buffer: unsafe extern "C" fn(*mut Isolate, *mut SharedStore) -> sys::napi_value,
}

macro_rules! symbol {
    ($name:literal) => {
        // SAFETY: the name has the types of its parameters in it (Itanium C++ ABI, 5.1), and the field
        // that this fills has the same, passed as that ABI passes them.
        unsafe { find($name) }?
    };
}

impl V8 {
    fn find() -> Option<V8> {
        Some(V8 {
            current: symbol!(c"_ZN2v87Isolate10GetCurrentEv"),
            new_store: symbol!(c"_ZN2v811ArrayBuffer15NewBackingStoreEPvmPFvS1_mS1_ES1_"),
            empty_deleter: symbol!(c"_ZN2v812BackingStore12EmptyDeleterEPvmS1_"),
            data: symbol!(c"_ZNK2v812BackingStore4DataEv"),
            byte_length: symbol!(c"_ZNK2v812BackingStore10ByteLengthEv"),
            destroy_store: symbol!(c"_ZN2v812BackingStoreD1Ev"),
            delete: symbol!(c"_ZdlPv"),
            new_buffer: symbol!(
                c"_ZN2v811ArrayBuffer3NewEPNS_7IsolateESt10shared_ptrINS_12BackingStoreEE"
            ),
        })
    }
}

/// `std::shared_ptr<v8::BackingStore>`.
#[repr(C)]
struct SharedStore {
    store: *mut Store,
    control: *mut Control,
}

/// `std::_Sp_counted_base<_S_atomic>`, and our fields behind it.
#[repr(C)]
struct Control {
    functions: *const Functions,
    use_count: AtomicI32,
    weak_count: AtomicI32,
    store: *mut Store,
    v8: V8,
    /// Dropped after the store.
    kept: Option<Box<dyn Send>>,
}

type Method = unsafe extern "C" fn(*mut Control);

/// The virtual functions of `std::_Sp_counted_base`, in their order.
#[repr(C)]
struct Functions {
    destructor: Method,
    deleting_destructor: Method,
    dispose: Method,
    destroy: Method,
    get_deleter: unsafe extern "C" fn(*mut Control, *const c_void) -> *mut c_void,
}

/// Virtual table with the two fields before the functions, which only `dynamic_cast` reads.
#[repr(C)]
struct VirtualTable {
    offset_to_top: isize,
    type_info: usize,
    functions: Functions,
}

static TABLE: VirtualTable = VirtualTable {
    offset_to_top: 0,
    type_info: 0,
    functions: Functions {
        destructor: ignore,
        deleting_destructor: ignore,
        dispose,
        destroy,
        get_deleter: no_deleter,
    },
};

/// Destructors: never called, because `destroy` drops the block.
unsafe extern "C" fn ignore(_: *mut Control) {}

unsafe extern "C" fn no_deleter(_: *mut Control, _type: *const c_void) -> *mut c_void {
    null_mut()
}

/// Runs once, when the use count is zero; on any thread.
unsafe extern "C" fn dispose(control: *mut Control) {
    // SAFETY: called with a control block of `make`, and nothing else uses it now.
    let control = unsafe { &mut *control };
    // SAFETY: a live store, from `new_store`, that nothing refers to any more.
    unsafe { (control.v8.destroy_store)(control.store) };
    // SAFETY: as `std::default_delete` does after the destructor.
    unsafe { (control.v8.delete)(control.store) };
    drop(control.kept.take());
}

/// Runs once, when the weak count is zero too.
unsafe extern "C" fn destroy(control: *mut Control) {
    // SAFETY: from `Box::leak` in `share`; the last use of it.
    drop(unsafe { Box::from_raw(control) });
}

/// Makes the control block of `store`, with a use count of 1.
fn share(v8: V8, store: *mut Store, kept: Box<dyn Send>) -> NonNull<Control> {
    NonNull::from(Box::leak(Box::new(Control {
        functions: &raw const TABLE.functions,
        use_count: AtomicI32::new(1),
        weak_count: AtomicI32::new(1),
        store,
        v8,
        kept: Some(kept),
    })))
}

/// Ends a reference that V8 has not taken.
fn release(shared: &SharedStore) {
    let Some(control) = NonNull::new(shared.control) else { return };
    // SAFETY: a reference of our own keeps it alive.
    // AcqRel pairs with the decrements by libstdc++: what other threads did comes before the end.
    if unsafe { control.as_ref() }.use_count.fetch_sub(1, Ordering::AcqRel) != 1 {
        return;
    }
    // SAFETY: the last reference is gone.
    unsafe { dispose(control.as_ptr()) };
    // SAFETY: no weak ones were made.
    unsafe { destroy(control.as_ptr()) };
}

/// A handle of the current scope, and what its buffer holds.
struct Made {
    handle: sys::napi_value,
    /// Valid as long as the buffer.
    control: NonNull<Control>,
}

/// Makes a buffer; returns `kept` when V8 makes no store.
///
/// # Safety
/// On the thread of a running environment, in a handle scope; `size_bytes` bytes from `start` on stay
/// valid until `kept` is dropped, and are no more than `MAX_BYTES`.
unsafe fn make(
    v8: V8,
    start: NonNull<u8>,
    size_bytes: usize,
    kept: Box<dyn Send>,
) -> std::result::Result<Made, Box<dyn Send>> {
    let data: *mut c_void = start.as_ptr().cast();
    // SAFETY: plain call; JavaScript runs on this thread, so there is one.
    let isolate = unsafe { (v8.current)() };
    if isolate.is_null() {
        return Err(kept);
    }
    // SAFETY: valid memory (contract); the deleter does nothing.
    let returned = unsafe { (v8.new_store)(data, size_bytes, v8.empty_deleter, null_mut()) };
    // SAFETY: the function has written the first word.
    let store = unsafe { *returned.as_ptr().cast::<*mut Store>() };
    if store.is_null() {
        return Err(kept);
    }
    let control = share(v8, store, kept);
    let mut shared = SharedStore { store, control: control.as_ptr() };
    // SAFETY: the isolate of this thread, in a handle scope (contract); `shared` owns one reference.
    let handle = unsafe { (v8.new_buffer)(isolate, &mut shared) };
    release(&shared);
    Ok(Made { handle, control })
}

/// Returns `[start, start + size)` as an ArrayBuffer whose bytes V8 does not count. `kept` is dropped once,
/// on any thread, when nothing refers to the memory any more. It is returned where all buffers are counted.
///
/// # Safety
/// The memory stays valid until `kept` is dropped.
pub unsafe fn uncounted_buffer<'env>(
    env: &'env Env,
    start: NonNull<u8>,
    size_bytes: usize,
    kept: Box<dyn Send>,
) -> std::result::Result<Result<Unknown<'env>>, Box<dyn Send>> {
    let Ok(v8) = tested(env.raw()) else { return Err(kept) };
    if size_bytes > MAX_BYTES {
        return Err(kept);
    }
    // SAFETY: on the thread of `env`, in a call of JavaScript; the memory is valid (contract).
    let made = unsafe { make(*v8, start, size_bytes, kept) }?;
    // SAFETY: a live value of this scope.
    let value = unsafe { Unknown::from_napi_value(env.raw(), made.handle) };
    Ok(value.map_err(|error| refused(&error.to_string())))
}

/// Empty when buffers can be made whose bytes V8 does not count; else the reason.
#[napi]
pub fn uncounted_problem(env: &Env) -> &'static str {
    tested(env.raw()).as_ref().err().copied().unwrap_or("")
}

/// Tests once for each process.
fn tested(env: sys::napi_env) -> &'static std::result::Result<V8, &'static str> {
    static TESTED: OnceLock<std::result::Result<V8, &'static str>> = OnceLock::new();
    TESTED.get_or_init(|| test(env))
}

/// Memory of the test's buffers; it is never written.
static BYTES: [u64; 8] = [0x6d61_6e79_636f_7265; 8];

/// Shows in each step what the next one relies on; a mismatch ends the test before it could do harm.
/// No buffer is detached: after the first one in an isolate V8 checks for it at each access to a typed array.
/// The release by V8 is no step for that reason; test/channels/shm-uncounted.test.ts has it on each line.
fn test(env: sys::napi_env) -> std::result::Result<V8, &'static str> {
    check_refusal("uncounted").map_err(|_| "refused by MANYCORE_REFUSE")?;
    check_tested(env)?;
    if !allows_external(env) {
        return Err("this runtime allows no buffers over memory of others");
    }
    let v8 = V8::find().ok_or("this runtime does not export V8's functions for it")?;
    test_store(v8)?;
    let mut problem = "";
    // Repeats the test when another thread's work, or the end of a block of handles, came between.
    for _ in 0..3 {
        match test_buffer(env, v8) {
            Ok(()) => return Ok(v8),
            Err(found) => problem = found,
        }
    }
    Err(problem)
}

fn test_memory() -> *mut c_void {
    (&raw const BYTES).cast_mut().cast()
}

/// Returns false where V8 has a sandbox for buffers: it ends the process for memory outside.
fn allows_external(env: sys::napi_env) -> bool {
    let mut made = null_mut();
    // SAFETY: static memory, on the thread of `env`, with a live out-parameter.
    let status = unsafe {
        sys::napi_create_external_arraybuffer(
            env,
            test_memory(),
            size_of_val(&BYTES),
            None,
            null_mut(),
            &mut made,
        )
    };
    status == sys::Status::napi_ok
}

/// Checks a store, before any buffer is made of one.
fn test_store(v8: V8) -> std::result::Result<(), &'static str> {
    let size_bytes = size_of_val(&BYTES);
    // SAFETY: static memory, and a deleter that does nothing.
    let returned =
        unsafe { (v8.new_store)(test_memory(), size_bytes, v8.empty_deleter, null_mut()) };
    // SAFETY: the function has written the first word.
    let store = unsafe { *returned.as_ptr().cast::<*mut Store>() };
    if store.is_null() || !store.addr().is_multiple_of(align_of::<usize>()) {
        return Err("V8 returns a backing store in another way");
    }
    // SAFETY: a store of V8's.
    let data = unsafe { (v8.data)(store) };
    // SAFETY: as above.
    let found_bytes = unsafe { (v8.byte_length)(store) };
    if data != test_memory() || found_bytes != size_bytes {
        return Err("V8 makes a backing store in another way");
    }
    // SAFETY: nothing refers to it.
    unsafe { (v8.destroy_store)(store) };
    // SAFETY: as `std::default_delete` does after the destructor.
    unsafe { (v8.delete)(store) };
    Ok(())
}

fn test_buffer(env: sys::napi_env, v8: V8) -> std::result::Result<(), &'static str> {
    let mut scope = null_mut();
    // SAFETY: on the thread of `env`; closed below.
    if unsafe { sys::napi_open_handle_scope(env, &mut scope) } != sys::Status::napi_ok {
        return Err("no scope for handles");
    }
    let result = test_in_scope(env, v8);
    // SAFETY: opened above.
    unsafe { sys::napi_close_handle_scope(env, scope) };
    result
}

fn test_in_scope(env: sys::napi_env, v8: V8) -> std::result::Result<(), &'static str> {
    let size_bytes = size_of_val(&BYTES);
    let start = NonNull::new(test_memory().cast()).ok_or("no memory")?;
    let mut before = null_mut();
    // SAFETY: on the thread of `env`, with a live out-parameter.
    unsafe { sys::napi_create_object(env, &mut before) };
    let counted_before = counted_bytes(env);
    let held = Arc::new(());
    let kept = Box::new(Arc::clone(&held));
    // SAFETY: static memory, on the thread of `env`, in a scope.
    let Ok(Made { handle, control }) = (unsafe { make(v8, start, size_bytes, kept) }) else {
        return Err("V8 makes no backing store");
    };
    // Handles of a scope lie one behind the other. V8 takes a few more for a buffer.
    let slots = (handle.addr().wrapping_sub(before.addr())) / size_of::<usize>();
    if !handle.addr().is_multiple_of(size_of::<usize>()) || !(1..64).contains(&slots) {
        return Err("a handle of V8 is not what it is to Node-API");
    }
    let (mut data, mut found_bytes) = (null_mut(), 0);
    // SAFETY: a handle of this scope.
    let status =
        unsafe { sys::napi_get_arraybuffer_info(env, handle, &mut data, &mut found_bytes) };
    if status != sys::Status::napi_ok || data != test_memory() || found_bytes != size_bytes {
        return Err("V8 makes an ArrayBuffer in another way");
    }
    if counted_bytes(env) != counted_before {
        return Err("V8 counts the bytes");
    }
    if Arc::strong_count(&held) != 2 {
        return Err("V8 frees a backing store in use");
    }
    // SAFETY: `dispose` has not run, as the count of `held` shows, so the block was not destroyed.
    let control = unsafe { control.as_ref() };
    // Relaxed: the buffer is in this scope, so no other thread changes the counts.
    let uses = control.use_count.load(Ordering::Relaxed);
    if uses != 1 || control.weak_count.load(Ordering::Relaxed) != 1 {
        return Err("V8 counts references to a backing store in another way");
    }
    Ok(())
}

/// The bytes outside of its heap that V8 counts.
fn counted_bytes(env: sys::napi_env) -> i64 {
    let mut counted = 0;
    // SAFETY: on the thread of `env`, with a live out-parameter.
    unsafe { sys::napi_adjust_external_memory(env, 0, &mut counted) };
    counted
}
