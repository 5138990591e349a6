//! Connections for event loops: a listener thread in each process accepts, and gives each connection to
//! the least loaded live loop. `board` is the scoreboard that all processes share. `placement` decides,
//! `loop_inbox` hands over to one loop, `listener` is the thread, `acceptor` its handle, and `shared`
//! the state of both. `queue` measures how long clients wait. Loops that hardly sleep accept by
//! themselves (`direct`). Where several apps share a port, `router` gives each connection to the app
//! whose name (`server_name`) its client requests; `sticky` keeps clients at one loop. `turn_away`
//! answers connections that no loop takes. `rescue` takes kept-alive connections from blocked loops,
//! those that `idle` shows to be idle.

pub mod acceptor;
pub mod board;
mod direct;
pub mod files;
pub mod idle;
mod listener;
pub mod loop_inbox;
pub mod placement;
mod queue;
pub mod rescue;
pub mod router;
mod server_name;
mod shared;
pub mod socket;
pub mod sticky;
mod turn_away;
