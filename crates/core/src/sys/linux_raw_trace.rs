//! Loads the programs of `trace/raw_program.rs` by bpf(2) itself, and reads their maps.

use super::linux::{checked, owned};
use crate::error::Result;
use crate::trace::raw_program::{
    CELL_BYTES, CELL_KEY_BYTES, ENTERED_BYTES, Instruction, Maps, enter_program, exit_program,
};
use crate::trace::record::u64_at;
use crate::trace::{CallReading, RecordReading};
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::os::fd::{AsRawFd, OwnedFd};

const BPF: &str = "bpf(2)";

/// Commands of bpf(2).
mod command {
    pub const MAP_CREATE: i32 = 0;
    pub const MAP_LOOKUP: i32 = 1;
    pub const MAP_UPDATE: i32 = 2;
    pub const MAP_DELETE: i32 = 3;
    pub const MAP_NEXT_KEY: i32 = 4;
    pub const PROGRAM_LOAD: i32 = 5;
    pub const PROGRAM_INFO: i32 = 15;
    pub const TRACEPOINT_OPEN: i32 = 17;
}

const HASH_MAP: u32 = 1;
const RAW_TRACEPOINT: u32 = 17;
/// The kernel's clock requires a program under a compatible license.
const LICENSE: &CStr = c"Dual MIT/GPL";

const MAX_PROCESSES: u32 = 4096;
const MAX_THREADS: u32 = 16_384;
/// Cells for pairs of thread and call.
const MAX_CELLS: u32 = 65_536;

/// Counts by the assembled programs. See `trace::Tracer`.
#[derive(Debug)]
pub struct RawTracer {
    followed: OwnedFd,
    /// Held while the programs run.
    _entered: OwnedFd,
    cells: OwnedFd,
    programs: [OwnedFd; 2],
    /// Closing them ends the programs.
    _attached: [OwnedFd; 2],
}

impl RawTracer {
    pub fn start(pids: &[u32]) -> Result<RawTracer> {
        super::check_refusal("bpf")?;
        let followed = create_map(4, 4, MAX_PROCESSES)?;
        let entered = create_map(4, ENTERED_BYTES, MAX_THREADS)?;
        let cells = create_map(CELL_KEY_BYTES, CELL_BYTES, MAX_CELLS)?;
        let maps = Maps {
            followed: followed.as_raw_fd(),
            entered: entered.as_raw_fd(),
            cells: cells.as_raw_fd(),
        };
        for &pid in pids {
            follow(&followed, pid)?;
        }
        let programs = [load(&exit_program(maps))?, load(&enter_program(maps))?];
        let attached = [attach(c"sys_exit", &programs[0])?, attach(c"sys_enter", &programs[1])?];
        Ok(RawTracer { followed, _entered: entered, cells, programs, _attached: attached })
    }

    pub fn follow(&mut self, pid: u32) -> Result<()> {
        follow(&self.followed, pid)
    }

    pub fn unfollow(&mut self, pid: u32) -> Result<()> {
        unfollow(&self.followed, pid)
    }

    /// Reads one record for each thread, without its process and name, which the program does not see.
    pub fn read(&self) -> Result<Vec<RecordReading>> {
        let mut threads = BTreeMap::<u32, Vec<CallReading>>::new();
        let mut key = None;
        while let Some(next) = next_key(&self.cells, key)? {
            key = Some(next);
            let [tid, number] = words_of(next);
            if let Some(cell) = cell_at(&self.cells, next) {
                threads.entry(tid).or_default().push(CallReading { number, ..cell });
            }
        }
        let record = |(tid, calls)| RecordReading {
            pid: 0,
            tid,
            is_ended: false,
            is_starting: false,
            tasks: 1,
            run_ns: 0,
            name: String::new(),
            calls,
        };
        Ok(threads.into_iter().map(record).collect())
    }

    pub fn own_time_ns(&self) -> Result<u64> {
        self.programs.iter().map(own_time_of).sum()
    }
}

/// While this value lives, maps and programs of bpf(2) do not count against this process's limit of
/// locked memory, if it may raise the limit. Kernels before 5.11 count them there, and most limits are
/// too low for any.
#[derive(Debug)]
pub struct UnlockedMemory(Option<libc::rlimit>);

impl UnlockedMemory {
    pub fn take() -> UnlockedMemory {
        let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: `before` is a live out-parameter.
        if unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut before) } != 0 {
            return UnlockedMemory(None);
        }
        let none = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: `none` is live for the call.
        let status = unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const none) };
        UnlockedMemory((status == 0).then_some(before))
    }
}

impl Drop for UnlockedMemory {
    fn drop(&mut self) {
        if let UnlockedMemory(Some(before)) = self {
            // SAFETY: a live value; lowering a limit is always allowed.
            unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const *before) };
        }
    }
}

/// While this value lives, this thread takes no signals; they wait, or another thread takes them. The
/// kernel gives up with EAGAIN to verify a program when a signal is pending.
#[derive(Debug)]
pub struct BlockedSignals(libc::sigset_t);

