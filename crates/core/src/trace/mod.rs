//! System calls of other programs, counted in the kernel: the core of `manycore trace`.
//!
//! Two programs for the kernel do it. The better one is compiled (`trace.bpf.c`, its object is in this
//! binary) and tells the time on the CPU from the time off it; it needs the kernel's BTF. The other is
//! assembled here, instruction by instruction (`raw_program.rs`), and needs nothing but bpf(2). What is
//! here knows neither the file system nor names of calls: `src/trace/` does. Not here: the calls to the
//! kernel (`sys/linux_ebpf.rs`, `sys/linux_raw_trace.rs`).

pub mod raw_program;
pub mod record;

use crate::error::Result;
use crate::sys::{EbpfTracer, RawTracer};

/// One call of one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallReading {
    /// Its number on this architecture.
    pub number: u32,
    pub count: u64,
    pub errors: u64,
    /// From entering it to leaving it; calls that have not returned are not in it.
    pub took_ns: u64,
    /// Of `took_ns`, the time off the CPU; 0 where the tracer cannot tell.
    pub blocked_ns: u64,
}

/// What is counted together: a thread, or all child processes that run one program. Without a name it
/// is all that found no room elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordReading {
    /// 0 for child processes.
    pub pid: u32,
    /// 0 for child processes.
    pub tid: u32,
    /// Whether the thread has ended; its name and time are in no other place then.
    pub is_ended: bool,
    /// Of child processes: whether they ran no program of their own yet.
    pub is_starting: bool,
    /// How many threads or processes counted into it.
    pub tasks: u64,
    /// CPU time of those of them that have ended; 0 where the tracer does not see it.
    pub run_ns: u64,
    pub name: String,
    pub calls: Vec<CallReading>,
}

/// Which of the two programs.
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
    /// Counts from now on. `per_thread_names`: names of programs whose threads have records of their own when
    /// they are started as children; `Raw` follows no children by itself and takes no notice of it.
    pub fn start(method: Method, pids: &[u32], per_thread_names: &[String]) -> Result<Tracer> {
        let _memory = crate::sys::UnlockedMemory::take();
        match method {
            Method::Ebpf => EbpfTracer::start(pids, per_thread_names).map(Tracer::Ebpf),
            Method::Raw => RawTracer::start(pids).map(Tracer::Raw),
        }
    }

    /// Follows one more process; 4,096 at once are the most.
    pub fn follow(&mut self, pid: u32) -> Result<()> {
        match self {
            Tracer::Ebpf(tracer) => tracer.follow(pid),
            Tracer::Raw(tracer) => tracer.follow(pid),
        }
    }

    /// For a process that has ended: its number may be given to another. Not being followed is fine.
    pub fn unfollow(&mut self, pid: u32) -> Result<()> {
        match self {
            Tracer::Ebpf(tracer) => tracer.unfollow(pid),
            Tracer::Raw(tracer) => tracer.unfollow(pid),
        }
    }

    /// Everything that was counted since the start.
    pub fn read(&self) -> Result<Vec<RecordReading>> {
        match self {
            Tracer::Ebpf(tracer) => tracer.read(),
            Tracer::Raw(tracer) => tracer.read(),
        }
    }

    /// Lets the kernel take the time of its programs while the value lives.
    pub fn take_own_time(&self) -> Result<OwnTimeTaken> {
        crate::sys::enable_program_times().map(OwnTimeTaken)
    }

    /// How long the programs have run while that was taken, on all cores.
    pub fn own_time_ns(&self) -> Result<u64> {
        match self {
            Tracer::Ebpf(tracer) => tracer.own_time_ns(),
            Tracer::Raw(tracer) => tracer.own_time_ns(),
        }
    }
}

/// See `Tracer::take_own_time`.
#[derive(Debug)]
pub struct OwnTimeTaken(#[allow(dead_code)] std::os::fd::OwnedFd);
