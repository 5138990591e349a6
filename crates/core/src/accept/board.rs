//! The scoreboard: one row in shared memory for each event loop of a server, visible to the supervisor
//! and to every process of it. `src/serve/shared/board.ts` holds the same numbers.
//!
//! A row has two parts of 128 bytes: words that the listener thread of the row's process writes, and
//! words that the loop itself writes, so that neither takes the other's cache line at each step. The
//! supervisor clears a row before a process starts on it and after that process has ended. Any writer
//! may be killed between two stores: a row is at worst slightly wrong until the supervisor clears it.
//! No reader uses a number of it as an index.

use crate::error::{CoreError, Result};
use crate::region::{Mapping, Region};
use crate::sync::AtomicU32;
use crate::sync::Ordering::Relaxed;
use crate::sys;
use crate::sys::fd::{AsFd, BorrowedFd, OwnedFd};

/// "MCSB", little-endian.
pub const MAGIC: u32 = 0x4253_434d;
pub const VERSION: u32 = 1;
pub const HEADER_BYTES: usize = 128;
pub const ROW_BYTES: usize = 256;
/// Bounds of a board.
pub const MAX_PROCESSES: u32 = 256;
pub const MAX_LOOPS: u32 = 256;

/// Words of the header.
mod header {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 4;
    pub const PROCESSES: usize = 8;
    pub const LOOPS: usize = 12;
    /// Number of the row whose turn it is (`placement::Policy::RoundRobin`), counted through all
    /// processes.
    pub const TURN: usize = 16;
}

/// Words of a row, as offsets from its start.
pub mod word {
    /// Connections that the loop holds or will get. Added by the listener thread, or by a loop that
    /// accepts by itself; subtracted by the loop.
    pub const OPEN: usize = 0;
    /// Connections that the loop has not taken yet. Written by the listener thread.
    pub const UNTAKEN: usize = 4;
    /// Time when the oldest of them was placed (`sys::now_ms`, never 0), 0 for none. Written by the
    /// listener thread.
    pub const UNTAKEN_SINCE: usize = 8;
    /// Connections that the loop got so far. Written by the listener thread, or by a loop that accepts
    /// by itself.
    pub const PLACED: usize = 12;
    /// Time of the ping that the loop has not answered (`sys::now_ms`, never 0), 0 for none. Written by
    /// the listener thread; the loop answers by storing 0.
    pub const PINGED_SINCE: usize = 16;
    /// Time for which the loop has slept since it started, in ms. Written by the listener thread when
    /// it is rung.
    pub const IDLE_MS: usize = 20;
    /// Connections that were answered on behalf of a process's loops (`turn_away.rs`), in its first
    /// row. Written by the listener thread.
    pub const TURNED_AWAY: usize = 24;
    /// Time when `IDLE_MS` was written (`sys::now_ms`, never 0), 0 for never. Written by the listener
    /// thread: a process in which it does not change is stopped.
    pub const IDLE_WRITTEN_AT: usize = 28;
    /// 1 while the loop accepts by itself (`direct.rs`). Written by the listener thread.
    pub const DIRECT: usize = 32;
    /// Connections in `TURNED_AWAY` that had been placed at no loop. Written by the listener thread.
    pub const NEVER_PLACED: usize = 36;
    /// Kept-alive connections that were taken from the loop while it was blocked. Written by the listener
    /// thread.
    pub const TAKEN_AWAY: usize = 40;
    /// Connections that the loop got which were taken from another one. Written by the listener thread.
    pub const TAKEN_OVER: usize = 44;
    /// Requests that the process's thread for files has answered (`files/mod.rs`), in its first row.
    pub const FILES_SENT: usize = 48;
    /// Connections that this thread holds, in the first row. Added by it and by loops that give one back.
    pub const FILES_OPEN: usize = 52;
    /// KiB that this thread has written, in the first row.
    pub const FILES_KIB: usize = 56;
    /// Times that the process had no descriptor left for a connection. Added by its threads that accept, in
    /// its first row, and by a loop that accepts by itself, in its own.
    pub const EXHAUSTED: usize = 60;
    /// A `state`. Written by the loop; cleared by the supervisor.
    pub const STATE: usize = 128;
    /// One bit for each listening socket on which the loop accepts connections. Written by the loop.
    pub const LISTENS: usize = 132;
    /// Maximum number of connections for the loop. Written by the loop.
    pub const LIMIT: usize = 136;
    /// Requests that wait for their answer. Written by the loop.
    pub const IN_FLIGHT: usize = 140;
    /// Requests answered so far. Written by the loop.
    pub const REQUESTS: usize = 144;
    /// KiB written to connections that were closed. Written by the loop.
    pub const KIB_WRITTEN: usize = 148;
    /// One bit for each listening socket whose clients speak HTTP/1 without TLS. Written by the loop.
    pub const SPEAKS_HTTP: usize = 152;
    /// Time from the last ping to its answer, in ms. Written by the loop.
    pub const LAG_MS: usize = 156;
}

/// Values of `word::STATE`.
pub mod state {
    pub const FREE: u32 = 0;
    pub const STARTING: u32 = 1;
    pub const READY: u32 = 2;
    pub const DRAINING: u32 = 3;
}

