//! System calls. `cfg(target_os)` lives here alone: `linux.rs` makes the calls, `other.rs` returns
//! `Unsupported` for each, so that the crate builds everywhere.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod linux_control_socket;
#[cfg(target_os = "linux")]
mod linux_ebpf;
#[cfg(target_os = "linux")]
mod linux_files;
#[cfg(target_os = "linux")]
mod linux_peek;
#[cfg(target_os = "linux")]
mod linux_raw_trace;
#[cfg(target_os = "linux")]
mod linux_rescue;
#[cfg(target_os = "linux")]
mod linux_sockets;
#[cfg(target_os = "linux")]
pub use linux::*;
#[cfg(target_os = "linux")]
pub use linux_control_socket::*;
#[cfg(target_os = "linux")]
pub use linux_ebpf::*;
#[cfg(target_os = "linux")]
pub use linux_files::*;
#[cfg(target_os = "linux")]
pub use linux_peek::*;
#[cfg(target_os = "linux")]
pub use linux_raw_trace::*;
#[cfg(target_os = "linux")]
pub use linux_rescue::*;
#[cfg(target_os = "linux")]
pub use linux_sockets::*;

/// Descriptors of files.
#[cfg(unix)]
pub use std::os::fd;
#[cfg(not(unix))]
pub mod no_fd;
#[cfg(not(unix))]
pub use no_fd as fd;

#[cfg(not(target_os = "linux"))]
mod other;
#[cfg(not(target_os = "linux"))]
pub use other::*;

use crate::error::{CoreError, Result};

/// Lets tests refuse a kernel feature: `MANYCORE_REFUSE=memfd,eventfd`. Read where descriptors and new
/// mappings of the arena (`mapping`) are made, never on a hot path.
pub fn check_refusal(what: &'static str) -> Result<()> {
    let refused =
        std::env::var("MANYCORE_REFUSE").is_ok_and(|list| list.split(',').any(|w| w == what));
    if refused {
        return Err(CoreError::Refused { what, errno: EPERM });
    }
    Ok(())
}
