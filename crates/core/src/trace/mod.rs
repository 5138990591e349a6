//! System calls of other programs, counted in the kernel: the core of `manycore trace`.
//!
//! There are two programs for the kernel. The better one is compiled (`trace.bpf.c`, its object is in
//! this binary) and separates the time on the CPU from the time off it. It needs the kernel's BTF. The
//! other is assembled here, instruction by instruction (`raw_program.rs`), and needs only bpf(2). This
//! module uses neither the file system nor names of calls: `src/syscalls/` does. Not here: the calls to
//! the kernel (`sys/linux_ebpf.rs`, `sys/linux_raw_trace.rs`).

pub mod raw_program;
pub mod record;

use crate::error::Result;
use crate::sys::{EbpfTracer, RawTracer};

/// One call of one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallReading {
    /// Number of the system call on this architecture.
    pub number: u32,
    pub count: u64,
    pub errors: u64,
    /// Time from entering to leaving the call; calls that have not returned are not in it.
    pub took_ns: u64,
    /// Time off the CPU within `took_ns`; 0 where the tracer cannot measure it.
    pub blocked_ns: u64,
}

/// Counts of one thread, or of all child processes that run one program. Without a name: counts of all
/// tasks that had no room elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordReading {
    /// 0 for child processes.
    pub pid: u32,
    /// 0 for child processes.
    pub tid: u32,
    /// True: the thread has ended, and this record alone has its name and time.
    pub is_ended: bool,
    /// True: child processes that have not yet run a program of their own.
    pub is_starting: bool,
    /// Number of threads or processes that counted into this record.
    pub tasks: u64,
    /// CPU time of those tasks that have ended, since the start of each; 0 where the tracer does not see it.
    pub run_ns: u64,
    pub name: String,
    pub calls: Vec<CallReading>,
}

/// The choice of the kernel program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Ebpf,
    Raw,
}

/// A program in the kernel that counts. Ends when it is dropped, and with this process.
#[derive(Debug)]
pub enum Tracer {
    Ebpf(EbpfTracer),
    Raw(RawTracer),
}

impl Tracer {
    /// Counts from now on. `per_thread_names`: names of programs whose threads get records of their own
    /// when they are started as children. `Raw` follows no children by itself and ignores them.
    pub fn start(method: Method, pids: &[u32], per_thread_names: &[String]) -> Result<Tracer> {
        let _memory = crate::sys::UnlockedMemory::take();
        let _signals = crate::sys::BlockedSignals::take();
        match method {
            Method::Ebpf => EbpfTracer::start(pids, per_thread_names).map(Tracer::Ebpf),
            Method::Raw => RawTracer::start(pids).map(Tracer::Raw),
        }
    }

    /// Follows one more process; at most 4,096 at once.
    pub fn follow(&mut self, pid: u32) -> Result<()> {
        match self {
            Tracer::Ebpf(tracer) => tracer.follow(pid),
            Tracer::Raw(tracer) => tracer.follow(pid),
        }
    }

    /// Stops following a process that has ended: its number may be reused. Not being followed is fine.
    pub fn unfollow(&mut self, pid: u32) -> Result<()> {
        match self {
            Tracer::Ebpf(tracer) => tracer.unfollow(pid),
            Tracer::Raw(tracer) => tracer.unfollow(pid),
        }
    }

    /// Returns everything counted since the start.
    pub fn read(&self) -> Result<Vec<RecordReading>> {
        match self {
            Tracer::Ebpf(tracer) => tracer.read(),
            Tracer::Raw(tracer) => tracer.read(),
        }
    }

    /// Makes the kernel measure the time of its programs while the value lives.
    pub fn take_own_time(&self) -> Result<OwnTimeTaken> {
        crate::sys::enable_program_times().map(OwnTimeTaken)
    }

    /// Time that the programs have run while it was measured, on all cores.
    pub fn own_time_ns(&self) -> Result<u64> {
        match self {
            Tracer::Ebpf(tracer) => tracer.own_time_ns(),
            Tracer::Raw(tracer) => tracer.own_time_ns(),
        }
    }
}

/// See `Tracer::take_own_time`.
#[derive(Debug)]
pub struct OwnTimeTaken(#[allow(dead_code)] crate::sys::fd::OwnedFd);
