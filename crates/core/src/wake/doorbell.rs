//! A doorbell: a descriptor that one event loop polls and its peers write.
//!
//! Peers that trust each other share an eventfd. A peer that is not trusted gets one end of a socket pair:
//! the two ends have flags of their own, so nothing that it does to its end makes a read here block.

use crate::error::Result;
use crate::sys;
use crate::sys::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

#[derive(Debug)]
pub struct Doorbell {
    fd: OwnedFd,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// An eventfd.
    Counter,
    /// One end of a stream; each byte is a ring.
    Stream,
}

/// Rings that came since the last time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rung {
    /// The number of rings of a stream; of a counter, at most 1.
    Times(usize),
    /// The peer has closed its end of the stream: no ring will come.
    Ended,
}

impl Doorbell {
    pub fn new() -> Result<Doorbell> {
        Ok(Doorbell::from_fd(sys::eventfd()?))
    }

    /// The doorbell of an eventfd.
    pub fn from_fd(fd: OwnedFd) -> Doorbell {
        Doorbell { fd, kind: Kind::Counter }
    }

    /// The doorbell of one end of a stream: it rings the peer, and is rung by it.
    pub fn of_stream(fd: OwnedFd) -> Doorbell {
        Doorbell { fd, kind: Kind::Stream }
    }

    /// Wakes the loop that polls it, now or at its next poll.
    pub fn ring(&self) {
        match self.kind {
            Kind::Counter => sys::eventfd_ring(self.fd.as_fd()),
            Kind::Stream => sys::stream_ring(self.fd.as_fd()),
        }
    }

    /// Clears the ring; true when there was one.
    pub fn clear(&self) -> bool {
        matches!(self.take(), Rung::Times(1..))
    }

    /// Clears the rings that are there, within limits, and returns how many there were.
    pub fn take(&self) -> Rung {
        match self.kind {
            Kind::Counter => Rung::Times(usize::from(sys::eventfd_clear(self.fd.as_fd()))),
            Kind::Stream => sys::stream_clear(self.fd.as_fd()).map_or(Rung::Ended, Rung::Times),
        }
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

    #[test]
    fn a_stream_counts_its_rings_until_its_peer_has_closed() {
        let [ours, theirs] = sys::socket_pair().expect("a pair").map(Doorbell::of_stream);
        assert_eq!(ours.take(), Rung::Times(0));
        theirs.ring();
        theirs.ring();
        assert_eq!(ours.take(), Rung::Times(2));
        assert_eq!(ours.take(), Rung::Times(0));
        theirs.ring();
        drop(theirs);
        assert_eq!(ours.take(), Rung::Times(1));
        assert_eq!(ours.take(), Rung::Ended);
        ours.ring(); // neither an error nor a signal
    }

    #[test]
    fn a_flood_is_taken_in_parts_and_never_blocks_the_one_who_rings() {
        let [ours, theirs] = sys::socket_pair().expect("a pair").map(Doorbell::of_stream);
        for _ in 0..1_000_000 {
            theirs.ring();
        }
        let Rung::Times(count) = ours.take() else { panic!("not ended") };
        assert!((1..=4096).contains(&count), "{count}");
    }
}
