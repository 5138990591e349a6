//! Ends this process when its parent ends, even while JavaScript runs an endless loop: a native thread
//! sleeps on a pidfd of the parent.
//!
//! A worker thread that started this process may end before its own process does, without running any
//! JavaScript: `worker.terminate()`. The kernel's signal PR_SET_PDEATHSIG covers this: it fires when
//! the *thread* ends that started us. It is never the first choice for the process's end: where libuv
//! would start us from a thread of its own, the signal would come far too early.

use crate::error::{CoreError, Result};
use crate::sys;
use crate::sys::fd::AsFd;
use std::time::Duration;

/// Status of a process that ended because its parent did.
pub const ORPHANED_STATUS: i32 = 113;
const STACK_BYTES: usize = 64 * 1024;

/// The mechanism that watches the parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watch {
    Pidfd,
    /// The kernel's own signal; it also fires when only the parent's starting thread ends.
    DeathSignal,
}

/// Watches `pid`, which must be the parent; if it no longer is, this process ends at once. `thread`:
/// the parent's thread whose end also ends this process; 0 for none. `grace`: time to go on after the
/// end of the parent, where the kernel has pidfds.
pub fn watch(pid: i32, thread: i32, grace: Duration) -> Result<Watch> {
    if thread != 0 {
        sys::die_with_parent_thread()?;
        // After the call: from here on either the signal comes, or the thread ended before.
        if !sys::has_thread(pid, thread) {
            sys::exit_now(ORPHANED_STATUS);
        }
    }
    let parent = match sys::pidfd(pid) {
        Ok(fd) => fd,
        Err(_) => return watch_by_signal(pid),
    };
    // After the open: if the number had been reused, the parent would be another process by now.
    exit_when_orphaned(pid);
    let wait = move || {
        sys::wait_readable(parent.as_fd());
        std::thread::sleep(grace);
        sys::exit_now(ORPHANED_STATUS);
    };
    std::thread::Builder::new()
        .name("manycore-parent".into())
        .stack_size(STACK_BYTES)
        .spawn(wait)
        .map_err(|error| CoreError::Refused {
            what: "a thread",
            errno: error.raw_os_error().unwrap_or(0),
        })?;
    Ok(Watch::Pidfd)
}

fn watch_by_signal(pid: i32) -> Result<Watch> {
    sys::die_with_parent_thread()?;
    exit_when_orphaned(pid);
    Ok(Watch::DeathSignal)
}

fn exit_when_orphaned(pid: i32) {
    if sys::parent_pid() != pid {
        sys::exit_now(ORPHANED_STATUS);
    }
}
