//! Reads what a function captured from V8's own objects, without the inspector. V8 exports its layout for
//! debuggers of dead processes: data symbols with the offsets of a function's context and of a context's
//! parts. The names of the variables are in the ScopeInfo of each context.
//!
//! A function is learnt once per piece of code: the place of each name in the chain of contexts. All of that
//! reads through `Peek`, so a layout that differs ends in a refusal. `read` then follows the places of a piece
//! of code that was learnt, in contexts that have the same ScopeInfos. The caller compares the first values with
//! those of the inspector (src/context/encode/known-closures.ts).
//! Long (over 400 lines): learning and reading share each offset, and are proved together.
//! Not here: all variables around a function (closure_scopes.rs); which names matter, and what is done with the
//! values.

use crate::closure_scopes::Scopes;
use crate::error::{Result, refused, to_js};
use crate::symbols::{check_tested, find};
use manycore_core::sys::{Peek, check_refusal};
use napi::bindgen_prelude::{Env, JsValue, Unknown};
use napi::sys;
use napi_derive::napi;
use std::collections::HashMap;
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
/// Pieces of code that are remembered.
const MAX_CODES: usize = 10_000;

/// Offsets in a context cell of Node 26, which holds a variable that was assigned again.
mod cell {
    pub const VALUE: usize = 8;
    pub const STATE: usize = 24;
    pub const NUMBER: usize = 32;
    pub const INT: i32 = 2;
    pub const DOUBLE: i32 = 3;
}

/// `v8::Function::ScriptId() const` and the like.
type Query = unsafe extern "C" fn(*const c_void) -> c_int;

#[derive(Clone, Copy)]
pub(crate) struct Layout {
    pub context_at: usize,
    pub previous: usize,
    pub min_slots: usize,
    instance_type_at: usize,
    first_nonstring: u16,
    script_id: Query,
    place: PlaceQuery,
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
    fn find() -> Option<Layout> {
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
        })
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

struct Known {
    number: i32,
    names: Vec<String>,
    /// All contexts around, innermost first. Also those that hold no variable of it: a new one there would hide
    /// an import or a global.
    contexts: Vec<Shape>,
    places: Vec<Place>,
}

impl Known {
    /// True: each name is where it was, in contexts that are alike.
    fn is_like(&self, other: &Known) -> bool {
        let contexts = || self.contexts.iter().map(Shape::alike);
        self.places == other.places && contexts().eq(other.contexts.iter().map(Shape::alike))
    }
}

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

