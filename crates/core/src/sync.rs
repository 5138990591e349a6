//! The atomics that the protocols are written with: the processor's, or loom's under `--cfg loom`,
//! so that the very code that runs is the code that is modelled.

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU32, Ordering, fence};
#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU32, Ordering, fence};
