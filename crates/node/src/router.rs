//! A socket that several apps share by name, as an object of JavaScript.

use crate::error::{Result, refused, to_js};
use manycore_core::accept::router::Router;
use manycore_core::sys;
use napi_derive::napi;

/// Accepts from one listening socket, and passes connections on to the apps that their clients request.
#[napi]
pub struct NativeRouter {
    router: Option<Router>,
}

#[napi]
impl NativeRouter {
    /// Takes over the listening socket, which must not block.
    #[napi(constructor)]
    pub fn new(listener: i32) -> Result<NativeRouter> {
        let listener = sys::adopt(listener).map_err(to_js)?;
        Ok(NativeRouter { router: Some(Router::start(listener).map_err(to_js)?) })
    }

    /// Sends connections of clients that request one of `names` into `control_socket`, one end of a
    /// Unix socket, which is taken over. Returns the key for `remove`, or -1 when another app has such
    /// a name.
    #[napi]
    pub fn add(&self, names: Vec<String>, control_socket: i32) -> Result<i32> {
        let control_socket = sys::adopt(control_socket).map_err(to_js)?;
        let Some(router) = &self.router else { return Err(refused("it is closed")) };
        Ok(router.add(names, control_socket).map_or(-1, |key| key as i32))
    }

    #[napi]
    pub fn remove(&self, key: u32) {
        if let Some(router) = &self.router {
            router.remove(key);
        }
    }

    /// Ends the thread and closes the socket.
    #[napi]
    pub fn close(&mut self) {
        self.router = None;
    }
}
