//! The sleep of a side without missing a frame, and the wake-up by its peer.
//!
//! `sleep` is the protocol on the word, `doorbell` wakes a sleeping loop, `spin` decides on
//! polling a little longer before the sleep. `pause` makes another thread stand still for a moment.

#[cfg(not(loom))]
pub mod doorbell;
pub mod pause;
pub mod sleep;
#[cfg(not(loom))]
pub mod spin;
