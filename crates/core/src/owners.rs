//! Free owner numbers. A released number is used again as late as possible: a peer that has ended
//! without notice may still write where its owner was.

use std::collections::VecDeque;
use std::ops::Range;

#[derive(Debug)]
pub struct Owners {
    fresh: Range<u32>,
    given_back: VecDeque<u32>,
}

impl Owners {
    pub fn new(numbers: Range<u32>) -> Owners {
        Owners { fresh: numbers, given_back: VecDeque::new() }
    }

    /// Takes a free number; `None` when all are taken.
    pub fn take(&mut self) -> Option<u32> {
        self.fresh.next().or_else(|| self.given_back.pop_front())
    }

    /// Releases a number from `take`, once.
    pub fn release(&mut self, number: u32) {
        self.given_back.push_back(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again_once_all_were_used_the_oldest_first() {
        let mut owners = Owners::new(5..8);
        assert_eq!([owners.take(), owners.take()], [Some(5), Some(6)]);
        owners.release(6);
        owners.release(5);
        let rest: Vec<u32> = std::iter::from_fn(|| owners.take()).collect();
        assert_eq!(rest, [7, 6, 5]);
    }
}
