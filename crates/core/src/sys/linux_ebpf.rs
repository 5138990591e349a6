//! Loads the compiled program for the kernel (`trace/trace.bpf.c`) with aya, and reads its maps.

use crate::error::{CoreError, Result};
use crate::trace::RecordReading;
use crate::trace::record::{COMM_BYTES, RECORD_BYTES, comm_of, parse};
use aya::maps::{Array, HashMap, MapError};
use aya::programs::{BtfTracePoint, Program};
use aya::{Btf, Ebpf, EbpfLoader, include_bytes_aligned};
use std::error::Error;
use std::io::ErrorKind::NotFound;
use std::os::fd::OwnedFd;

const OBJECT: &[u8] = include_bytes_aligned!("../trace/trace.bpf.o");

/// Same as in `trace.bpf.c`.
const HINT_WORDS: usize = 64;

/// Program and tracepoint. Programs for threads and cores come first: no call counts before them.
const PROGRAMS: [(&str, &str); 6] = [
    ("task_forks", "sched_process_fork"),
    ("program_starts", "sched_process_exec"),
    ("task_exits", "sched_process_exit"),
    ("core_switches", "sched_switch"),
    ("call_exits", "sys_exit"),
    ("call_enters", "sys_enter"),
];

/// Counts by the compiled program. See `trace::Tracer`.
#[derive(Debug)]
pub struct EbpfTracer {
    ebpf: Ebpf,
}

impl EbpfTracer {
    pub fn start(pids: &[u32], per_thread_names: &[String]) -> Result<EbpfTracer> {
        super::check_refusal("bpf")?;
        let btf = Btf::from_sys_fs().map_err(unavailable)?;
        // Task storage is a kind of map that aya does not support; the program alone uses it.
        let loaded = EbpfLoader::new().btf(Some(&btf)).allow_unsupported_maps().load(OBJECT);
        let mut tracer = EbpfTracer { ebpf: loaded.map_err(unavailable)? };
        for &pid in pids {
            tracer.follow(pid)?;
        }
        for name in per_thread_names {
            let map = tracer.ebpf.map_mut("told_apart").ok_or_else(|| lacks("told_apart"))?;
            let mut names =
                HashMap::<_, [u8; COMM_BYTES], u8>::try_from(map).map_err(unavailable)?;
            names.insert(comm_of(name), 1, 0).map_err(unavailable)?;
        }
        for (name, tracepoint) in PROGRAMS {
            let program = tracer.ebpf.program_mut(name).ok_or_else(|| lacks(name))?;
            let program: &mut BtfTracePoint = program.try_into().map_err(unavailable)?;
            program.load(tracepoint, &btf).map_err(unavailable)?;
            program.attach().map_err(unavailable)?;
        }
        Ok(tracer)
    }

    pub fn follow(&mut self, pid: u32) -> Result<()> {
        self.hint(pid)?;
        let map = self.ebpf.map_mut("followed").ok_or_else(|| lacks("followed"))?;
        let mut followed = HashMap::<_, u32, u8>::try_from(map).map_err(unavailable)?;
        followed.insert(pid, 1, 0).map_err(unavailable)
    }

    /// Sets the bit of a followed process. It is never cleared: several numbers may share it.
    fn hint(&mut self, pid: u32) -> Result<()> {
        let map = self.ebpf.map_mut("followed_hint").ok_or_else(|| lacks("followed_hint"))?;
        let mut hints = Array::<_, [u64; HINT_WORDS]>::try_from(map).map_err(unavailable)?;
        let mut words = hints.get(&0, 0).map_err(unavailable)?;
        words[pid as usize / 64 % HINT_WORDS] |= 1 << (pid % 64);
        hints.set(0, words, 0).map_err(unavailable)
    }

    pub fn unfollow(&mut self, pid: u32) -> Result<()> {
        let map = self.ebpf.map_mut("followed").ok_or_else(|| lacks("followed"))?;
        let mut followed = HashMap::<_, u32, u8>::try_from(map).map_err(unavailable)?;
        match followed.remove(&pid) {
            Err(MapError::SyscallError(error)) if error.io_error.kind() == NotFound => Ok(()),
            status => status.map_err(unavailable),
        }
    }

    pub fn read(&self) -> Result<Vec<RecordReading>> {
        let map = self.ebpf.map("record_count").ok_or_else(|| lacks("record_count"))?;
        let counts = Array::<_, u32>::try_from(map).map_err(unavailable)?;
        let count = counts.get(&0, 0).map_err(unavailable)?;
        let map = self.ebpf.map("records").ok_or_else(|| lacks("records"))?;
        let records = Array::<_, [u8; RECORD_BYTES]>::try_from(map).map_err(unavailable)?;
        // Record 0 collects all tasks that found no free record.
        let last = count.min(records.len().saturating_sub(1));
        let read = |at| records.get(&at, 0).map(|bytes| parse(&bytes)).map_err(unavailable);
        let all = (0..=last).map(read).collect::<Result<Vec<_>>>()?;
        Ok(all.into_iter().filter(|record| record.tasks > 0).collect())
    }

    pub fn own_time_ns(&self) -> Result<u64> {
        let times = self.ebpf.programs().map(|(_, program)| own_time_of(program));
        times.sum::<Result<u64>>()
    }
}

fn own_time_of(program: &Program) -> Result<u64> {
    let program: &BtfTracePoint = program.try_into().map_err(unavailable)?;
    let info = program.info().map_err(unavailable)?;
    Ok(info.run_time().as_nanos() as u64)
}

/// Makes the kernel measure the time of all its programs while the descriptor is open.
pub fn enable_program_times() -> Result<OwnedFd> {
    aya::sys::enable_stats(aya::sys::Stats::RunTime).map_err(unavailable)
}

fn lacks(what: &str) -> CoreError {
    CoreError::TraceUnavailable { reason: format!("the program for the kernel has no {what}") }
}

/// Joins aya's error and its causes in one line.
fn unavailable(error: impl Error) -> CoreError {
    let mut reason = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        reason = format!("{reason}: {error}");
        cause = error.source();
    }
    // The log of the kernel's verifier follows the first line.
    let first = reason.lines().next().unwrap_or_default().to_owned();
    CoreError::TraceUnavailable { reason: first }
}
