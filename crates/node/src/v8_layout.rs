//! The layout of V8's functions, contexts and ScopeInfos. V8 exports it for debuggers of dead processes: data
//! symbols with the offsets of a function's context and of a context's parts. The names of variables are in the
//! ScopeInfo of each context. Whatever is met for the first time is read through `Peek`, so that a layout that
//! differs ends in `None` and no crash.
//! Long (over 400 lines), because each offset is used by finding contexts as by following them.
//! Not here: captured values (closure_reader.rs), the scopes of a function (closure_scopes.rs), the cells of modules
//! (module_cells.rs).

use crate::symbols::find;
use manycore_core::sys::Peek;
use napi::bindgen_prelude::{Env, JsValue, Unknown};
use napi::sys;
use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;

/// Offsets in a FixedArray, whose form a context has.
pub(crate) const LENGTH_AT: usize = 8;
pub(crate) const SLOTS_AT: usize = 16;
pub(crate) const WORD: usize = 8;
/// Contexts that are followed, and slots of one, or words of a table of names.
const MAX_DEPTH: usize = 64;
const MAX_SLOTS: usize = 16_384;
/// A ScopeInfo with more names keeps them in a table.
const MAX_INLINE: usize = 74;
/// Words of a ScopeInfo before its names: flags, counts and positions. One of them is the number of names.
const MAX_HEAD: usize = 8;
const COUNT_IN_HEAD: usize = 2;

/// `v8::Function::ScriptId() const` and the like.
type Query = unsafe extern "C" fn(*const c_void) -> c_int;
/// `v8::Function::GetScriptOrigin() const`.
type OriginQuery = unsafe extern "C" fn(*const c_void) -> Origin;

/// A `v8::ScriptOrigin`, and room behind it: versions of V8 have different parts. It is returned in memory of the
/// caller.
#[repr(C)]
struct Origin([usize; 16]);

/// The handle of the name is the first or the second word.
const MAX_NAME_AT: usize = 2;

#[derive(Clone, Copy)]
pub(crate) struct Layout {
    context_at: usize,
    previous: usize,
    pub min_slots: usize,
    instance_type_at: usize,
    first_nonstring: u16,
    script_id: Query,
    place: PlaceQuery,
    /// The query, and the word that is the handle of the name; `None`: not learnt.
    origin: Option<(OriginQuery, usize)>,
}

/// Queries for the place where the code of a function begins.
#[derive(Clone, Copy)]
enum PlaceQuery {
    /// The offset in the script, from Node 22 on.
    Offset(Query),
    /// V8 searches these in a list of lines.
    LineAndColumn(Query, Query),
}

impl PlaceQuery {
    fn find() -> Option<PlaceQuery> {
        let offset = query(c"_ZNK2v88Function22GetScriptStartPositionEv").map(PlaceQuery::Offset);
        offset.or_else(|| {
            let line = query(c"_ZNK2v88Function19GetScriptLineNumberEv")?;
            let column = query(c"_ZNK2v88Function21GetScriptColumnNumberEv")?;
            Some(PlaceQuery::LineAndColumn(line, column))
        })
    }
}

impl Layout {
    pub fn find() -> Option<Layout> {
        let is_known = cfg!(target_pointer_width = "64") && cfg!(target_endian = "little");
        let context = number(c"v8dbg_class_JSFunction__context__Context")
            .or_else(|| number(c"v8dbg_class_JSFunction__context__Tagged_Context_"));
        is_known.then_some(())?;
        // Each context has at least these slots.
        let min_slots = number(c"v8dbg_context_min_slots")?;
        Some(Layout {
            context_at: context?,
            previous: number(c"v8dbg_context_idx_prev").filter(|&slot| slot < min_slots)?,
            min_slots,
            instance_type_at: number(c"v8dbg_class_Map__instance_type__uint16_t")?,
            first_nonstring: number(c"v8dbg_FirstNonstringType")?.try_into().ok()?,
            script_id: query(c"_ZNK2v88Function8ScriptIdEv")?,
            place: PlaceQuery::find()?,
            origin: None,
        })
    }

