//! The layout of `struct record` in `trace.bpf.c`, and the conversion of its bytes to a
//! `RecordReading`.

use super::{CallReading, RecordReading};

/// Same as in `trace.bpf.c`.
pub const CALL_COUNT: usize = 512;
pub const COMM_BYTES: usize = 16;
const HEAD_BYTES: usize = 48;
const CALL_BYTES: usize = 32;
pub const RECORD_BYTES: usize = HEAD_BYTES + CALL_COUNT * CALL_BYTES;

/// The kind of child processes that have not yet run a program of their own.
const KIND_STARTING: u32 = 3;

/// Offsets in a record.
mod at {
    pub const KIND: usize = 0;
    pub const TID: usize = 4;
    pub const PID: usize = 8;
    pub const IS_ENDED: usize = 12;
    pub const TASKS: usize = 16;
    pub const RUN_NS: usize = 24;
    pub const COMM: usize = 32;
}

/// Offsets in a call.
mod call_at {
    pub const COUNT: usize = 0;
    pub const ERRORS: usize = 8;
    pub const ON_CPU_NS: usize = 16;
    pub const BLOCKED_NS: usize = 24;
}

/// Parses a record; calls that never came are left out.
pub fn parse(bytes: &[u8; RECORD_BYTES]) -> RecordReading {
    let comm = &bytes[at::COMM..at::COMM + COMM_BYTES];
    let calls = bytes[HEAD_BYTES..].chunks_exact(CALL_BYTES).enumerate();
    RecordReading {
        pid: u32_at(bytes, at::PID),
        tid: u32_at(bytes, at::TID),
        is_ended: u32_at(bytes, at::IS_ENDED) != 0,
        is_starting: u32_at(bytes, at::KIND) == KIND_STARTING,
        tasks: u64_at(bytes, at::TASKS),
        run_ns: u64_at(bytes, at::RUN_NS),
        name: text_of(comm),
        calls: calls.filter_map(|(number, call)| parse_call(number, call)).collect(),
    }
}

fn parse_call(number: usize, bytes: &[u8]) -> Option<CallReading> {
    let blocked_ns = u64_at(bytes, call_at::BLOCKED_NS);
    let call = CallReading {
        number: number as u32,
        count: u64_at(bytes, call_at::COUNT),
        errors: u64_at(bytes, call_at::ERRORS),
        took_ns: u64_at(bytes, call_at::ON_CPU_NS) + blocked_ns,
        blocked_ns,
    };
    (call.count > 0).then_some(call)
}

/// Reads a name in the kernel's format: up to the first zero.
pub fn text_of(comm: &[u8]) -> String {
    let end = comm.iter().position(|&byte| byte == 0).unwrap_or(comm.len());
    String::from_utf8_lossy(&comm[..end]).into_owned()
}

/// Writes a name in the kernel's format: cut to its room, with a zero at the end.
pub fn comm_of(name: &str) -> [u8; COMM_BYTES] {
    let mut comm = [0; COMM_BYTES];
    for (to, from) in comm[..COMM_BYTES - 1].iter_mut().zip(name.bytes()) {
        *to = from;
    }
    comm
}

fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_ne_bytes(bytes[offset..offset + 4].try_into().expect("4 bytes"))
}

pub fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_ne_bytes(bytes[offset..offset + 8].try_into().expect("8 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_with_the_calls_that_came() {
        let mut bytes = [0; RECORD_BYTES];
        bytes[at::KIND..at::KIND + 4].copy_from_slice(&KIND_STARTING.to_ne_bytes());
        bytes[at::TID..at::TID + 4].copy_from_slice(&7u32.to_ne_bytes());
        bytes[at::PID..at::PID + 4].copy_from_slice(&5u32.to_ne_bytes());
        bytes[at::RUN_NS..at::RUN_NS + 8].copy_from_slice(&900u64.to_ne_bytes());
        bytes[at::COMM..at::COMM + 4].copy_from_slice(b"node");
        let call = HEAD_BYTES + 281 * CALL_BYTES;
        for (at, value) in [(0, 3u64), (8, 1), (16, 20), (24, 30)] {
            bytes[call + at..call + at + 8].copy_from_slice(&value.to_ne_bytes());
        }
        let record = parse(&bytes);
        assert_eq!((record.pid, record.tid, record.run_ns), (5, 7, 900));
        assert_eq!((record.name.as_str(), record.is_starting), ("node", true));
        let expected =
            CallReading { number: 281, count: 3, errors: 1, took_ns: 50, blocked_ns: 30 };
        assert_eq!(record.calls, [expected]);
    }

    #[test]
    fn a_name_is_cut_to_what_the_kernel_keeps() {
        assert_eq!(text_of(&comm_of("a-name-of-twenty-one")), "a-name-of-twent");
        assert_eq!(text_of(&comm_of("node")), "node");
    }
}