/// A captured value. A double of a cell is no object yet.
pub(crate) enum Found {
    Handle(sys::napi_value),
    Double(f64),
    /// The declaration of the variable has not run.
    Unset,
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

fn small(number: usize) -> u64 {
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

/// One for each thread: what is compared belongs to its heap.
#[napi]
pub struct NativeClosureReader {
    pub(crate) layout: Layout,
    codes: HashMap<Code, Known>,
    pub(crate) scopes: Scopes,
    next: i32,
    /// Stands in a slot for a variable whose declaration has not run.
    hole: u64,
    /// The map of context cells; 0 where there are none.
    cell_map: u64,
}

#[napi]
impl NativeClosureReader {
    /// `unset`: a function that captured one variable, `x`, whose declaration has not run. `assigned`: one that
    /// captured `x`, which another function has set to 2. `numbers`: one that captured `inner`, 12, and `outer`,
    /// 11. Throws where the layout differs: all of it is compared as numbers,
    /// before a captured value is made of any.
    #[napi(constructor)]
    pub fn new(
        env: &Env,
        unset: Unknown<'_>,
        assigned: Unknown<'_>,
        numbers: Unknown<'_>,
    ) -> Result<NativeClosureReader> {
        check_refusal("native-capture").map_err(|_| refused("refused by MANYCORE_REFUSE"))?;
        check_tested(env.raw()).map_err(refused)?;
        let layout = Layout::find()
            .ok_or_else(|| refused("this runtime does not export the layout of functions"))?;
        let codes = HashMap::new();
        let scopes = Scopes::default();
        let mut reader =
            NativeClosureReader { layout, codes, scopes, next: 1, hole: 0, cell_map: 0 };
        let peek = Peek::open().map_err(to_js)?;
        let differs = || refused("functions have another layout in this runtime");
        let words = |of: &Unknown<'_>, names: &[&str]| {
            reader.words_of(&peek, env, of, names).ok_or_else(differs)
        };
        let is_right = words(&numbers, &["outer", "inner"])? == [small(11), small(12)];
        is_right.then_some(()).ok_or_else(differs)?;
        let [hole, value] = [words(&unset, &["x"])?[0], words(&assigned, &["x"])?[0]];
        let is_bare = value == small(2);
        let cell_map = if is_bare { Some(0) } else { map_of_cell(&peek, value, 2) };
        reader.cell_map = cell_map.ok_or_else(differs)?;
        reader.hole = Some(hole).filter(|&word| is_pointer(word)).ok_or_else(differs)?;
        Ok(reader)
    }

    fn words_of(
        &self,
        peek: &Peek,
        env: &Env,
        of: &Unknown<'_>,
        names: &[&str],
    ) -> Option<Vec<u64>> {
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        let (known, contexts) = self.find(peek, env, of, &names)?;
        let word = |&Place { depth, slot }: &Place| {
            peek.word(contexts.get(depth)? + SLOTS_AT + WORD * slot)
        };
        known.places.iter().map(word).collect()
    }

    /// Learns where the code of `of` has these variables. The name `this` is that of the function around an
    /// arrow. Returns the number of the code, or 0 where they cannot be read without the inspector.
    #[napi]
    pub fn learn(&mut self, env: &Env, of: Unknown<'_>, names: Vec<String>) -> Result<i32> {
        let Ok(peek) = Peek::open() else { return Ok(0) };
        let Some((mut known, _)) = self.find(&peek, env, &of, &names) else { return Ok(0) };
        let code = self.code_of(env, &of);
        let same = self.codes.get(&code).filter(|same| same.is_like(&known));
        let number = same.map_or(self.next, |same| same.number);
        self.next = self.next.max(number + 1);
        known.number = number;
        self.codes.insert(code, known);
        if self.codes.len() > MAX_CODES {
            let oldest = self.codes.iter().min_by_key(|(_, known)| known.number);
            let code = oldest.map(|(&code, _)| code).unwrap_or_default();
            self.codes.remove(&code);
        }
        Ok(number)
    }

    /// Forgets the code of `of`.
    #[napi]
    pub fn forget(&mut self, env: &Env, of: Unknown<'_>) {
        self.codes.remove(&self.code_of(env, &of));
    }

    /// Appends the values that `of` has captured, in the order in which its code was learnt. Returns the number
    /// of the code; 0: the code is not known, or something cannot be read now. The negated number: the code
    /// around it has changed, as a debugger does it, and must be learnt anew.
    #[napi]
    pub fn read(&mut self, env: &Env, of: Unknown<'_>, values: Unknown<'_>) -> i32 {
        let code = self.code_of(env, &of);
        let Some(known) = self.codes.get(&code) else { return 0 };
        let number = known.number;
        // SAFETY: a function of V8, which `code_of` has found to have a script.
        let mut contexts = unsafe { self.contexts_of(&of, &known.contexts) };
        if contexts.is_none() {
            let Ok(peek) = Peek::open() else { return 0 };
            if self.renew(&peek, env, &of, code).is_none() {
                return -number;
            }
            // SAFETY: as above.
            contexts = self
                .codes
                .get(&code)
                .and_then(|known| unsafe { self.contexts_of(&of, &known.contexts) });
        }
        let (Some(contexts), Some(known)) = (contexts, self.codes.get(&code)) else { return 0 };
        let words = known.places.iter().map(|place| {
            let address = contexts[place.depth] + SLOTS_AT + WORD * place.slot;
            // SAFETY: a slot below the length of that context, which `contexts_of` has checked.
            unsafe { word_at(address) }
        });
        // SAFETY: slots of live contexts; nothing was allocated since they were read.
        let is_whole = unsafe { self.append(env, words, &values, None) };
        if is_whole { number } else { 0 }
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
        // SAFETY: a live handle holds the tagged address of the function.
        let function = unsafe { word_at(of.raw() as usize) };
        // SAFETY: a function has its context there, which the self-test has proved.
        let mut context = unsafe { word_at(untag(function) + self.layout.context_at) };
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
            // SAFETY: a slot below that length.
            context = unsafe { word_at(untag(context) + SLOTS_AT + WORD * self.layout.previous) };
        }
        Some(contexts)
    }

