//! A source of connections: a listening socket, or a control socket over which a router sends accepted
//! ones.

use crate::error::Result;
use crate::sys::fd::{AsFd, BorrowedFd, OwnedFd};
use crate::sys::{self, Accepted};

#[derive(Debug)]
pub struct Socket {
    number: u32,
    fd: OwnedFd,
    is_control: bool,
}

impl Socket {
    /// `fd` does not block; `number` is the same in all processes.
    pub fn new(number: u32, fd: OwnedFd) -> Result<Socket> {
        let is_control = !sys::is_listening(fd.as_fd())?;
        Ok(Socket { number, fd, is_control })
    }

    pub fn number(&self) -> u32 {
        self.number
    }

    pub fn is_control(&self) -> bool {
        self.is_control
    }

    pub fn accept(&self) -> Accepted {
        if self.is_control {
            sys::receive_connection(self.fd.as_fd())
        } else {
            sys::accept(self.fd.as_fd())
        }
    }

    /// Accepts like `accept`; also returns the number of the loop that a router has chosen.
    pub fn accept_for(&self) -> (Accepted, Option<u32>) {
        if !self.is_control {
            return (self.accept(), None);
        }
        let (index, accepted) = sys::receive_numbered(self.fd.as_fd());
        (accepted, Some(index.into()))
    }

    /// True: a connection waits.
    pub fn has_waiting(&self) -> bool {
        sys::is_readable(self.fd.as_fd())
    }

    /// Number of waiting connections; `None` where the kernel has no count, as for a listening Unix
    /// socket.
    pub fn waiting(&self) -> Option<u32> {
        if self.is_control {
            sys::control_socket_queue(self.fd.as_fd())
        } else {
            sys::accept_queue(self.fd.as_fd())
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
