//! A socket that several apps share by name, or whose clients stay with one loop, as an object of
//! JavaScript.

use crate::acceptor::NativeBoard;
use crate::error::{Result, refused, to_js};
use manycore_core::accept::router::{self, Router, Way};
use manycore_core::accept::sticky::{Key, Sticky};
use manycore_core::sys;
use napi_derive::napi;
use std::collections::HashMap;
use std::sync::Arc;

/// Accepts from one listening socket, and passes connections on to the apps that their clients request.
#[napi]
pub struct NativeRouter {
    router: Option<Router>,
    /// Apps with sticky clients, by their keys.
    sticky: HashMap<u32, Arc<Sticky>>,
}

#[napi]
impl NativeRouter {
    /// Takes over the listening socket, which must not block, and `predecessor`, a Unix socket over which
    /// connections of an earlier router come, or -1. Accepts once `accept` is called.
    #[napi(constructor)]
    pub fn new(listener: i32, predecessor: i32) -> Result<NativeRouter> {
        let listener = sys::adopt(listener).map_err(to_js)?;
        let predecessor =
            (predecessor >= 0).then(|| sys::adopt(predecessor)).transpose().map_err(to_js)?;
        let router = Some(Router::start(listener, predecessor).map_err(to_js)?);
        Ok(NativeRouter { router, sticky: HashMap::new() })
    }

    /// Accepts from now on.
    #[napi]
    pub fn accept(&self) {
        if let Some(router) = &self.router {
            router.accept();
        }
    }

    /// Accepts nothing any more, and passes the connections that no process has taken on over
    /// `successor`, one end of a Unix socket, which is taken over.
    #[napi]
    pub fn hand_over(&self, successor: i32) -> Result<()> {
        let successor = sys::adopt(successor).map_err(to_js)?;
        self.router()?.hand_over(successor);
        Ok(())
    }

    /// True: its thread has ended, as after a hand-over.
    #[napi]
    pub fn has_ended(&self) -> bool {
        self.router.as_ref().is_none_or(Router::has_ended)
    }

    fn router(&self) -> Result<&Router> {
        self.router.as_ref().ok_or_else(|| refused("it is closed"))
    }

    /// Sends connections of clients that request one of `names`, without names all, into `near`, one
    /// end of a Unix socket; processes receive them from `far`. Both are taken over. Returns the key
    /// for `remove`, or -1 when another app has such a name.
    #[napi]
    pub fn add(&self, names: Vec<String>, near: i32, far: i32) -> Result<i32> {
        let (near, far) = (sys::adopt(near).map_err(to_js)?, sys::adopt(far).map_err(to_js)?);
        let key = self.router()?.add(names, Way::ControlSocket { near, far });
        Ok(key.map_or(-1, |key| key as i32))
    }

    /// The same for an app whose clients stay with a loop of `board`, by a key of this kind and name;
    /// without names all clients. Returns the key for `add_process`, `leave` and `remove`, or -1.
    #[napi]
    pub fn add_sticky(
        &mut self,
        names: Vec<String>,
        board: &NativeBoard,
        kind: String,
        name: String,
    ) -> Result<i32> {
        let by = Key::named(&kind, name).ok_or_else(|| refused("no such kind of key"))?;
        let sticky = Arc::new(Sticky::new(Arc::clone(&board.board), by));
        let key = self.router()?.add(names, Way::Sticky(Arc::clone(&sticky)));
        if let Some(key) = key {
            self.sticky.insert(key, sticky);
        }
        Ok(key.map_or(-1, |key| key as i32))
    }

    /// Sends connections for loops of `process` into `near` from now on, one end of a Unix socket;
    /// the process receives them from `far` as from the listening socket with this number. Both
    /// are taken over, and do not block.
    #[napi]
    pub fn add_process(
        &self,
        key: u32,
        process: u32,
        socket: u32,
        near: i32,
        far: i32,
    ) -> Result<()> {
        let (near, far) = (sys::adopt(near).map_err(to_js)?, sys::adopt(far).map_err(to_js)?);
        let sticky = self.sticky.get(&key).ok_or_else(|| refused("no such app"))?;
        sticky.add(process, socket, near, far);
        Ok(())
    }

    /// Sends nothing to `process` any more; what it has not taken goes to others.
    #[napi]
    pub fn leave(&self, key: u32, process: u32) {
        if let (Some(router), Some(sticky)) = (&self.router, self.sticky.get(&key)) {
            sticky.leave(process);
            router.wake();
        }
    }

    #[napi]
    pub fn remove(&mut self, key: u32) {
        self.sticky.remove(&key);
        if let Some(router) = &self.router {
            router.remove(key);
        }
    }

    /// Ends the thread and closes the socket; a hand-over goes on.
    #[napi]
    pub fn close(&mut self) {
        self.router = None;
    }
}

/// Times that a router of this process had no descriptor left for a connection, cut to 32 bits.
#[napi]
pub fn routers_exhausted() -> u32 {
    router::exhausted_count()
}