    /// Finds the contexts again after a collection moved what describes them; `None`: they are others.
    fn renew(&mut self, peek: &Peek, env: &Env, of: &Unknown<'_>, code: Code) -> Option<()> {
        let known = self.codes.get(&code)?;
        let (found, _) = self.find(peek, env, of, &known.names)?;
        found.is_like(known).then_some(())?;
        let number = known.number;
        self.codes.insert(code, Known { number, ..found });
        Some(())
    }

    /// Appends the values of these variables of `of`, and learns nothing. False: they cannot be read.
    #[napi]
    pub fn read_once(
        &self,
        env: &Env,
        of: Unknown<'_>,
        names: Vec<String>,
        values: Unknown<'_>,
    ) -> Result<bool> {
        let Ok(peek) = Peek::open() else { return Ok(false) };
        let Some((known, contexts)) = self.find(&peek, env, &of, &names) else { return Ok(false) };
        let words = known.places.iter().map(|place| {
            // SAFETY: a slot below the length of a context that was just found. The names were internalized
            // strings, so nothing was allocated since, and no object has moved.
            unsafe { word_at(contexts[place.depth] + SLOTS_AT + WORD * place.slot) }
        });
        // SAFETY: as above.
        Ok(unsafe { self.append(env, words, &values, None) })
    }

