//! How a side goes to sleep without missing a frame, and how its peer wakes it.
//!
//! `sleep` is the protocol on the word, `eventfd` is the doorbell of a sleeping loop, `spin` says
//! whether to look a little longer before.

#[cfg(not(loom))]
pub mod eventfd;
pub mod sleep;
#[cfg(not(loom))]
pub mod spin;
