//! The 16 bytes in front of each frame, little-endian: `[i32 size][i32 kind][i32 task][i32 target]`.
//!
//! `size` counts header and body; the next frame begins at the next multiple of 8. A negative size is a
//! gap of that many bytes: the rest of the ring was too short for the next frame. Bit 30 marks a body
//! in an arena block; the frame then holds a `Spill` instead.

pub const HEADER_BYTES: usize = 16;
pub const ALIGN_BYTES: u32 = 8;
pub const SPILL_FLAG: u32 = 1 << 30;
/// Body of a spilled frame: `[f64 offset][f64 size][i32 owner]`, padded.
pub const SPILL_BYTES: usize = 24;

/// Header fields; both ends define what kind, task and target mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub kind: i32,
    pub task: i32,
    pub target: i32,
}

pub fn encode(size: u32, head: Head) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[0..4].copy_from_slice(&size.to_le_bytes());
    bytes[4..8].copy_from_slice(&head.kind.to_le_bytes());
    bytes[8..12].copy_from_slice(&head.task.to_le_bytes());
    bytes[12..16].copy_from_slice(&head.target.to_le_bytes());
    bytes
}

pub fn decode(bytes: [u8; HEADER_BYTES]) -> (i32, Head) {
    let field =
        |at: usize| i32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    (field(0), Head { kind: field(4), task: field(8), target: field(12) })
}
