//! All variables around a function, scope by scope, as the inspector shows them: those in contexts, and the imports
//! and exports of a module, which are in cells of the module. Learnt once per piece of code; the caller compares
//! the first values with those of the inspector (src/context/closures/capture.ts).
//! Not here: single variables of a function (closure_reader.rs), the layout of contexts (v8_layout.rs), the cells of
//! a module (module_cells.rs).

use crate::closure_reader::NativeClosureReader;
use crate::codes::{Codes, Learnt};
use crate::error::Result;
use crate::module_cells::Types;
use crate::v8_layout::{
    Code, LENGTH_AT, Place, SLOTS_AT, Shape, WORD, number, size_of_small, untag, word_at,
};
use manycore_core::sys::Peek;
use napi::bindgen_prelude::{Env, Unknown};
use napi_derive::napi;

/// Offset of the value in a cell.
const CELL_VALUE_AT: usize = 8;
/// Variables of one piece of code.
const MAX_VARIABLES: usize = 10_000;

/// The place of a variable: a slot, or a cell of the module in that slot.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Variable {
    Slot(Place),
    Cell { module: Place, list_at: usize, index: usize },
}

/// The scopes around a piece of code.
struct Known {
    contexts: Vec<Shape>,
    /// The contexts with variables.
    scopes: Vec<KnownScope>,
    /// Their variables, and then the `this` of the function around, where an arrow uses it.
    variables: Vec<Variable>,
    has_this: bool,
}

#[derive(PartialEq)]
struct KnownScope {
    depth: usize,
    names: Vec<String>,
}

impl Learnt for Known {
    fn contexts(&self) -> &[Shape] {
        &self.contexts
    }

    fn has_places_of(&self, other: &Known) -> bool {
        self.variables == other.variables && self.scopes == other.scopes
    }
}

/// The scopes that one thread has learnt.
pub struct Scopes {
    codes: Codes<Known>,
    realm: Option<Realm>,
}

impl Scopes {
    pub fn new() -> Scopes {
        Scopes { codes: Codes::new(), realm: None }
    }
}

/// The outermost context around functions.
#[derive(Clone, Copy)]
struct Realm {
    /// The ScopeInfo, as a tagged address.
    info: u64,
    /// The slot with the table of the contexts of classic scripts.
    table: usize,
}

/// A piece of code whose scopes were learnt.
#[napi(object)]
pub struct LearntScopes {
    pub number: i32,
    /// Names of the variables of each scope with any, innermost first.
    pub names: Vec<Vec<String>>,
    /// Steps to the context of each.
    pub depths: Vec<u32>,
    /// True: the value of `this` of the function around is read behind them.
    pub has_this: bool,
}

#[napi]
impl NativeClosureReader {
    /// Learns the scopes around the code of `of`; `None`: they cannot be read without the inspector.
    #[napi]
    pub fn learn_scopes(&mut self, env: &Env, of: Unknown<'_>) -> Result<Option<LearntScopes>> {
        let Ok(peek) = Peek::open() else { return Ok(None) };
        let Some(known) = self.scopes_of(&peek, env, &of) else { return Ok(None) };
        let has_this = known.has_this;
        let names = known.scopes.iter().map(|scope| scope.names.clone()).collect();
        let depths = known.scopes.iter().map(|scope| scope.depth as u32).collect();
        let number = self.scopes.codes.learn(self.layout.code_of(env, &of), known);
        Ok(Some(LearntScopes { number, names, depths, has_this }))
    }

    /// Forgets the scopes around the code of `of`.
    #[napi]
    pub fn forget_scopes(&mut self, env: &Env, of: Unknown<'_>) {
        self.scopes.codes.forget(self.layout.code_of(env, &of));
    }