    /// Learns where the origin of a script has its name. `of`: a function of a script that has one.
    pub(crate) fn learn_origin(&mut self, peek: &Peek, env: &Env, of: &Unknown<'_>) {
        // SAFETY: the name has the types of its parameters in it; it returns a `v8::ScriptOrigin`.
        let Some(query) = (unsafe { find::<OriginQuery>(c"_ZNK2v88Function15GetScriptOriginEv") })
        else {
            return;
        };
        self.origin = (0..MAX_NAME_AT).map(|at| (query, at)).find(|&origin| {
            self.name_word(peek, env, of, origin)
                .is_some_and(|word| self.text_of(peek, env, word).is_some())
        });
    }

    /// The name of the script of `of`, or '' where it has none; `None`: it cannot be read here.
    pub(crate) fn script_name(&self, peek: &Peek, env: &Env, of: &Unknown<'_>) -> Option<String> {
        let word = self.name_word(peek, env, of, self.origin?)?;
        let is_text = self.type_of(peek, word)? < self.first_nonstring;
        if is_text { self.text_of(peek, env, word) } else { Some(String::new()) }
    }

    /// The word in the handle of the name of the script of `of`.
    fn name_word(
        &self,
        peek: &Peek,
        env: &Env,
        of: &Unknown<'_>,
        (query, at): (OriginQuery, usize),
    ) -> Option<u64> {
        if self.code_of(env, of).0 <= 0 {
            return None;
        }
        // SAFETY: a handle of a function with a script.
        let origin = unsafe { query(of.raw().cast::<c_void>().cast_const()) };
        let handle = *origin.0.get(at)?;
        peek.word(handle).filter(|_| handle.is_multiple_of(WORD))
    }

    /// All zero for what is no function with a script: native code, a bound function, a Proxy.
    pub(crate) fn code_of(&self, env: &Env, of: &Unknown<'_>) -> Code {
        let mut kind = 0;
        // SAFETY: a live value of this environment, and a live out-parameter.
        let status = unsafe { sys::napi_typeof(env.raw(), of.raw(), &mut kind) };
        if status != sys::Status::napi_ok || kind != sys::ValueType::napi_function {
            return (0, 0, 0);
        }
        let function = of.raw().cast::<c_void>().cast_const();
        let &Layout { script_id, place, .. } = self;
        // SAFETY: a handle of N-API is one of V8, and this one has a function.
        let script = unsafe { script_id(function) };
        match place {
            // SAFETY: as above.
            PlaceQuery::Offset(offset) => (script, unsafe { offset(function) }, 0),
            PlaceQuery::LineAndColumn(line, column) => {
                // SAFETY: as above.
                let line = unsafe { line(function) };
                // SAFETY: as above.
                (script, line, unsafe { column(function) })
            }
        }
    }

    /// The addresses of the contexts of `of`; `None`: they do not have these shapes.
    ///
    /// # Safety
    /// `of` is a function with a script.
    pub(crate) unsafe fn contexts_of(
        &self,
        of: &Unknown<'_>,
        shapes: &[Shape],
    ) -> Option<[usize; MAX_DEPTH]> {
        let mut contexts = [0usize; MAX_DEPTH];
        // SAFETY: the contract of this function.
        let mut context = unsafe { self.context_of(of) };
        for (at, shape) in shapes.iter().enumerate() {
            if !is_pointer(context) {
                return None;
            }
            contexts[at] = untag(context);
            // SAFETY: the length of a live context.
            let length = unsafe { word_at(untag(context) + LENGTH_AT) };
            if length != shape.length {
                return None;
            }
            // SAFETY: a context has its ScopeInfo in front, which the self-test has proved.
            if unsafe { word_at(untag(context) + SLOTS_AT) } != shape.info {
                return None;
            }
            // SAFETY: each context has that slot.
            context = unsafe { word_at(untag(context) + SLOTS_AT + WORD * self.previous) };
        }
        Some(contexts)
    }