    /// Appends the values of words of contexts. `unset`: the value for a variable that has none yet; without one,
    /// false where there is such a variable.
    ///
    /// # Safety
    /// Each word is in a slot of a live context, and nothing was allocated since it was read.
    pub(crate) unsafe fn append(
        &self,
        env: &Env,
        words: impl ExactSizeIterator<Item = u64>,
        values: &Unknown<'_>,
        unset: Option<&Unknown<'_>>,
    ) -> bool {
        // All of them are in handles before anything is allocated: a collection moves objects.
        let mut found = Vec::with_capacity(words.len());
        for word in words {
            // SAFETY: the contract of this function.
            let Some(value) = (unsafe { self.value_of(env, word) }) else { return false };
            found.push(value);
        }
        found.into_iter().zip(0..).all(|(value, at)| {
            let value = match value {
                Found::Handle(handle) => Some(handle),
                Found::Double(double) => double_of(env, double),
                Found::Unset => unset.map(JsValue::raw),
            };
            let Some(value) = value else { return false };
            // SAFETY: live values of this environment.
            let status = unsafe { sys::napi_set_element(env.raw(), values.raw(), at, value) };
            status == sys::Status::napi_ok
        })
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
        let Layout { script_id, place, .. } = self.layout;
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

    /// `None`: no value that JavaScript can have.
    ///
    /// # Safety
    /// `word` is in a slot of a live context, and nothing was allocated since it was read.
    unsafe fn value_of(&self, env: &Env, word: u64) -> Option<Found> {
        if word == self.hole {
            return Some(Found::Unset);
        }
        // SAFETY: called with the slot or what a cell in it holds, before anything is allocated.
        let handle = |word| unsafe { self.handle_of(env, word) }.map(Found::Handle);
        if !is_pointer(word) || self.cell_map == 0 {
            return handle(word);
        }
        let object = untag(word);
        // SAFETY: each object of V8 begins with its map.
        if unsafe { word_at(object) } != self.cell_map {
            return handle(word);
        }
        // SAFETY: the parts of a cell, which the self-test has proved.
        let (value, state, number) = unsafe { cell_at(object) };
        match state {
            0 | 1 if value == self.hole => Some(Found::Unset),
            0 | 1 => handle(value),
            cell::INT => int_of(env, number as i32).map(Found::Handle),
            cell::DOUBLE => Some(Found::Double(f64::from_bits(number))),
            _ => None,
        }
    }

    /// A new handle for a word of a context; `None` for what is neither a small integer nor a pointer.
    ///
    /// # Safety
    /// A pointer is one to a live object, and nothing was allocated since it was read.
    unsafe fn handle_of(&self, env: &Env, word: u64) -> Option<sys::napi_value> {
        if !is_small(word) && !is_pointer(word) {
            return None;
        }
        let handle = int_of(env, 0)?;
        // SAFETY: a fresh handle is a slot of the open scope, which holds the number until here.
        unsafe { *handle.cast::<u64>() = word };
        if is_small(word) {
            return Some(handle);
        }
        let mut kind = 0;
        // SAFETY: the handle has an object of V8. Objects of its own kinds are refused by their type.
        let status = unsafe { sys::napi_typeof(env.raw(), handle, &mut kind) };
        (status == sys::Status::napi_ok).then_some(handle)
    }

    /// The places of `names`, and the addresses of the contexts.
    fn find(
        &self,
        peek: &Peek,
        env: &Env,
        of: &Unknown<'_>,
        names: &[String],
    ) -> Option<(Known, Vec<usize>)> {
        let mut places: Vec<Option<Place>> = vec![None; names.len()];
        let (shapes, contexts) = self.walk(peek, env, of, |depth, _, scope| {
            if places.iter().all(Option::is_some) {
                return Some(());
            }
            let found = self.slots_of(peek, env, scope)?;
            for (place, name) in places.iter_mut().zip(names) {
                let slot = found.iter().find(|(each, _)| each == name).map(|&(_, slot)| slot);
                *place = place.or_else(|| slot.map(|slot| Place { depth, slot }));
            }
            let is_whole = scope.extra == 0 || places.iter().all(Option::is_some);
            is_whole.then_some(())
        })?;
        let places = places.into_iter().collect::<Option<Vec<Place>>>()?;
        let known = Known { number: 0, names: names.to_vec(), contexts: shapes, places };
        Some((known, contexts))
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
        let mut context = peek.word(untag(function) + self.layout.context_at)?;
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
            context = peek.word(address + SLOTS_AT + WORD * self.layout.previous)?;
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
        let room = size_of_small(length)?.checked_sub(self.layout.min_slots)?;
        self.check_object(peek, info)?;
        let words = peek.words(untag(info) + WORD, MAX_HEAD + 2 * room + 2);
        let count = size_of_small(*words.get(COUNT_IN_HEAD)?).filter(|&count| count <= room)?;
        // The flags, in front, are no tagged number in newer versions.
        let rest = words.iter().skip(COUNT_IN_HEAD);
        let head = COUNT_IN_HEAD + rest.take_while(|&&word| is_small(word)).count();
        let after = head + if count <= MAX_INLINE { 2 * count } else { 1 + count };
        // A name of its own without a slot has -1 there.
        let last = small(self.layout.min_slots + room).wrapping_sub(small(1));
        let has_own = words.get(after + 1).is_some_and(|&word| word == last);
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
        let min = self.layout.min_slots;
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
        let at = map + self.layout.instance_type_at;
        Some((peek.word(at - at % WORD)? >> (8 * (at % WORD))) as u16)
    }

    /// The text of a string of V8; `None` for anything else.
    pub(crate) fn text_of(&self, peek: &Peek, env: &Env, word: u64) -> Option<String> {
        if self.type_of(peek, word)? >= self.layout.first_nonstring {
            return None;
        }
        let handle = int_of(env, 0)?;
        // SAFETY: as in `handle_of`; the type of its map says that it is a string.
        unsafe { *handle.cast::<u64>() = word };
        text_in(env, handle)
    }
}

/// The map of the context cell at `tagged`, which holds this integer.
fn map_of_cell(peek: &Peek, tagged: u64, integer: u32) -> Option<u64> {
    let object = untag(Some(tagged).filter(|&word| is_pointer(word))?);
    let is_held = match peek.word(object + cell::STATE)? as i32 {
        0 | 1 => peek.word(object + cell::VALUE)? == u64::from(integer) << 32,
        cell::INT => peek.word(object + cell::NUMBER)? as u32 == integer,
        _ => false,
    };
    peek.word(object).filter(|&map| is_held && is_pointer(map))
}

pub(crate) fn untag(tagged: u64) -> usize {
    (tagged & !3) as usize
}

/// # Safety
/// A context cell is at `object`.
unsafe fn cell_at(object: usize) -> (u64, i32, u64) {
    // SAFETY: the contract of this function.
    let value = unsafe { word_at(object + cell::VALUE) };
    // SAFETY: as above.
    let state = unsafe { word_at(object + cell::STATE) } as i32;
    // SAFETY: as above.
    (value, state, unsafe { word_at(object + cell::NUMBER) })
}

fn int_of(env: &Env, value: i32) -> Option<sys::napi_value> {
    let mut made = null_mut();
    // SAFETY: on the thread of `env`, with a live out-parameter.
    let status = unsafe { sys::napi_create_int32(env.raw(), value, &mut made) };
    (status == sys::Status::napi_ok).then_some(made)
}

fn double_of(env: &Env, value: f64) -> Option<sys::napi_value> {
    let mut made = null_mut();
    // SAFETY: as in `int_of`.
    let status = unsafe { sys::napi_create_double(env.raw(), value, &mut made) };
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
