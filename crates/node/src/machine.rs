//! Facts about the machine, its kernel and the core of this thread.

use crate::error::{Result, to_js};
use manycore_core::cpu::{affinity, cgroup, topology};
use manycore_core::{parent_watch, sys};
use napi_derive::napi;
use std::time::Duration;

#[napi(object)]
pub struct GrantedCores {
    pub count: u32,
    pub reason: String,
}

#[napi]
pub fn granted_cores() -> GrantedCores {
    let granted = topology::granted();
    GrantedCores { count: granted.count, reason: granted.reason }
}

/// True: the control group limits CPU time below the capacity of the cores.
#[napi]
pub fn has_cpu_quota() -> bool {
    let cores = affinity::allowed().map_or(1, |cpus| cpus.len());
    cgroup::quota_cores().is_some_and(|quota| quota < cores as f64)
}

/// The cores that this thread may run on; none when the system has no list.
#[napi]
pub fn allowed_cores() -> Vec<u32> {
    affinity::allowed().unwrap_or_default()
}

#[napi]
pub fn pin_thread(cpus: Vec<u32>) -> Result<()> {
    affinity::pin(&cpus).map_err(to_js)
}

/// The core that this thread runs on now, -1 when unknown.
#[napi]
pub fn current_cpu() -> i32 {
    sys::current_cpu().map_or(-1, |cpu| cpu as i32)
}

/// The number of this thread in the system; 0 when unknown.
#[napi]
pub fn thread_id() -> i32 {
    sys::thread_id()
}

/// Ends this process when `pid`, its parent, ends, and when the parent's `thread` does, unless that is
/// 0; `grace_ms` later where the kernel supports it. Returns the mechanism: `pidfd` or `death-signal`.
#[napi]
pub fn watch_parent(pid: i32, thread: i32, grace_ms: u32) -> Result<&'static str> {
    let grace = Duration::from_millis(grace_ms.into());
    match parent_watch::watch(pid, thread, grace).map_err(to_js)? {
        parent_watch::Watch::Pidfd => Ok("pidfd"),
        parent_watch::Watch::DeathSignal => Ok("death-signal"),
    }
}

/// Support of the kernel for each feature: empty when it works, else the reason.
#[napi(object)]
pub struct KernelFeatures {
    pub memfd: String,
    pub eventfd: String,
    pub pidfd: String,
}

#[napi]
pub fn probe_kernel() -> KernelFeatures {
    KernelFeatures {
        memfd: answer(sys::sealed_memfd(c"manycore-probe", 4096)),
        eventfd: answer(sys::eventfd()),
        pidfd: answer(sys::pidfd(std::process::id() as i32)),
    }
}

fn answer<T>(result: manycore_core::Result<T>) -> String {
    result.err().map_or(String::new(), |error| error.to_string())
}