    /// Appends the values of all variables around `of`, in the order of their names, with `unset` for each that has
    /// none yet. Returns the number of its code; 0: the code is not known, its realm is not that of `of_realm`, or
    /// something cannot be read now.
    #[napi]
    pub fn read_scopes(
        &mut self,
        env: &Env,
        of: Unknown<'_>,
        of_realm: Unknown<'_>,
        unset: Unknown<'_>,
        values: Unknown<'_>,
    ) -> i32 {
        let code = self.layout.code_of(env, &of);
        let Some((number, known)) = self.scopes.codes.get(code) else { return 0 };
        // SAFETY: a function of V8, which `code_of` has found to have a script.
        let mut contexts = unsafe { self.layout.contexts_of(&of, &known.contexts) };
        if contexts.is_none() {
            if self.renew_scopes(env, &of, code).is_none() {
                self.scopes.codes.forget(code);
                return 0;
            }
            // SAFETY: as above.
            contexts =
                self.scopes.codes.get(code).and_then(|(_, known)| unsafe {
                    self.layout.contexts_of(&of, &known.contexts)
                });
        }
        let (Some(contexts), Some((_, known))) = (contexts, self.scopes.codes.get(code)) else {
            return 0;
        };
        let realm = known.contexts.len() - 1;
        // SAFETY: `of_realm` is a function with a script: src/context/closures/capture.ts.
        let here = unsafe { self.layout.root_of(&of_realm, known.contexts[realm].info) };
        if here != Some(contexts[realm]) {
            return 0;
        }
        let words = known.variables.iter().map(|variable| {
            // SAFETY: the shapes of these contexts are those in which the variables were found.
            unsafe { word_of(&contexts, variable) }
        });
        // SAFETY: words of live contexts and cells; nothing was allocated since they were read.
        let is_whole = unsafe { self.append(env, words, &values, Some(&unset)) };
        if is_whole { number } else { 0 }
    }

    /// True: `of` and `other` have one context so many steps up; `None`: not known.
    #[napi]
    pub fn shares_context(
        &self,
        env: &Env,
        of: Unknown<'_>,
        depth: u32,
        other: Unknown<'_>,
        other_depth: u32,
    ) -> Option<bool> {
        Some(self.context_at(env, &of, depth)? == self.context_at(env, &other, other_depth)?)
    }

    /// The address of a context around `of`, until the next allocation.
    fn context_at(&self, env: &Env, of: &Unknown<'_>, depth: u32) -> Option<usize> {
        if let Some((_, known)) = self.scopes.codes.get(self.layout.code_of(env, of)) {
            // SAFETY: a function of V8, which `code_of` has found to have a script.
            if let Some(contexts) = unsafe { self.layout.contexts_of(of, &known.contexts) } {
                return contexts[..known.contexts.len()].get(depth as usize).copied();
            }
        }
        let (_, contexts) = self.layout.walk(&Peek::open().ok()?, env, of, |_, _, _| Some(()))?;
        contexts.get(depth as usize).copied()
    }

    /// Contexts of classic scripts in the realm of `of_realm`, a function with a script. Each script that declares
    /// a variable at its top adds one. -1: they cannot be counted.
    #[napi]
    pub fn script_contexts(&mut self, env: &Env, of_realm: Unknown<'_>) -> i32 {
        let mut found = self.scopes.realm.and_then(|realm| {
            // SAFETY: the contract of this function.
            unsafe { self.layout.root_of(&of_realm, realm.info) }.map(|root| (root, realm))
        });
        if found.is_none() {
            found = self.find_realm(env, &of_realm);
            self.scopes.realm = found.map(|(_, realm)| realm);
        }
        let Some((root, realm)) = found else { return -1 };
        // SAFETY: the slot of a live context in which the table was found.
        let table = unsafe { word_at(root + SLOTS_AT + WORD * realm.table) };
        // SAFETY: the table has its length behind its capacity.
        let count = unsafe { word_at(untag(table) + SLOTS_AT) };
        size_of_small(count).map_or(-1, |count| count as i32)
    }

