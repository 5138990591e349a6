//! Counts the garbage collections of this thread and their pauses, in V8's callbacks for that. An
//! observer of `perf_hooks` would do, but Node 24 takes some 150 µs to report each collection
//! (docs/design/observe.md). N-API has no such callbacks: V8's own functions are found by name; the
//! names are the same in Node 20 to 26. Where they are missing, nothing is counted here.

use crate::error::{Result, refused};
use crate::symbols::find;
use napi_derive::napi;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::rc::Rc;
use std::time::Instant;

/// `v8::Isolate`: opaque.
type Isolate = c_void;
/// `GCCallbackWithData`: the isolate, the type of the collection (`GCType`, one bit), flags, and our data.
type Callback = unsafe extern "C" fn(*mut Isolate, c_int, c_int, *mut c_void);
type Add = unsafe extern "C" fn(*mut Isolate, Callback, *mut c_void, c_int);
type Remove = unsafe extern "C" fn(*mut Isolate, Callback, *mut c_void);

/// `kGCTypeAll`, and types that a newer V8 may add.
const ALL: c_int = 0xff;
/// Bits of `ALL`.
const TYPES: usize = 8;

#[derive(Clone, Copy)]
struct V8 {
    current: unsafe extern "C" fn() -> *mut Isolate,
    add_prologue: Add,
    add_epilogue: Add,
    remove_prologue: Remove,
    remove_epilogue: Remove,
}

macro_rules! symbol {
    ($name:literal) => {
        // SAFETY: the name has the types of its parameters in it (Itanium C++ ABI, 5.1), and the field
        // that this fills has the same.
        unsafe { find($name) }?
    };
}

impl V8 {
    fn find() -> Option<V8> {
        Some(V8 {
            current: symbol!(c"_ZN2v87Isolate10GetCurrentEv"),
            add_prologue: symbol!(
                c"_ZN2v87Isolate21AddGCPrologueCallbackEPFvPS0_NS_6GCTypeENS_15GCCallbackFlagsEPvES4_S2_"
            ),
            add_epilogue: symbol!(
                c"_ZN2v87Isolate21AddGCEpilogueCallbackEPFvPS0_NS_6GCTypeENS_15GCCallbackFlagsEPvES4_S2_"
            ),
            remove_prologue: symbol!(
                c"_ZN2v87Isolate24RemoveGCPrologueCallbackEPFvPS0_NS_6GCTypeENS_15GCCallbackFlagsEPvES4_"
            ),
            remove_epilogue: symbol!(
                c"_ZN2v87Isolate24RemoveGCEpilogueCallbackEPFvPS0_NS_6GCTypeENS_15GCCallbackFlagsEPvES4_"
            ),
        })
    }
}

/// Counts of one type.
#[derive(Clone, Copy, Default)]
struct Pauses {
    count: u64,
    total_ns: u64,
    max_ns: u64,
}

#[derive(Default)]
struct Counts {
    /// The collection that is running. Another one may begin within it, and is part of it.
    begun: Cell<Option<(c_int, Instant)>>,
    pauses: [Cell<Pauses>; TYPES],
}

/// While it counts, V8 has the address of the counts.
#[napi]
pub struct NativeCollections {
    v8: V8,
    counts: Rc<Counts>,
    /// The isolate whose collections are counted; all of this runs on its thread.
    isolate: Cell<Option<*mut Isolate>>,
}

#[napi]
impl NativeCollections {
    /// Throws where this runtime has no such callbacks.
    #[napi(constructor)]
    #[allow(clippy::new_without_default)]
    pub fn new() -> Result<NativeCollections> {
        let v8 = V8::find().ok_or_else(|| refused("this runtime does not export what V8 tells"))?;
        Ok(NativeCollections { v8, counts: Rc::default(), isolate: Cell::new(None) })
    }

    /// Starts counting, unless it counts already. Earlier counts stay.
    #[napi]
    pub fn start(&self) {
        // SAFETY: plain call; JavaScript runs on this thread, so there is one.
        let isolate = unsafe { (self.v8.current)() };
        if self.isolate.get().is_some() || isolate.is_null() {
            return;
        }
        self.isolate.set(Some(isolate));
        self.counts.begun.set(None);
        let data = Rc::as_ptr(&self.counts).cast_mut().cast();
        // SAFETY: the isolate is this thread's; `data` lives until `stop`, which `drop` calls.
        unsafe { (self.v8.add_prologue)(isolate, begin, data, ALL) };
        // SAFETY: as above.
        unsafe { (self.v8.add_epilogue)(isolate, end, data, ALL) };
    }

    #[napi]
    pub fn stop(&self) {
        let Some(isolate) = self.isolate.take() else { return };
        let data = Rc::as_ptr(&self.counts).cast_mut().cast();
        // SAFETY: the isolate lives as long as its JavaScript objects, of which this is one.
        unsafe { (self.v8.remove_prologue)(isolate, begin, data) };
        // SAFETY: as above.
        unsafe { (self.v8.remove_epilogue)(isolate, end, data) };
    }

    /// For each type of V8's `GCType`, by its bit: number, ms in all, and ms of the longest.
    #[napi]
    pub fn figures(&self) -> Vec<f64> {
        let ms = |ns: u64| ns as f64 / 1e6;
        self.counts
            .pauses
            .iter()
            .map(Cell::get)
            .flat_map(|Pauses { count, total_ns, max_ns }| [count as f64, ms(total_ns), ms(max_ns)])
            .collect()
    }
}

impl Drop for NativeCollections {
    fn drop(&mut self) {
        self.stop();
    }
}

unsafe extern "C" fn begin(_: *mut Isolate, kind: c_int, _flags: c_int, data: *mut c_void) {
    // SAFETY: the counts of `start`, on their own thread.
    let counts = unsafe { &*data.cast::<Counts>() };
    if counts.begun.get().is_none() {
        counts.begun.set(Some((kind, Instant::now())));
    }
}

unsafe extern "C" fn end(_: *mut Isolate, kind: c_int, _flags: c_int, data: *mut c_void) {
    // SAFETY: as in `begin`.
    let counts = unsafe { &*data.cast::<Counts>() };
    let Some((_, start)) = counts.begun.get().filter(|(begun, _)| *begun == kind) else { return };
    counts.begun.set(None);
    let took_ns = start.elapsed().as_nanos() as u64;
    let Some(pauses) = counts.pauses.get(kind.trailing_zeros() as usize) else { return };
    let Pauses { count, total_ns, max_ns } = pauses.get();
    pauses.set(Pauses {
        count: count + 1,
        total_ns: total_ns + took_ns,
        max_ns: max_ns.max(took_ns),
    });
}