    /// The address of the outermost context around `of`. `info`: the ScopeInfo of such contexts.
    ///
    /// # Safety
    /// `of` is a function with a script.
    pub(crate) unsafe fn root_of(&self, of: &Unknown<'_>, info: u64) -> Option<usize> {
        // SAFETY: the contract of this function.
        let mut context = unsafe { self.context_of(of) };
        while is_pointer(context) {
            let slots = untag(context) + SLOTS_AT;
            // SAFETY: a context has its ScopeInfo in front.
            if unsafe { word_at(slots) } == info {
                return Some(untag(context));
            }
            // SAFETY: a context that is not that of a realm has one around it.
            context = unsafe { word_at(slots + WORD * self.previous) };
        }
        None
    }

    /// The tagged address of the innermost context.
    ///
    /// # Safety
    /// `of` is a function with a script.
    unsafe fn context_of(&self, of: &Unknown<'_>) -> u64 {
        // SAFETY: a live handle holds the tagged address of the function.
        let function = unsafe { word_at(of.raw() as usize) };
        // SAFETY: a function has its context there, which the self-test has proved.
        unsafe { word_at(untag(function) + self.context_at) }
    }

    /// Visits the contexts around `of`, innermost first: steps to it, its address, its scope. Returns the shapes and
    /// addresses of all, with that of the realm, which has no scope; `None`: something is not as expected.
    pub(crate) fn walk(
        &self,
        peek: &Peek,
        env: &Env,
        of: &Unknown<'_>,
        mut visit: impl FnMut(usize, usize, &Scope) -> Option<()>,
    ) -> Option<(Vec<Shape>, Vec<usize>)> {
        if self.code_of(env, of).0 <= 0 {
            return None;
        }
        let handle = of.raw() as usize;
        // A handle that is no slot would have the tag of an object.
        let function = peek.word(handle).filter(|_| handle.is_multiple_of(WORD))?;
        self.check_object(peek, function)?;
        let mut context = peek.word(untag(function) + self.context_at)?;
        let mut shapes = Vec::new();
        let mut contexts = Vec::new();
        loop {
            let depth = shapes.len();
            self.check_object(peek, context).filter(|()| depth < MAX_DEPTH)?;
            let address = untag(context);
            let length = peek.word(address + LENGTH_AT)?;
            let info = peek.word(address + SLOTS_AT)?;
            let scope = self.scope_of(peek, length, info);
            let numbers = scope.as_ref().map(Scope::numbers).unwrap_or_default();
            shapes.push(Shape { length, info, numbers });
            contexts.push(address);
            let Some(scope) = scope else { break };
            visit(depth, address, &scope)?;
            context = peek.word(address + SLOTS_AT + WORD * self.previous)?;
        }
        Some((shapes, contexts))
    }

    /// An object has a map, whose map is the map of maps.
    pub(crate) fn check_object(&self, peek: &Peek, tagged: u64) -> Option<()> {
        let map = peek.word(untag(Some(tagged).filter(|&word| is_pointer(word))?))?;
        let of_map = peek.word(untag(Some(map).filter(|&word| is_pointer(word))?))?;
        let of_maps = peek.word(untag(Some(of_map).filter(|&word| is_pointer(word))?))?;
        (of_maps == of_map).then_some(())
    }

