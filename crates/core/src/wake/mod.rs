//! How a side goes to sleep without missing a frame, and how its peer wakes it.
//!
//! `sleep` is the protocol on the word, `eventfd` and `futex` are the two ways to sleep, `spin` says
//! whether to look a little longer before.

#[cfg(not(loom))]
pub mod eventfd;
#[cfg(not(loom))]
pub mod futex;
pub mod sleep;
#[cfg(not(loom))]
pub mod spin;
