//! The scoreboard and the listener thread as objects of JavaScript.

use crate::descriptors::borrow;
use crate::error::{Result, refused, to_js};
use crate::segment::external_buffer;
use manycore_core::accept::acceptor::{Acceptor, MAX_SOCKETS, Settings};
use manycore_core::accept::board::{self, Board, word};
use manycore_core::accept::placement::Policy;
use manycore_core::accept::rescue::Handover;
use manycore_core::region::Region;
use manycore_core::sys;
use manycore_core::wake::doorbell::Doorbell;
use napi::bindgen_prelude::{Env, Unknown};
use napi_derive::napi;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

#[napi]
pub struct NativeBoard {
    pub(crate) board: Arc<Board>,
    /// Descriptor of a board created here, until it is closed.
    fd: Option<OwnedFd>,
}

#[napi]
impl NativeBoard {
    /// Creates a board of `processes` × `loops` free rows.
    #[napi(factory)]
    pub fn create(processes: u32, loops: u32) -> Result<NativeBoard> {
        let (board, fd) = Board::create(processes, loops).map_err(to_js)?;
        Ok(NativeBoard { board: Arc::new(board), fd: Some(fd) })
    }

    /// Maps the board behind `fd`; takes the descriptor over.
    #[napi(factory)]
    pub fn open(fd: i32) -> Result<NativeBoard> {
        let fd = sys::adopt(fd).map_err(to_js)?;
        let board = Board::open(fd.as_fd()).map_err(to_js)?;
        Ok(NativeBoard { board: Arc::new(board), fd: None })
    }

    /// The descriptor for the processes; only of a board that was created here and is not closed.
    #[napi]
    pub fn fd(&self) -> Result<i32> {
        self.fd.as_ref().map(OwnedFd::as_raw_fd).ok_or_else(|| refused("it has no descriptor"))
    }

    /// Closes the descriptor; the memory stays as long as its buffer is reachable.
    #[napi]
    pub fn close(&mut self) {
        self.fd = None;
    }

    /// The whole board; mapped as long as the buffer is reachable.
    #[napi]
    pub fn buffer<'env>(&self, env: &'env Env) -> Result<Unknown<'env>> {
        buffer_of(env, &self.board)
    }
}

pub(crate) fn buffer_of<'env>(env: &'env Env, board: &Arc<Board>) -> Result<Unknown<'env>> {
    let mapping = board.mapping();
    external_buffer(env, mapping.start(), mapping.size_bytes(), Arc::clone(board))
}

/// The numbers of the scoreboard for JavaScript, in the order of `src/serve/shared/board.ts`.
#[napi]
pub fn board_layout() -> Vec<u32> {
    let offsets = [
        board::HEADER_BYTES,
        board::ROW_BYTES,
        word::OPEN,
        word::UNTAKEN,
        word::UNTAKEN_SINCE,
        word::PLACED,
        word::PINGED_SINCE,
        word::IDLE_MS,
        word::TURNED_AWAY,
        word::IDLE_WRITTEN_AT,
        word::DIRECT,
        word::TAKEN_AWAY,
        word::TAKEN_OVER,
        word::FILES_SENT,
        word::FILES_OPEN,
        word::FILES_KIB,
        word::EXHAUSTED,
        word::STATE,
        word::LISTENS,
        word::LIMIT,
        word::IN_FLIGHT,
        word::REQUESTS,
        word::KIB_WRITTEN,
        word::SPEAKS_HTTP,
        word::LAG_MS,
    ];
    let mut layout: Vec<_> = offsets.iter().map(|&offset| offset as u32).collect();
    layout.push(MAX_SOCKETS);
    layout
}

/// The clock of `UNTAKEN_SINCE`: monotonic, in ms, cut to 32 bits.
#[napi]
pub fn board_now_ms() -> u32 {
    sys::now_ms()
}

/// The listener threads of this process, by number, for its event loops.
static ACCEPTORS: Mutex<Vec<(u32, Weak<Acceptor>)>> = Mutex::new(Vec::new());

/// The listener thread with number `key`.
pub(crate) fn acceptor_of(key: u32) -> Result<Arc<Acceptor>> {
    let acceptors = ACCEPTORS.lock().unwrap_or_else(PoisonError::into_inner);
    let found = acceptors.iter().find(|(number, _)| *number == key);
    found.and_then(|(_, acceptor)| acceptor.upgrade()).ok_or_else(|| refused("no such listener"))
}