    fn find_realm(&self, env: &Env, of: &Unknown<'_>) -> Option<(usize, Realm)> {
        let kind = number(c"v8dbg_type_ScriptContextTable__SCRIPT_CONTEXT_TABLE_TYPE")?;
        let peek = Peek::open().ok()?;
        let (shapes, contexts) = self.layout.walk(&peek, env, of, |_, _, _| Some(()))?;
        let (root, info) = (*contexts.last()?, shapes.last()?.info);
        let count = size_of_small(peek.word(root + LENGTH_AT)?)?;
        let slots = peek.words(root + SLOTS_AT, count);
        let is_table =
            |&word: &u64| self.layout.type_of(&peek, word).map(usize::from) == Some(kind);
        let table = slots.iter().position(is_table)?;
        let part = |at| size_of_small(peek.word(untag(slots[table]) + at)?);
        (part(SLOTS_AT)? <= part(LENGTH_AT)?).then_some(())?;
        Some((root, Realm { info, table }))
    }

    /// Finds the contexts again after a collection moved what describes them; `None`: they are others.
    fn renew_scopes(&mut self, env: &Env, of: &Unknown<'_>, code: Code) -> Option<()> {
        let peek = Peek::open().ok()?;
        let found = self.scopes_of(&peek, env, of)?;
        self.scopes.codes.renew(code, found)
    }

    fn scopes_of(&self, peek: &Peek, env: &Env, of: &Unknown<'_>) -> Option<Known> {
        let types = Types::find()?;
        let mut scopes = Vec::new();
        let mut variables = Vec::new();
        let mut this = None;
        let (contexts, _) = self.layout.walk(peek, env, of, |depth, address, scope| {
            let mut slots = self.layout.slots_of(peek, env, scope)?;
            // The inspector does not show the name that a function expression gives itself.
            slots.truncate(slots.len() - usize::from(scope.has_own));
            let slots = slots.into_iter();
            let mut found: Vec<_> =
                slots.map(|(name, slot)| (name, Variable::Slot(Place { depth, slot }))).collect();
            if scope.extra > 0 {
                let module = Place { depth, slot: self.layout.min_slots };
                let of_module = self.layout.cells_of(peek, env, scope, address, module, types)?;
                found.extend(of_module);
            }
            if this.is_none() {
                this = found.iter().find(|(name, _)| name == "this").map(|&(_, place)| place);
            }
            found.retain(|(name, _)| !is_hidden(name));
            if !found.is_empty() {
                let (names, places): (Vec<_>, Vec<_>) = found.into_iter().unzip();
                scopes.push(KnownScope { depth, names });
                variables.extend(places);
            }
            (variables.len() <= MAX_VARIABLES).then_some(())
        })?;
        variables.extend(this);
        Some(Known { contexts, scopes, variables, has_this: this.is_some() })
    }
}

/// V8 has variables of its own in a scope, which no code can name; the inspector leaves them out.
fn is_hidden(name: &str) -> bool {
    name.is_empty() || name.starts_with(['.', '#']) || name == "this"
}

/// # Safety
/// The contexts have the shapes in which the variable was found.
unsafe fn word_of(contexts: &[usize], variable: &Variable) -> u64 {
    let slot = |&Place { depth, slot }: &Place| contexts[depth] + SLOTS_AT + WORD * slot;
    match variable {
        // SAFETY: a slot below the length of that context.
        Variable::Slot(place) => unsafe { word_at(slot(place)) },
        Variable::Cell { module, list_at, index } => {
            // SAFETY: the module is in that slot for as long as the context lives.
            let module = unsafe { word_at(slot(module)) };
            // SAFETY: a module that is linked keeps its lists of cells.
            let list = unsafe { word_at(untag(module) + list_at) };
            // SAFETY: the list was found to have that cell.
            let cell = unsafe { word_at(untag(list) + SLOTS_AT + WORD * index) };
            // SAFETY: a cell has its value there.
            unsafe { word_at(untag(cell) + CELL_VALUE_AT) }
        }
    }
}
