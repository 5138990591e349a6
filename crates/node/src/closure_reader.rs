//! Reads single variables that a function captured from V8's own objects, without the inspector.
//!
//! A function is learnt once per piece of code: the place of each name in the chain of contexts. `read` then follows
//! the places of a piece of code that was learnt, in contexts that have the same ScopeInfos. The caller compares the
//! first values with those of the inspector (src/context/encode/known-closures.ts).
//! Not here: the layout of contexts (v8_layout.rs); all variables around a function (closure_scopes.rs); which names
//! matter, and what is done with the values.

use crate::closure_scopes::Scopes;
use crate::codes::{Codes, Learnt};
use crate::error::{Result, refused, to_js};
use crate::symbols::check_tested;
use crate::v8_layout::{
    Code, Layout, Place, SLOTS_AT, Shape, WORD, int_of, is_pointer, is_small, small, untag, word_at,
};
use manycore_core::sys::{Peek, check_refusal};
use napi::bindgen_prelude::{Env, JsValue, Unknown};
use napi::sys;
use napi_derive::napi;
use std::ptr::null_mut;

/// Offsets in a context cell of Node 26, which holds a variable that was assigned again.
mod cell {
    pub const VALUE: usize = 8;
    pub const STATE: usize = 24;
    pub const NUMBER: usize = 32;
    pub const INT: i32 = 2;
    pub const DOUBLE: i32 = 3;
}

struct Known {
    names: Vec<String>,
    /// Also those that hold no variable of it: a new one there would hide an import or a global.
    contexts: Vec<Shape>,
    places: Vec<Place>,
}

impl Learnt for Known {
    fn contexts(&self) -> &[Shape] {
        &self.contexts
    }

    fn has_places_of(&self, other: &Known) -> bool {
        self.places == other.places
    }
}

/// A captured value. A double of a cell is no object yet.
pub(crate) enum Found {
    Handle(sys::napi_value),
    Double(f64),
    /// The declaration of the variable has not run.
    Unset,
}

/// One for each thread: what is compared belongs to its heap.
#[napi]
pub struct NativeClosureReader {
    pub(crate) layout: Layout,
    codes: Codes<Known>,
    pub(crate) scopes: Scopes,
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
        let (codes, scopes) = (Codes::new(), Scopes::new());
        let mut reader = NativeClosureReader { layout, codes, scopes, hole: 0, cell_map: 0 };
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
        reader.layout.learn_origin(&peek, env, &numbers);
        Ok(reader)
    }

    /// The name of the script of `of`, or '' where it has none; `null`: it cannot be read here.
    #[napi]
    pub fn script_name(&self, env: &Env, of: Unknown<'_>) -> Option<String> {
        self.layout.script_name(&Peek::open().ok()?, env, &of)
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
        let Some((known, _)) = self.find(&peek, env, &of, &names) else { return Ok(0) };
        Ok(self.codes.learn(self.layout.code_of(env, &of), known))
    }

    /// Forgets the code of `of`.
    #[napi]
    pub fn forget(&mut self, env: &Env, of: Unknown<'_>) {
        self.codes.forget(self.layout.code_of(env, &of));
    }

    /// Appends the values that `of` has captured, in the order in which its code was learnt. Returns the number
    /// of the code; 0: the code is not known, or something cannot be read now. The negated number: the code
    /// around it has changed, as a debugger does it, and must be learnt anew.
    #[napi]
    pub fn read(&mut self, env: &Env, of: Unknown<'_>, values: Unknown<'_>) -> i32 {
        let code = self.layout.code_of(env, &of);
        let Some((number, known)) = self.codes.get(code) else { return 0 };
        // SAFETY: a function of V8, which `code_of` has found to have a script.
        let mut contexts = unsafe { self.layout.contexts_of(&of, &known.contexts) };
        if contexts.is_none() {
            let Ok(peek) = Peek::open() else { return 0 };
            if self.renew(&peek, env, &of, code).is_none() {
                return -number;
            }
            // SAFETY: as above.
            contexts = self
                .codes
                .get(code)
                .and_then(|(_, known)| unsafe { self.layout.contexts_of(&of, &known.contexts) });
        }
        let (Some(contexts), Some((_, known))) = (contexts, self.codes.get(code)) else { return 0 };
        let words = known.places.iter().map(|place| {
            let address = contexts[place.depth] + SLOTS_AT + WORD * place.slot;
            // SAFETY: a slot below the length of that context, which `contexts_of` has checked.
            unsafe { word_at(address) }
        });
        // SAFETY: slots of live contexts; nothing was allocated since they were read.
        let is_whole = unsafe { self.append(env, words, &values, None) };
        if is_whole { number } else { 0 }
    }

    /// Finds the contexts again after a collection moved what describes them; `None`: they are others.
    fn renew(&mut self, peek: &Peek, env: &Env, of: &Unknown<'_>, code: Code) -> Option<()> {
        let (_, known) = self.codes.get(code)?;
        let (found, _) = self.find(peek, env, of, &known.names)?;
        self.codes.renew(code, found)
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
        let (shapes, contexts) = self.layout.walk(peek, env, of, |depth, _, scope| {
            if places.iter().all(Option::is_some) {
                return Some(());
            }
            let found = self.layout.slots_of(peek, env, scope)?;
            for (place, name) in places.iter_mut().zip(names) {
                let slot = found.iter().find(|(each, _)| each == name).map(|&(_, slot)| slot);
                *place = place.or_else(|| slot.map(|slot| Place { depth, slot }));
            }
            let is_whole = scope.extra == 0 || places.iter().all(Option::is_some);
            is_whole.then_some(())
        })?;
        let places = places.into_iter().collect::<Option<Vec<Place>>>()?;
        let known = Known { names: names.to_vec(), contexts: shapes, places };
        Some((known, contexts))
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

fn double_of(env: &Env, value: f64) -> Option<sys::napi_value> {
    let mut made = null_mut();
    // SAFETY: as in `int_of`.
    let status = unsafe { sys::napi_create_double(env.raw(), value, &mut made) };
    (status == sys::Status::napi_ok).then_some(made)
}