#[derive(Debug)]
pub struct Board {
    mapping: Mapping,
    processes: u32,
    loops: u32,
}

impl Board {
    /// A board of `processes` × `loops` free rows; the descriptor is for the processes.
    pub fn create(processes: u32, loops: u32) -> Result<(Board, OwnedFd)> {
        let size_bytes = size_of_board(processes, loops)?;
        let fd = sys::sealed_memfd(c"manycore-scoreboard", size_bytes as u64)?;
        let mapping = Mapping::of(fd.as_fd(), 0, size_bytes)?;
        let constants = [
            (header::VERSION, VERSION),
            (header::PROCESSES, processes),
            (header::LOOPS, loops),
            (header::MAGIC, MAGIC),
        ];
        for (offset, value) in constants {
            // Relaxed: no other process has the descriptor yet; handing it over orders these stores.
            mapping.word(offset).store(value, Relaxed);
        }
        Ok((Board { mapping, processes, loops }, fd))
    }

    /// Maps a board that another process made; its numbers are checked against the file itself.
    pub fn open(fd: BorrowedFd<'_>) -> Result<Board> {
        let file_bytes = sys::sealed_size(fd)?;
        let largest = size_of_board(MAX_PROCESSES, MAX_LOOPS)? as u64;
        if !(HEADER_BYTES as u64..=largest).contains(&file_bytes) {
            return Err(CoreError::Corrupt {
                what: "the size of the scoreboard",
                value: file_bytes,
            });
        }
        let mapping = Mapping::of(fd, 0, file_bytes as usize)?;
        // Relaxed: written before the descriptor was handed over. Each is read once, then checked.
        let read = |offset| mapping.word(offset).load(Relaxed);
        let (magic, version) = (read(header::MAGIC), read(header::VERSION));
        if magic != MAGIC {
            return Err(CoreError::Corrupt { what: "the magic number", value: magic.into() });
        }
        if version != VERSION {
            let own = VERSION;
            return Err(CoreError::Version { what: "the scoreboard", found: version, own });
        }
        let (processes, loops) = (read(header::PROCESSES), read(header::LOOPS));
        if size_of_board(processes, loops)? as u64 != file_bytes {
            return Err(CoreError::Corrupt {
                what: "the size of the scoreboard",
                value: file_bytes,
            });
        }
        Ok(Board { mapping, processes, loops })
    }

    pub fn processes(&self) -> u32 {
        self.processes
    }

    /// Rows of one process.
    pub fn loops(&self) -> u32 {
        self.loops
    }

    /// Number of the row whose turn it is, counted through all processes.
    pub fn turn(&self) -> &AtomicU32 {
        self.mapping.word(header::TURN)
    }

    pub fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// Offset of row `[process][index]`; panics when there is none.
    pub fn row_at(&self, process: u32, index: u32) -> usize {
        assert!(process < self.processes && index < self.loops, "no row [{process}][{index}]");
        HEADER_BYTES + (process * self.loops + index) as usize * ROW_BYTES
    }

    /// A word of row `[process][index]`.
    pub fn word(&self, process: u32, index: u32, word: usize) -> &AtomicU32 {
        self.mapping.word(self.row_at(process, index) + word)
    }
}

fn size_of_board(processes: u32, loops: u32) -> Result<usize> {
    let is_sound = (1..=MAX_PROCESSES).contains(&processes) && (1..=MAX_LOOPS).contains(&loops);
    if !is_sound {
        let value = u64::from(processes) << 32 | u64::from(loops);
        return Err(CoreError::Corrupt { what: "the shape of the scoreboard", value });
    }
    Ok(HEADER_BYTES + processes as usize * loops as usize * ROW_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_one_process_writes_another_reads() {
        let (made, fd) = Board::create(2, 3).expect("memfd");
        let opened = Board::open(fd.as_fd()).expect("sound");
        assert_eq!((opened.processes(), opened.loops()), (2, 3));
        made.word(1, 2, word::OPEN).store(5, Relaxed);
        assert_eq!(opened.word(1, 2, word::OPEN).load(Relaxed), 5);
        assert_eq!(opened.word(1, 1, word::OPEN).load(Relaxed), 0);
    }

    #[test]
    fn a_board_with_forged_numbers_is_refused() {
        let forgeries = [
            (header::MAGIC, 1, "SEGMENT_CORRUPT"),
            (header::VERSION, 9, "SEGMENT_VERSION"),
            (header::PROCESSES, 3, "SEGMENT_CORRUPT"),
            (header::PROCESSES, u32::MAX, "SEGMENT_CORRUPT"),
            (header::LOOPS, 0, "SEGMENT_CORRUPT"),
        ];
        for (offset, value, code) in forgeries {
            let (made, fd) = Board::create(2, 3).expect("memfd");
            made.mapping().word(offset).store(value, Relaxed);
            assert_eq!(Board::open(fd.as_fd()).expect_err("forged").code(), code);
        }
    }

    #[test]
    fn a_board_has_at_least_one_row_and_no_endless_number_of_them() {
        for (processes, loops) in [(0, 1), (1, 0), (MAX_PROCESSES + 1, 1), (1, MAX_LOOPS + 1)] {
            assert!(Board::create(processes, loops).is_err(), "{processes} × {loops}");
        }
    }
}
