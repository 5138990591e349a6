//! The file of the transactional memory of a program: one for all its processes. The first process makes it and passes
//! its descriptor to each that it starts, which adopts it.
//! Not here: what is in the file (crates/core/src/stm/), a thread's part in it (transactions.rs).

use crate::error::{Result, refused, to_js};
use manycore_core::CoreError;
use manycore_core::region::Mapping;
use manycore_core::sys::fd::{AsFd, AsRawFd, OwnedFd};
use manycore_core::sys::{adopt, sealed_memfd, sealed_size};
use napi_derive::napi;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The smallest file that is a memory: there is room for the notes of all threads.
const LEAST_BYTES: u64 = 1 << 24;
/// Beyond, indices of words would not fit the numbers of JavaScript's bit operations.
const MOST_BYTES: u64 = 1 << 32;

struct File {
    /// Open from the first use to the end of the process.
    fd: Option<OwnedFd>,
    /// The mapping of all threads of this process.
    mapping: Weak<Mapping>,
}

static OF_PROCESS: Mutex<File> = Mutex::new(File { fd: None, mapping: Weak::new() });

fn lock() -> MutexGuard<'static, File> {
    OF_PROCESS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl File {
    /// `size_bytes`: of the file, if it is made now. Bytes that nobody has written take no memory.
    fn fd(&mut self, size_bytes: u64) -> std::result::Result<&OwnedFd, CoreError> {
        let fd = match self.fd.take() {
            Some(fd) => fd,
            None => sealed_memfd(c"manycore-stm", size_bytes)?,
        };
        Ok(self.fd.insert(fd))
    }
}

/// The descriptor for processes that this one starts; it stays ours. `size_bytes`: of the memory, if it is new.
#[napi]
pub fn space_fd(size_bytes: f64) -> Result<i32> {
    lock().fd(size_bytes as u64).map(|fd| fd.as_raw_fd()).map_err(to_js)
}

/// Takes over the descriptor that the starter of this process has passed. Throws after the first use: variables would
/// lie in two memories.
#[napi]
pub fn adopt_space(fd: i32) -> Result<()> {
    let fd = adopt(fd).map_err(to_js)?;
    let mut file = lock();
    if file.fd.is_some() {
        return Err(refused("this process has a transactional memory already"));
    }
    file.fd = Some(fd);
    Ok(())
}

/// The memory, if this process has its file.
pub(crate) fn map_if_open() -> std::result::Result<Option<Arc<Mapping>>, CoreError> {
    let has_file = lock().fd.is_some();
    if has_file { map(0).map(Some) } else { Ok(None) }
}

/// `size_bytes`: of the memory, if it is new.
pub(crate) fn map(size_bytes: u64) -> std::result::Result<Arc<Mapping>, CoreError> {
    let mut file = lock();
    if let Some(mapping) = file.mapping.upgrade() {
        return Ok(mapping);
    }
    let fd = file.fd(size_bytes)?.as_fd();
    let size = sealed_size(fd)?;
    if !(LEAST_BYTES..=MOST_BYTES).contains(&size) {
        return Err(CoreError::Corrupt { what: "the size of the memory", value: size });
    }
    let mapping = Arc::new(Mapping::of(fd, 0, size as usize)?);
    file.mapping = Arc::downgrade(&mapping);
    Ok(mapping)
}