fn register(acceptor: &Arc<Acceptor>) -> u32 {
    let mut acceptors = ACCEPTORS.lock().unwrap_or_else(PoisonError::into_inner);
    acceptors.retain(|(_, acceptor)| acceptor.strong_count() > 0);
    let key = acceptors.last().map_or(1, |(key, _)| key + 1);
    acceptors.push((key, Arc::downgrade(acceptor)));
    key
}

/// The listener thread of this process. It ends when this object and all inboxes are closed.
#[napi]
pub struct NativeAcceptor {
    acceptor: Option<Arc<Acceptor>>,
    key: u32,
}

#[napi]
impl NativeAcceptor {
    /// Starts the thread. `bells` are eventfds, one for each process of the board, all taken over. A
    /// connection that no loop takes for `patience_ms` is answered by 503 if its client speaks HTTP; 0:
    /// never. `handover`: both ends of the socket over which connections of blocked loops go from process to
    /// process, taken over; empty: connections stay at their loops.
    #[napi(constructor)]
    pub fn new(
        board: &NativeBoard,
        process: u32,
        bells: Vec<i32>,
        policy: String,
        patience_ms: u32,
        handover: Vec<i32>,
    ) -> Result<NativeAcceptor> {
        let adopt = |fd| sys::adopt(fd).map(Doorbell::from_fd).map_err(to_js);
        let bells = bells.into_iter().map(adopt).collect::<Result<Vec<_>>>()?;
        let policy = Policy::named(&policy).ok_or_else(|| refused("no such policy"))?;
        let patience = Duration::from_millis(patience_ms.into());
        let settings = Settings { policy, patience: (patience_ms > 0).then_some(patience) };
        let ends = handover.into_iter().map(|fd| sys::adopt(fd).map_err(to_js));
        let mut ends = ends.collect::<Result<Vec<_>>>()?.into_iter();
        let handover = ends.next().zip(ends.next());
        let handover = handover.map(|(send, receive)| Handover { send, receive });
        let started = Acceptor::start(Arc::clone(&board.board), process, bells, settings, handover);
        let acceptor = Arc::new(started.map_err(to_js)?);
        let key = register(&acceptor);
        Ok(NativeAcceptor { acceptor: Some(acceptor), key })
    }

    /// Number with which loops create their inboxes.
    #[napi(getter)]
    pub fn key(&self) -> u32 {
        self.key
    }

    /// Accepts from one more listening socket; takes it over. Several may have one number.
    #[napi]
    pub fn add_socket(&self, number: u32, fd: i32) -> Result<()> {
        let fd = sys::adopt(fd).map_err(to_js)?;
        let Some(acceptor) = &self.acceptor else { return Err(refused("it is closed")) };
        acceptor.add_socket(number, fd).map_err(to_js)
    }

    #[napi]
    pub fn remove_socket(&self, number: u32) {
        if let Some(acceptor) = &self.acceptor {
            acceptor.remove_socket(number);
        }
    }

    /// Makes the thread read the rows of this process again, after one has changed.
    #[napi]
    pub fn wake(&self) {
        if let Some(acceptor) = &self.acceptor {
            acceptor.wake();
        }
    }

    #[napi]
    pub fn close(&mut self) {
        self.acceptor = None;
    }
}

/// Rings the eventfd of a listener thread, so that it checks its sockets.
#[napi]
pub fn ring_bell(fd: i32) -> Result<()> {
    sys::eventfd_ring(borrow(fd)?);
    Ok(())
}

/// Number of connections that wait in a listening TCP socket; 0 for any other descriptor.
#[napi]
pub fn accept_queue(fd: i32) -> Result<u32> {
    Ok(sys::accept_queue(borrow(fd)?).unwrap_or(0))
}

/// Sends up to 8 descriptors to the other end of the Unix socket `socket`, all or none; they stay open
/// here.
#[napi]
pub fn send_descriptors(socket: i32, fds: Vec<i32>) -> Result<()> {
    let fds = fds.into_iter().map(borrow).collect::<Result<Vec<_>>>()?;
    sys::send_descriptors(borrow(socket)?, &fds).map_err(to_js)
}

/// Sends `text` to a Unix datagram socket; a path that begins with `@` is an abstract one.
#[napi]
pub fn send_datagram(path: String, text: String) -> Result<()> {
    sys::send_datagram(&path, text.as_bytes()).map_err(to_js)
}