    /// `None`: not that of a scope in code.
    fn scope_of(&self, peek: &Peek, length: u64, info: u64) -> Option<Scope> {
        let room = size_of_small(length)?.checked_sub(self.min_slots)?;
        self.check_object(peek, info)?;
        let words = peek.words(untag(info) + WORD, MAX_HEAD + 2 * room + 2);
        let count = size_of_small(*words.get(COUNT_IN_HEAD)?).filter(|&count| count <= room)?;
        // The flags, in front, are no tagged number in newer versions.
        let rest = words.iter().skip(COUNT_IN_HEAD);
        let head = COUNT_IN_HEAD + rest.take_while(|&&word| is_small(word)).count();
        let after = head + if count <= MAX_INLINE { 2 * count } else { 1 + count };
        // A name of its own without a slot has -1 there. The words may belong to the next object in memory.
        let last = small(self.min_slots + room).wrapping_sub(small(1));
        let has_own = count < room
            && words.get(after + 1).is_some_and(|&word| word == last)
            && self.type_of(peek, words[after]).is_some_and(|kind| kind < self.first_nonstring);
        let extra = room.checked_sub(count + usize::from(has_own)).filter(|&extra| extra <= 1)?;
        (after <= words.len()).then_some(Scope { words, count, head, after, room, has_own, extra })
    }

    /// The names of a scope with their slots.
    pub(crate) fn slots_of(
        &self,
        peek: &Peek,
        env: &Env,
        scope: &Scope,
    ) -> Option<Vec<(String, usize)>> {
        let &Scope { count, head, after, .. } = scope;
        let names = if count <= MAX_INLINE {
            let names = self.texts(peek, env, scope.words.get(head..head + count)?)?;
            names.into_iter().zip(0..).collect()
        } else {
            self.table(peek, env, *scope.words.get(head)?, count)?
        };
        let min = self.min_slots;
        let first = min + scope.extra;
        let mut slots: Vec<_> = names.into_iter().map(|(name, at)| (name, first + at)).collect();
        if scope.has_own {
            let own = self.text_of(peek, env, *scope.words.get(after)?)?;
            slots.push((own, min + scope.room - 1));
        }
        Some(slots)
    }

    fn texts(&self, peek: &Peek, env: &Env, words: &[u64]) -> Option<Vec<String>> {
        words.iter().map(|&word| self.text_of(peek, env, word)).collect()
    }

    /// The names of a table, each with its index.
    fn table(
        &self,
        peek: &Peek,
        env: &Env,
        table: u64,
        count: usize,
    ) -> Option<Vec<(String, usize)>> {
        self.check_object(peek, table)?;
        let size = size_of_small(peek.word(untag(table) + LENGTH_AT)?)?;
        let words = peek.words(untag(table) + SLOTS_AT, size);
        let pairs = words.iter().zip(words.iter().skip(1));
        let names: Vec<_> = pairs
            .filter(|&(&name, &index)| is_pointer(name) && is_small(index))
            .filter_map(|(&name, &index)| {
                Some((self.text_of(peek, env, name)?, size_of_small(index)?))
            })
            .collect();
        let is_whole = names.len() == count && names.iter().all(|&(_, at)| at < count);
        is_whole.then_some(names)
    }

    /// The instance type of an object of V8.
    pub(crate) fn type_of(&self, peek: &Peek, word: u64) -> Option<u16> {
        self.check_object(peek, word)?;
        let map = untag(peek.word(untag(word))?);
        let at = map + self.instance_type_at;
        Some((peek.word(at - at % WORD)? >> (8 * (at % WORD))) as u16)
    }

    /// The text of a string of V8; `None` for anything else.
    pub(crate) fn text_of(&self, peek: &Peek, env: &Env, word: u64) -> Option<String> {
        if self.type_of(peek, word)? >= self.first_nonstring {
            return None;
        }
        let handle = int_of(env, 0)?;
        // SAFETY: a fresh handle is a slot of the open scope; the type of its map says that this is a string.
        unsafe { *handle.cast::<u64>() = word };
        text_in(env, handle)
    }
}

fn query(name: &CStr) -> Option<Query> {
    // SAFETY: the name has the types of its parameters in it (Itanium C++ ABI, 5.1); each returns an int.
    unsafe { find(name) }
}

