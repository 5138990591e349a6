//! The atomics of the protocols: the processor's, or loom's under `--cfg loom`, so that the models run
//! the shipped code.

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU32, Ordering, fence};
#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU32, Ordering, fence};
