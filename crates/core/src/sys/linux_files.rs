//! System calls for files that are sent: their stamps, their bytes, and the head before them.

use crate::error::{CoreError, Result};
use std::fs::{File, Metadata};
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::SystemTime;

/// Identity and version of a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    pub size: u64,
    mode: u32,
    device: u64,
    inode: u64,
    modified_ns: i128,
    changed_ns: i128,
}

impl FileStamp {
    fn of(metadata: &Metadata) -> FileStamp {
        let ns = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        FileStamp {
            size: metadata.size(),
            mode: metadata.mode(),
            device: metadata.dev(),
            inode: metadata.ino(),
            modified_ns: ns(metadata.mtime(), metadata.mtime_nsec()),
            changed_ns: ns(metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Time of the last change of anything, since 1970.
    pub fn changed_ns(&self) -> i128 {
        self.changed_ns
    }

    /// Time of the last change of its bytes, since 1970.
    pub fn modified_ns(&self) -> i128 {
        self.modified_ns
    }

    /// True: a regular file.
    pub fn is_file(&self) -> bool {
        self.mode & libc::S_IFMT == libc::S_IFREG
    }
}

/// `None`: there is nothing at this path, or it cannot be reached.
pub fn stamp_of_path(path: &Path) -> Option<FileStamp> {
    std::fs::metadata(path).ok().map(|metadata| FileStamp::of(&metadata))
}

pub fn stamp_of_file(file: BorrowedFd<'_>) -> Option<FileStamp> {
    borrowed(file).metadata().ok().map(|metadata| FileStamp::of(&metadata))
}

/// Fills `bytes` from `offset` on; fails when the file is shorter.
pub fn read_exact_at(file: BorrowedFd<'_>, bytes: &mut [u8], offset: u64) -> Result<()> {
    borrowed(file).read_exact_at(bytes, offset).map_err(|error| CoreError::Refused {
        what: "a file",
        errno: error.raw_os_error().unwrap_or(0),
    })
}

/// The file of a descriptor that stays the caller's.
fn borrowed(file: BorrowedFd<'_>) -> ManuallyDrop<File> {
    // SAFETY: it is open for the lifetime of `file`, and never closed here.
    ManuallyDrop::new(unsafe { File::from_raw_fd(file.as_raw_fd()) })
}

/// Descriptors that this process may have open.
pub fn descriptor_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a live out-parameter.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    limit.rlim_cur
}

/// Time since 1970.
pub fn real_time_ns() -> i128 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as i128)
}

/// Sends bytes that others follow, so that the kernel may put them into one packet. `Ok(0)`: the peer has to
/// read first.
pub fn send_before_more(socket: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize> {
    let flags = libc::MSG_MORE | libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    loop {
        // SAFETY: reads `bytes`, which is live for the call.
        let sent =
            unsafe { libc::send(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) };
        match usize::try_from(sent) {
            Ok(count) => return Ok(count),
            Err(_) => match std::io::Error::last_os_error().raw_os_error().unwrap_or(0) {
                libc::EINTR => {}
                libc::EAGAIN => return Ok(0),
                errno => return Err(CoreError::Refused { what: "send", errno }),
            },
        }
    }
}