/// An `int` that V8 exports for debuggers.
pub(crate) fn number(name: &CStr) -> Option<usize> {
    // SAFETY: an address is as large as a function pointer; it is read below alone.
    let at: *const c_int = unsafe { find::<*const c_int>(name) }?;
    // SAFETY: the symbol is an int in the data of the executable.
    usize::try_from(unsafe { *at }).ok()
}

/// The code of a function: its script, and the line and column, or the offset and 0, where it begins.
pub(crate) type Code = (c_int, c_int, c_int);

/// A variable: steps up the chain of contexts, and the slot in the context there.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Place {
    pub depth: usize,
    pub slot: usize,
}

/// The form of a context: alike contexts have the same variables in the same slots.
pub(crate) struct Shape {
    /// The number of slots, as a tagged number.
    length: u64,
    /// The ScopeInfo, as a tagged address: another one may have the names elsewhere.
    pub info: u64,
    /// Words of the ScopeInfo that are no addresses, which a collection would change.
    numbers: Vec<u64>,
}

impl Shape {
    pub fn alike(&self) -> (u64, &[u64]) {
        (self.length, &self.numbers)
    }
}

/// The ScopeInfo of one context: numbers, of which the third is that of its names, then all names, then as many
/// numbers, and then the name and slot of the function itself where its code uses that. Many names are in a table.
pub(crate) struct Scope {
    pub words: Vec<u64>,
    count: usize,
    /// Places in `words`: the names, or the table, and what comes behind their numbers.
    pub head: usize,
    pub after: usize,
    /// Slots of names.
    room: usize,
    pub has_own: bool,
    /// Slots in front of those of the names. One holds an extension: code may add variables while it runs, as
    /// `eval` does, or names that are not listed.
    pub extra: usize,
}

impl Scope {
    /// Words that are no addresses, which a collection would change.
    fn numbers(&self) -> Vec<u64> {
        let words = self.words.iter().take(self.after);
        words.filter(|&&word| !is_pointer(word)).copied().collect()
    }
}

pub(crate) fn is_pointer(tagged: u64) -> bool {
    tagged & 3 == 1
}

/// A small integer has its value in the upper half.
pub(crate) fn is_small(tagged: u64) -> bool {
    tagged & 0xffff_ffff == 0
}

pub(crate) fn small(number: usize) -> u64 {
    (number as u64) << 32
}

pub(crate) fn size_of_small(tagged: u64) -> Option<usize> {
    let size = (tagged >> 32) as usize;
    (is_small(tagged) && size <= MAX_SLOTS).then_some(size)
}

/// # Safety
/// A word of V8's heap is at `address`.
pub(crate) unsafe fn word_at(address: usize) -> u64 {
    // SAFETY: the contract of this function.
    unsafe { *(address as *const u64) }
}

pub(crate) fn untag(tagged: u64) -> usize {
    (tagged & !3) as usize
}

/// A new handle for an integer.
pub(crate) fn int_of(env: &Env, value: i32) -> Option<sys::napi_value> {
    let mut made = null_mut();
    // SAFETY: on the thread of `env`, with a live out-parameter.
    let status = unsafe { sys::napi_create_int32(env.raw(), value, &mut made) };
    (status == sys::Status::napi_ok).then_some(made)
}

fn text_in(env: &Env, handle: sys::napi_value) -> Option<String> {
    let mut length = 0;
    // SAFETY: a live handle with a string; without a buffer only the length is asked for.
    let status =
        unsafe { sys::napi_get_value_string_utf8(env.raw(), handle, null_mut(), 0, &mut length) };
    if status != sys::Status::napi_ok {
        return None;
    }
    let mut bytes = vec![0u8; length + 1];
    let start = bytes.as_mut_ptr().cast();
    // SAFETY: a live buffer of that size, which has room for the zero at the end.
    let status = unsafe {
        sys::napi_get_value_string_utf8(env.raw(), handle, start, bytes.len(), &mut length)
    };
    bytes.truncate(length);
    (status == sys::Status::napi_ok).then(|| String::from_utf8(bytes).ok())?
}
