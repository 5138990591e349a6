//! A doorbell: an eventfd that one event loop polls and any number of peers write.

use crate::error::Result;
use crate::sys;
use crate::sys::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

#[derive(Debug)]
pub struct Doorbell {
    fd: OwnedFd,
}

impl Doorbell {
    pub fn new() -> Result<Doorbell> {
        Ok(Doorbell { fd: sys::eventfd()? })
    }

    pub fn from_fd(fd: OwnedFd) -> Doorbell {
        Doorbell { fd }
    }

    /// Wakes the loop that polls it, now or at its next poll.
    pub fn ring(&self) {
        sys::eventfd_ring(self.fd.as_fd());
    }

    /// Clears the ring; true when there was one.
    pub fn clear(&self) -> bool {
        sys::eventfd_clear(self.fd.as_fd())
    }

    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub fn raw(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// A second handle on the same doorbell, for a peer.
    pub fn duplicate(&self) -> Result<OwnedFd> {
        sys::duplicate(self.fd.as_fd())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bell_rung_twice_is_cleared_once() {
        let bell = Doorbell::new().expect("eventfd");
        let other = Doorbell::from_fd(bell.duplicate().expect("dup"));
        other.ring();
        other.ring();
        assert!(bell.clear());
        assert!(!bell.clear());
    }
}
