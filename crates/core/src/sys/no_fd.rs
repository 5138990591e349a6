//! Stands for `std::os::fd` on Windows, which has no descriptors of this kind: no value can be made.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::net::TcpStream;

pub type RawFd = i32;

#[derive(Debug)]
pub struct OwnedFd(Infallible);

#[derive(Debug, Clone, Copy)]
pub struct BorrowedFd<'fd>(Infallible, PhantomData<&'fd OwnedFd>);

pub trait AsFd {
    fn as_fd(&self) -> BorrowedFd<'_>;
}

pub trait AsRawFd {
    fn as_raw_fd(&self) -> RawFd;
}

impl AsFd for OwnedFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self.0 {}
    }
}

impl AsFd for BorrowedFd<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self.0 {}
    }
}

impl AsRawFd for OwnedFd {
    fn as_raw_fd(&self) -> RawFd {
        match self.0 {}
    }
}

impl AsRawFd for BorrowedFd<'_> {
    fn as_raw_fd(&self) -> RawFd {
        match self.0 {}
    }
}

// Streams exist on Windows, but none is accepted here: no listener can be made.

impl From<OwnedFd> for TcpStream {
    fn from(fd: OwnedFd) -> TcpStream {
        match fd.0 {}
    }
}

impl From<TcpStream> for OwnedFd {
    fn from(_stream: TcpStream) -> OwnedFd {
        std::process::abort()
    }
}

impl AsFd for TcpStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        std::process::abort()
    }
}
