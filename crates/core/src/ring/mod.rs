//! Queues of frames between two sides. `frame` is the format, `spsc` the cursor protocol.

pub mod frame;
pub mod spsc;
