//! What connections come from: a listening socket, or a control socket over which a router sends those that it
//! has accepted.

use crate::error::Result;
use crate::sys::{self, Accepted};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

#[derive(Debug)]
pub struct Socket {
    number: u32,
    fd: OwnedFd,
    is_control: bool,
}

impl Socket {
    /// `fd` does not block; `number` is the socket's in all processes.
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

    /// Whether a connection waits.
    pub fn has_waiting(&self) -> bool {
        sys::is_readable(self.fd.as_fd())
    }

    /// How many wait; `None` where the kernel does not tell, as of a Unix socket.
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