impl BlockedSignals {
    pub fn take() -> BlockedSignals {
        // SAFETY: a set of signals is plain bits.
        let [mut all, mut before] = unsafe { std::mem::zeroed::<[libc::sigset_t; 2]>() };
        // SAFETY: `all` is live.
        unsafe { libc::sigfillset(&raw mut all) };
        // SAFETY: both sets are live.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) };
        BlockedSignals(before)
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        let BlockedSignals(before) = self;
        let (set, none) = (&raw const *before, std::ptr::null_mut());
        // SAFETY: the set that the same call filled.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, set, none) };
    }
}

/// The argument of bpf(2), as large as the largest command's.
type Attribute = [u64; 16];

/// Calls bpf(2). The `pointers` in `attribute` must point to live memory of the size that the command
/// requires.
fn bpf(command: i32, attribute: &mut Attribute) -> i32 {
    let size = size_of::<Attribute>();
    // SAFETY: the attribute is live, and what it points to is, by the callers in this file.
    let status = unsafe { libc::syscall(libc::SYS_bpf, command, attribute.as_mut_ptr(), size) };
    status as i32
}

/// Two adjacent 32-bit fields.
fn pair(first: u32, second: u32) -> u64 {
    let [a, b, c, d] = first.to_ne_bytes();
    let [e, f, g, h] = second.to_ne_bytes();
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

fn words_of(key: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = key.to_ne_bytes();
    [u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h])]
}

fn descriptor(fd: &OwnedFd) -> u64 {
    pair(fd.as_raw_fd() as u32, 0)
}

fn create_map(key_bytes: u32, value_bytes: u32, max_entries: u32) -> Result<OwnedFd> {
    let mut attribute = [0; 16];
    attribute[0] = pair(HASH_MAP, key_bytes);
    attribute[1] = pair(value_bytes, max_entries);
    owned(bpf(command::MAP_CREATE, &mut attribute), BPF)
}

fn follow(map: &OwnedFd, pid: u32) -> Result<()> {
    let value = 1u32;
    let mut attribute = [0; 16];
    attribute[0] = descriptor(map);
    attribute[1] = &raw const pid as u64;
    attribute[2] = &raw const value as u64;
    checked(bpf(command::MAP_UPDATE, &mut attribute), BPF)
}

fn unfollow(map: &OwnedFd, pid: u32) -> Result<()> {
    let mut attribute = [0; 16];
    attribute[0] = descriptor(map);
    attribute[1] = &raw const pid as u64;
    match checked(bpf(command::MAP_DELETE, &mut attribute), BPF) {
        Err(error) if error.errno() == libc::ENOENT => Ok(()),
        status => status,
    }
}

fn load(program: &[Instruction]) -> Result<OwnedFd> {
    let mut attribute = [0; 16];
    attribute[0] = pair(RAW_TRACEPOINT, program.len() as u32);
    attribute[1] = program.as_ptr() as u64;
    attribute[2] = LICENSE.as_ptr() as u64;
    owned(bpf(command::PROGRAM_LOAD, &mut attribute), BPF)
}

fn attach(tracepoint: &CStr, program: &OwnedFd) -> Result<OwnedFd> {
    let mut attribute = [0; 16];
    attribute[0] = tracepoint.as_ptr() as u64;
    attribute[1] = descriptor(program);
    owned(bpf(command::TRACEPOINT_OPEN, &mut attribute), BPF)
}

/// The key behind `key`; without `key` the first one; `None` at the end.
fn next_key(map: &OwnedFd, key: Option<u64>) -> Result<Option<u64>> {
    let mut next = 0u64;
    let mut attribute = [0; 16];
    attribute[0] = descriptor(map);
    attribute[1] = key.as_ref().map_or(0, |key| key as *const u64 as u64);
    attribute[2] = &raw mut next as u64;
    match checked(bpf(command::MAP_NEXT_KEY, &mut attribute), BPF) {
        Ok(()) => Ok(Some(next)),
        Err(error) if error.errno() == libc::ENOENT => Ok(None),
        Err(error) => Err(error),
    }
}

fn cell_at(map: &OwnedFd, key: u64) -> Option<CallReading> {
    let mut cell = [0u8; CELL_BYTES as usize];
    let mut attribute = [0; 16];
    attribute[0] = descriptor(map);
    attribute[1] = &raw const key as u64;
    attribute[2] = cell.as_mut_ptr() as u64;
    checked(bpf(command::MAP_LOOKUP, &mut attribute), BPF).ok()?;
    let [count, errors, took_ns] = [u64_at(&cell, 0), u64_at(&cell, 8), u64_at(&cell, 16)];
    Some(CallReading { number: 0, count, errors, took_ns, blocked_ns: 0 })
}

/// `run_time_ns` of `struct bpf_prog_info`.
fn own_time_of(program: &OwnedFd) -> Result<u64> {
    const RUN_TIME_AT: usize = 192;
    let mut info = [0u8; 208];
    let mut attribute = [0; 16];
    attribute[0] = pair(program.as_raw_fd() as u32, info.len() as u32);
    attribute[1] = info.as_mut_ptr() as u64;
    checked(bpf(command::PROGRAM_INFO, &mut attribute), BPF)?;
    Ok(u64_at(&info, RUN_TIME_AT))
}
