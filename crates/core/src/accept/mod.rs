//! Connections for event loops: a listener thread in each process accepts, and gives each connection
//! to the least loaded live loop. `board` is what all processes know of each other's loops, `place`
//! decides, `loop_inbox` hands over to one loop, `listener` is the thread, `acceptor` its handle, `shared` what
//! both have, `queue` since when clients wait. Loops that hardly sleep accept by themselves (`direct`).
//! Where several apps share a port, `router` gives each connection to the app whose name (`server_name`)
//! its client asks for. `turn_away` answers those that nobody takes.

pub mod acceptor;
pub mod board;
mod direct;
mod listener;
pub mod loop_inbox;
pub mod placement;
mod queue;
pub mod router;
mod server_name;
mod shared;
pub mod socket;
mod turn_away;
