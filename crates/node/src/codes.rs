//! Pieces of code that were learnt, by script and place. JavaScript names each by a number.
//! Not here: what is learnt of them (closure_reader.rs, closure_scopes.rs).

use crate::v8_layout::{Code, Shape};
use std::collections::HashMap;

/// Pieces of code that are remembered.
const MAX_CODES: usize = 10_000;

/// Knowledge about a piece of code.
pub(crate) trait Learnt {
    /// All contexts around it, innermost first.
    fn contexts(&self) -> &[Shape];

    /// True: both have the same variables at the same places of their contexts.
    fn has_places_of(&self, other: &Self) -> bool;

    fn is_like(&self, other: &Self) -> bool {
        let theirs = other.contexts().iter().map(Shape::alike);
        self.has_places_of(other) && self.contexts().iter().map(Shape::alike).eq(theirs)
    }
}

pub(crate) struct Codes<K> {
    known: HashMap<Code, (i32, K)>,
    last: i32,
}

impl<K: Learnt> Codes<K> {
    pub fn new() -> Codes<K> {
        Codes { known: HashMap::new(), last: 0 }
    }

    pub fn get(&self, code: Code) -> Option<(i32, &K)> {
        self.known.get(&code).map(|(number, known)| (*number, known))
    }

    /// Remembers `found`, and forgets the oldest where there are too many. Returns its number: the present one
    /// where the same was known.
    pub fn learn(&mut self, code: Code, found: K) -> i32 {
        let number = self.number_of(code, &found).unwrap_or(self.last + 1);
        self.last = self.last.max(number);
        self.known.insert(code, (number, found));
        if self.known.len() > MAX_CODES {
            let oldest = self.known.iter().min_by_key(|(_, (number, _))| *number);
            let code = oldest.map(|(&code, _)| code).unwrap_or_default();
            self.known.remove(&code);
        }
        number
    }

    /// Replaces what is known by the same with the ScopeInfos that a collection has moved; `None`: it differs.
    pub fn renew(&mut self, code: Code, found: K) -> Option<()> {
        let number = self.number_of(code, &found)?;
        self.known.insert(code, (number, found));
        Some(())
    }

    pub fn forget(&mut self, code: Code) {
        self.known.remove(&code);
    }

    fn number_of(&self, code: Code, found: &K) -> Option<i32> {
        self.get(code).filter(|(_, known)| known.is_like(found)).map(|(number, _)| number)
    }
}
