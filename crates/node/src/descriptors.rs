//! Owner of descriptors that JavaScript handles by number: each one that was not released is closed
//! with this object, at the latest when its thread ends.

use crate::error::{Result, refused, to_js};
use manycore_core::layout::Shape;
use manycore_core::segment::Segment;
use manycore_core::sys;
use napi_derive::napi;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};

#[napi]
#[derive(Default)]
pub struct NativeDescriptors {
    held: Vec<OwnedFd>,
}

#[napi]
impl NativeDescriptors {
    #[napi(constructor)]
    pub fn new() -> NativeDescriptors {
        NativeDescriptors::default()
    }

    fn hold(&mut self, fd: OwnedFd) -> i32 {
        self.held.push(fd);
        self.held.last().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// Creates a segment between these two owners.
    #[napi]
    pub fn create_segment(
        &mut self,
        ring_bytes: u32,
        slot_count: u32,
        owner: u32,
        parent_owner: u32,
    ) -> Result<i32> {
        let shape = Shape { ring_bytes, slot_count, owner, parent_owner };
        let (_segment, fd) = Segment::create(shape).map_err(to_js)?;
        Ok(self.hold(fd))
    }

    /// A new doorbell.
    #[napi]
    pub fn create_eventfd(&mut self) -> Result<i32> {
        sys::eventfd().map(|fd| self.hold(fd)).map_err(to_js)
    }

    /// Both ends of a non-blocking Unix socket, for descriptors.
    #[napi]
    pub fn create_socket_pair(&mut self) -> Result<Vec<i32>> {
        sys::socket_pair().map(|ends| ends.map(|fd| self.hold(fd)).to_vec()).map_err(to_js)
    }

    /// A listening socket that shares its port with others made this way, or the system's error,
    /// negative.
    #[napi]
    pub fn listen_shared(
        &mut self,
        address: String,
        port: u16,
        backlog: i32,
        is_v6_only: bool,
    ) -> i32 {
        const INVALID: i32 = 22;
        let Ok(address) = address.parse::<IpAddr>() else { return -INVALID };
        match sys::listen_shared(SocketAddr::new(address, port), backlog, is_v6_only) {
            Ok(fd) => self.hold(fd),
            Err(error) => -error.errno(),
        }
    }

    /// A second descriptor of the same file, closed on exec.
    #[napi]
    pub fn duplicate(&mut self, fd: i32) -> Result<i32> {
        sys::duplicate(borrow(fd)?).map(|fd| self.hold(fd)).map_err(to_js)
    }

    /// The descriptors of the next message over the Unix socket `socket`; fails when no message waits.
    #[napi]
    pub fn receive(&mut self, socket: i32) -> Result<Vec<i32>> {
        let fds = sys::receive_descriptors(borrow(socket)?).map_err(to_js)?;
        Ok(fds.into_iter().map(|fd| self.hold(fd)).collect())
    }

    /// Releases `fd` to the caller, which must close it. Fails when it is not held.
    #[napi]
    pub fn release(&mut self, fd: i32) -> Result<i32> {
        let found = self.held.iter().position(|held| held.as_fd().as_raw_fd() == fd);
        let index = found.ok_or_else(|| refused("this descriptor is not held"))?;
        Ok(self.held.swap_remove(index).into_raw_fd())
    }

    #[napi]
    pub fn close_all(&mut self) {
        self.held.clear();
    }
}

/// Borrows for one call: only the number's sign is checked.
pub fn borrow(fd: i32) -> Result<BorrowedFd<'static>> {
    if fd < 0 {
        return Err(refused("a negative descriptor"));
    }
    // SAFETY: not negative; the calls that use it answer EBADF for a number that is not open.
    Ok(unsafe { BorrowedFd::borrow_raw(fd) })
}
