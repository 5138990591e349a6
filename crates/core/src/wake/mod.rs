//! The sleep of a side without missing a frame, and the wake-up by its peer.
//!
//! `sleep` is the protocol on the word, `eventfd` is the doorbell of a sleeping loop, `spin` decides on
//! polling a little longer before the sleep.

#[cfg(not(loom))]
pub mod eventfd;
pub mod sleep;
#[cfg(not(loom))]
pub mod spin;
