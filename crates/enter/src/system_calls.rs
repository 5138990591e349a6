//! The system calls that a partition may make, by seccomp
//! (<https://docs.kernel.org/userspace-api/seccomp_filter.html>).
//! Node with worker threads needs no others; any other is refused with EPERM, so that code sees an error and goes on.

use crate::call_lists::{KERNEL, NETWORK, OLDER, PLAIN};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};
use std::collections::BTreeMap;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The requests of `ioctl` that libuv makes of files and terminals.
#[allow(clippy::unnecessary_cast)] // other C libraries have other types
const IOCTLS: [u64; 5] = [
    libc::FIOCLEX as u64,
    libc::FIONBIO as u64,
    libc::FIONREAD as u64,
    libc::TCGETS as u64,
    libc::TIOCGWINSZ as u64,
];
/// The options of `prctl` by which threads and memory get names.
const PRCTLS: [u64; 3] =
    [libc::PR_SET_NAME as u64, libc::PR_GET_NAME as u64, libc::PR_SET_VMA as u64];
/// All flags of `clone` that make namespaces.
const NAMESPACES: u64 = 0x7e02_0000;
const THREAD: u64 = libc::CLONE_THREAD as u64;
/// The bits of a mode by which a file gives the rights of its owner, and their value: a file in a folder of `write` is
/// one of the starter, and stays.
const PLAIN_MODE: (u64, u64) = ((libc::S_ISUID | libc::S_ISGID) as u64, 0);
/// Calls that leave more than data in a folder of `write`: links which the program may follow, files with the rights of
/// their owner, and other kinds of files.
const LEAVING: &[i64] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    libc::SYS_fsetxattr,
    libc::SYS_linkat,
    libc::SYS_lsetxattr,
    libc::SYS_mknodat,
    libc::SYS_setxattr,
    libc::SYS_symlinkat,
];
/// The older names of the same.
#[cfg(target_arch = "x86_64")]
const LEAVING_OLDER: &[i64] =
    &[libc::SYS_chmod, libc::SYS_link, libc::SYS_mknod, libc::SYS_symlink];
#[cfg(not(target_arch = "x86_64"))]
const LEAVING_OLDER: &[i64] = &[];

/// Needs of a program beside computing and reading files.
pub struct Wanted {
    pub may_fork: bool,
    pub has_network: bool,
    /// True: the program is a guest kernel.
    pub is_kernel: bool,
}

/// Limits the system calls of this thread and of all that it starts.
pub fn restrict(wanted: Wanted) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("seccomp: {error}");
    // The first, because the second forbids to install another. ENOSYS lets the C library use `clone`, whose flags a
    // filter can read.
    let missing = [libc::SYS_clone3, libc::SYS_io_uring_setup];
    let missing = missing.into_iter().map(|call| (call, Vec::new())).collect();
    let no_such_call = SeccompAction::Errno(libc::ENOSYS as u32);
    install(missing, SeccompAction::Allow, no_such_call).map_err(|error| failed(&error))?;
    let mut rules = allowed(wanted).map_err(|error| failed(&error))?;
    rules.extend([(libc::SYS_clone3, Vec::new()), (libc::SYS_io_uring_setup, Vec::new())]);
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    install(rules, refused, SeccompAction::Allow).map_err(|error| failed(&error))
}

/// Refuses gVisor, which has a filter of its own, the calls by which its guest would leave more than data outside.
pub fn restrict_gvisor() -> Result<(), String> {
    let mut rules: Rules =
        LEAVING.iter().chain(LEAVING_OLDER).map(|&call| (call, Vec::new())).collect();
    let failed = |error: seccompiler::Error| format!("seccomp: {error}");
    let special = |index, bit| masked(index, (u64::from(bit), u64::from(bit)));
    for bit in [libc::S_ISUID, libc::S_ISGID] {
        let rule = special(3, bit).map_err(failed)?;
        rules.entry(libc::SYS_openat).or_default().push(rule);
    }
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    install(rules, SeccompAction::Allow, refused).map_err(failed)
}

fn allowed(wanted: Wanted) -> seccompiler::Result<Rules> {
    let Wanted { may_fork, has_network, is_kernel } = wanted;
    let plain = PLAIN.iter().chain(OLDER).map(|&call| (call, Vec::new()));
    let mut rules: Rules = plain.collect();
    rules.insert(libc::SYS_openat, vec![masked(3, PLAIN_MODE)?]);
    #[cfg(target_arch = "x86_64")]
    rules.insert(libc::SYS_open, vec![masked(2, PLAIN_MODE)?]);
    rules.insert(libc::SYS_ioctl, one_of(1, &IOCTLS)?);
    rules.insert(libc::SYS_prctl, one_of(0, &PRCTLS)?);
    let no_namespace = (NAMESPACES, 0);
    let a_thread = (NAMESPACES | THREAD, THREAD);
    rules.insert(
        libc::SYS_clone,
        vec![masked(0, if may_fork || is_kernel { no_namespace } else { a_thread })?],
    );
    if may_fork {
        #[cfg(target_arch = "x86_64")]
        rules.insert(libc::SYS_vfork, Vec::new());
        rules.insert(libc::SYS_waitid, Vec::new());
        rules.insert(libc::SYS_socketpair, one_of(0, &[libc::AF_UNIX as u64])?);
    }
    if is_kernel {
        rules.extend(KERNEL.iter().map(|&call| (call, Vec::new())));
        rules.insert(libc::SYS_socketpair, one_of(0, &[libc::AF_UNIX as u64])?);
    }
    if has_network {
        rules.extend(NETWORK.iter().map(|&call| (call, Vec::new())));
        let families = [libc::AF_INET as u64, libc::AF_INET6 as u64];
        rules.insert(libc::SYS_socket, one_of(0, &families)?);
    }
    Ok(rules)
}

/// Rules of which one holds: argument `index` is one of `values`.
fn one_of(index: u8, values: &[u64]) -> seccompiler::Result<Vec<SeccompRule>> {
    values
        .iter()
        .map(|&value| rule(index, SeccompCmpOp::Eq, value))
        .collect::<std::result::Result<_, _>>()
        .map_err(seccompiler::Error::from)
}

/// Argument `index`, with only the bits of the mask, is that value.
fn masked(index: u8, (mask, value): (u64, u64)) -> seccompiler::Result<SeccompRule> {
    rule(index, SeccompCmpOp::MaskedEq(mask), value).map_err(seccompiler::Error::from)
}

fn rule(
    index: u8,
    operator: SeccompCmpOp,
    value: u64,
) -> std::result::Result<SeccompRule, seccompiler::BackendError> {
    let condition = SeccompCondition::new(index, SeccompCmpArgLen::Dword, operator, value)?;
    SeccompRule::new(vec![condition])
}

fn install(
    rules: Rules,
    otherwise: SeccompAction,
    action: SeccompAction,
) -> seccompiler::Result<()> {
    let arch: TargetArch = std::env::consts::ARCH.try_into().map_err(seccompiler::Error::from)?;
    let filter = SeccompFilter::new(rules, otherwise, action, arch)?;
    let program: BpfProgram = filter.try_into()?;
    apply_filter(&program)
}
