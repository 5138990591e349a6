//! The imports and exports of a module, which are in cells of the module. Names and places of them are behind the
//! other variables in the ScopeInfo of its context.
//! Not here: what is read from them (closure_scopes.rs).

use crate::closure_scopes::Variable;
use crate::v8_layout::{
    LENGTH_AT, Layout, Place, SLOTS_AT, Scope, WORD, is_pointer, is_small, number, size_of_small,
    untag,
};
use manycore_core::sys::Peek;
use napi::bindgen_prelude::Env;

/// Offsets in a SourceTextModule at which the list of the cells of its exports may be. That of its imports is behind it.
const EXPORTS_AT: [usize; 2] = [64, 72];
/// A ScopeInfo has a name, an index and flags for each variable of a module, behind at most so many other words.
const MODULE_VARIABLE: usize = 3;
const MAX_BETWEEN: usize = 12;
/// Without the number of a module's variables, so many words are in front of the names.
const SHORT_HEAD: usize = 3;

/// Instance types of V8's objects.
#[derive(Clone, Copy)]
pub(crate) struct Types {
    module: u16,
    array: u16,
    cell: u16,
}

impl Types {
    pub fn find() -> Option<Types> {
        let find = |name| number(name)?.try_into().ok();
        Some(Types {
            module: find(c"v8dbg_type_SourceTextModule__SOURCE_TEXT_MODULE_TYPE")?,
            array: find(c"v8dbg_type_FixedArray__FIXED_ARRAY_TYPE")?,
            cell: find(c"v8dbg_type_Cell__CELL_TYPE")?,
        })
    }
}

impl Layout {
    /// The imports and exports of the module whose context is at `address`; `None`: it is none.
    pub(crate) fn cells_of(
        &self,
        peek: &Peek,
        env: &Env,
        scope: &Scope,
        address: usize,
        module: Place,
        types: Types,
    ) -> Option<Vec<(String, Variable)>> {
        let object = peek.word(address + SLOTS_AT + WORD * module.slot)?;
        (self.type_of(peek, object)? == types.module).then_some(())?;
        let info = untag(peek.word(address + SLOTS_AT)?) + WORD * (1 + scope.after);
        let Some(entries) = variables_of_module(peek, scope, info) else { return Some(Vec::new()) };
        let is_list = |&at: &usize| {
            let list = peek.word(untag(object) + at);
            list.and_then(|list| self.type_of(peek, list)) == Some(types.array)
        };
        let exports_at = EXPORTS_AT.into_iter().find(is_list)?;
        entries
            .chunks_exact(MODULE_VARIABLE)
            .map(|entry| {
                let name = self.text_of(peek, env, entry[0])?;
                let index = (entry[1] >> 32) as i32;
                let list_at = if index > 0 { exports_at } else { exports_at + WORD };
                let index = (index.unsigned_abs() as usize).checked_sub(1)?;
                let cell = self.cell_in(peek, object, list_at, index, types)?;
                (self.type_of(peek, cell)? == types.cell).then_some(())?;
                Some((name, Variable::Cell { module, list_at, index }))
            })
            .collect()
    }

    fn cell_in(
        &self,
        peek: &Peek,
        module: u64,
        list_at: usize,
        index: usize,
        types: Types,
    ) -> Option<u64> {
        let list = peek.word(untag(module) + list_at)?;
        (self.type_of(peek, list)? == types.array).then_some(())?;
        let length = size_of_small(peek.word(untag(list) + LENGTH_AT)?)?;
        (index < length).then_some(())?;
        peek.word(untag(list) + SLOTS_AT + WORD * index)
    }
}

/// The entries of a module's variables, in the words from `address` on; `None`: it has none. Their number is the last
/// word in front of the names of a ScopeInfo, or, up to Node 20, in front of the entries. The word before is a pointer.
fn variables_of_module(peek: &Peek, scope: &Scope, address: usize) -> Option<Vec<u64>> {
    let entries_at = |at: usize, count: usize| {
        let words = peek.words(address + WORD * at, MODULE_VARIABLE * count);
        let is_whole = words.len() == MODULE_VARIABLE * count && count > 0;
        let are_entries = words.chunks_exact(MODULE_VARIABLE).all(is_module_variable);
        (is_whole && are_entries).then_some(words)
    };
    let before = peek.words(address - WORD, MAX_BETWEEN);
    let mut places = (0..before.len()).filter(|&at| is_pointer(before[at]));
    if scope.head > SHORT_HEAD {
        let count = size_of_small(*scope.words[..scope.head].last()?)?;
        return places.find_map(|at| entries_at(at, count));
    }
    let count_at = |at: usize| size_of_small(*before.get(at + 1)?).map(|count| (at + 1, count));
    let (at, count) = places.find_map(count_at)?;
    entries_at(at, count)
}

/// A name, and two numbers.
fn is_module_variable(entry: &[u64]) -> bool {
    is_pointer(entry[0]) && is_small(entry[1]) && is_small(entry[2])
}
