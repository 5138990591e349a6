//! Transactional memory between processes: words that change all together or not at all, at one moment.
//!
//! TL2 with lazy extension of the snapshot, locks at commit time and a redo log (docs/design/stm.md has the
//! states and the table of deaths). A transaction reads and notes without any lock; `commit` alone locks. Its
//! owner may end at any instruction: before the commit point others undo it, behind it they complete it.
//!
//! `layout` has the places of all words, `space` the checked access, `snapshot` the reads, `commit` the
//! protocol of one commit, `recovery` what others do to its locks, `registry` the threads, `memory` and `epoch`
//! the blocks of objects, `watch` the sleep until something changes, `figures` and `contention` the
//! statistics. `live` and `waiter` are for real processes.

mod batches;
pub mod commit;
pub mod contention;
pub mod epoch;
pub mod figures;
pub mod layout;
#[cfg(not(loom))]
pub mod live;
pub mod memory;
pub mod recovery;
pub mod registry;
mod resize;
pub mod snapshot;
pub mod space;
pub mod value;
#[cfg(not(loom))]
pub mod waiter;
pub mod watch;

pub use commit::{Commit, Outcome};
pub use space::{Participant, Space};

#[cfg(all(test, not(loom)))]
mod tests;
