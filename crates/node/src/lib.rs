//! The core for Node.js. Turns JavaScript values into calls and back and hooks the event loop;
//! decides nothing. `src/native.ts` declares what is exported here.

mod acceptor;
mod arena;
mod bare_function;
mod call;
mod channel_end;
mod closure_reader;
mod closure_scopes;
mod codes;
mod collected;
mod collections;
mod descriptors;
mod desk;
mod error;
mod event_loop;
mod file_sender;
mod loop_inbox;
mod machine;
mod module_cells;
mod native_loop;
mod program;
mod router;
mod segment;
mod space_file;
mod spin;
mod symbols;
mod tracer;
mod transactions;
mod uncounted;
mod uv;
mod v8_layout;

use napi_derive::module_init;

#[module_init]
fn init() {
    manycore_core::sys::pin_library();
}
