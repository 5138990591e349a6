//! Shared memory, rings and wake-ups of manycore. Independent of Node: `crates/node` calls it.
//!
//! The protocol between two processes is stated in `docs/design/shared-memory.md`; each module names
//! the part that it implements. Everything a peer can write is input here.

#[cfg(not(loom))]
pub mod accept;
#[cfg(not(loom))]
pub mod arena;
#[cfg(not(loom))]
pub mod cpu;
pub mod error;
pub mod layout;
#[cfg(not(loom))]
pub mod owners;
#[cfg(not(loom))]
pub mod parent_watch;
pub mod region;
pub mod ring;
#[cfg(not(loom))]
pub mod segment;
#[cfg(not(loom))]
pub mod slab;
pub mod stm;
pub mod sync;
#[cfg(not(loom))]
pub mod sys;
#[cfg(not(loom))]
pub mod trace;
pub mod wake;

pub use error::{CoreError, Result};
