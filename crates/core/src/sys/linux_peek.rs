//! Reads memory of this process at addresses that may not exist: the kernel copies the bytes into a pipe,
//! and reports an address that is not mapped as an error instead of a signal.

use super::linux::{checked, owned};
use crate::error::Result;
use std::os::fd::{AsRawFd, OwnedFd};

/// Bytes that a pipe takes at once (`PIPE_BUF` on Linux).
const MOST_BYTES: usize = 4096;
const WORD_BYTES: usize = 8;

pub struct Peek {
    from: OwnedFd,
    into: OwnedFd,
}

impl Peek {
    pub fn open() -> Result<Peek> {
        let mut fds = [0; 2];
        // SAFETY: a live array of two.
        let made = unsafe { libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) };
        checked(made, "pipe2")?;
        Ok(Peek { from: owned(fds[0], "pipe2")?, into: owned(fds[1], "pipe2")? })
    }

    /// The words from `address` on, at most `count`: fewer where the memory ends. Empty where there is none.
    pub fn words(&self, address: usize, count: usize) -> Vec<u64> {
        let mut bytes = Vec::with_capacity(count * WORD_BYTES);
        while bytes.len() < count * WORD_BYTES {
            let at = address + bytes.len();
            // A range that leaves the mapping may be refused as a whole, so each read stays in its page.
            let part = (MOST_BYTES - at % MOST_BYTES).min(count * WORD_BYTES - bytes.len());
            let read = self.bytes(at, part);
            bytes.extend_from_slice(&read);
            if read.len() < part {
                break;
            }
        }
        let words = bytes.chunks_exact(WORD_BYTES);
        words.map(|word| u64::from_ne_bytes(word.try_into().expect("8 bytes"))).collect()
    }

    fn bytes(&self, address: usize, count: usize) -> Vec<u8> {
        let start = address as *const libc::c_void;
        // SAFETY: the kernel checks the address; a bad one is EFAULT.
        let written = unsafe { libc::write(self.into.as_raw_fd(), start, count) };
        let mut bytes = vec![0; usize::try_from(written).unwrap_or(0)];
        // SAFETY: a live buffer of that size; the pipe holds as many bytes.
        let got =
            unsafe { libc::read(self.from.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len()) };
        bytes.truncate(usize::try_from(got).unwrap_or(0));
        bytes
    }

    /// One word; `None` where there is no memory.
    pub fn word(&self, address: usize) -> Option<u64> {
        self.words(address, 1).first().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// True under valgrind, which reports each address without memory that a system call is given.
    fn is_checked() -> bool {
        std::env::var("LD_PRELOAD").is_ok_and(|list| list.contains("valgrind"))
    }

    #[test]
    fn words_are_read_up_to_the_end_of_the_memory() {
        let page = MOST_BYTES;
        // SAFETY: a fresh mapping of two pages.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                2 * page,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(start, libc::MAP_FAILED);
        let second = start.wrapping_byte_add(page);
        // SAFETY: the second page of that mapping.
        assert_eq!(unsafe { libc::munmap(second, page) }, 0);
        let last = start.wrapping_byte_add(page - WORD_BYTES);
        // SAFETY: the last word of the first page.
        unsafe { last.cast::<u64>().write(7) };
        let peek = Peek::open().unwrap();
        assert_eq!(peek.words(last as usize, 1), [7]);
        if !is_checked() {
            assert_eq!(peek.words(last as usize, 5), [7]);
            assert_eq!(peek.word(second as usize), None);
            assert_eq!(peek.words(16, 2), []);
        }
        // SAFETY: the first page of that mapping.
        unsafe { libc::munmap(start, page) };
    }
}
