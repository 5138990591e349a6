//! Errors of this crate, each with its code in TypeScript (`src/errors.ts`).

use std::fmt;

pub type Result<T> = std::result::Result<T, CoreError>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CoreError {
    /// The kernel (or an injected refusal) refused `what`.
    Refused { what: &'static str, errno: i32 },
    /// This platform has no `what`.
    Unsupported { what: &'static str },
    /// A number in shared memory, or an argument that names shared memory, cannot be right.
    Corrupt { what: &'static str, value: u64 },
    /// `what`, in shared memory, has the layout of another version; `own`: that of this binary.
    Version { what: &'static str, found: u32, own: u32 },
    /// No offset or no memory is left for a block.
    Full { size_bytes: u64 },
    /// A transaction is too large for a log.
    TooLarge { writes: u64 },
    /// All numbers for threads that make transactions are taken.
    Crowded { participants: u32 },
    /// A thread that has stopped in the middle of a commit holds the others up.
    Stuck { thread: u32 },
    /// System calls cannot be counted in the kernel.
    TraceUnavailable { reason: String },
}

impl CoreError {
    /// The kernel's error number; 0 for an error that is no refusal of the kernel.
    pub fn errno(&self) -> i32 {
        match self {
            CoreError::Refused { errno, .. } => *errno,
            _ => 0,
        }
    }

    /// The stable code, as in `src/errors.ts`.
    pub fn code(&self) -> &'static str {
        match self {
            CoreError::Refused { .. } | CoreError::Unsupported { .. } => "NATIVE_REFUSED",
            CoreError::Corrupt { .. } => "SEGMENT_CORRUPT",
            CoreError::Version { .. } => "SEGMENT_VERSION",
            CoreError::Full { .. } => "SHARED_MEMORY_FULL",
            CoreError::TooLarge { .. } => "STM_TOO_LARGE",
            CoreError::Crowded { .. } => "STM_CROWDED",
            CoreError::Stuck { .. } => "STM_STUCK",
            CoreError::TraceUnavailable { .. } => "TRACE_UNAVAILABLE",
        }
    }
}

impl fmt::Display for CoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CoreError::Refused { what, errno } => {
                let text = std::io::Error::from_raw_os_error(*errno);
                write!(f, "the kernel refused {what}: {text}; sockets work without it")
            }
            CoreError::Unsupported { what } => {
                write!(f, "this platform has no {what}; sockets work without it")
            }
            CoreError::Corrupt { what, value } => {
                write!(f, "{what} in shared memory is {value}, which cannot be right")
            }
            CoreError::Version { what, found, own } => write!(
                f,
                "{what} has version {found}, this binary {own}: update both sides together"
            ),
            CoreError::Full { size_bytes } => {
                write!(f, "no shared memory is left for {size_bytes} bytes")
            }
            CoreError::TooLarge { writes } => {
                write!(f, "a transaction writes {writes} words, too many for one: divide it")
            }
            CoreError::Crowded { participants } => write!(
                f,
                "{participants} threads make transactions already, and no more can: end some workers"
            ),
            CoreError::Stuck { thread } => write!(
                f,
                "thread {thread} has stopped in the middle of a commit: let it go on (kill -CONT), or end it"
            ),
            CoreError::TraceUnavailable { reason } => write!(f, "{reason}"),
        }
    }
}

impl std::error::Error for CoreError {}
