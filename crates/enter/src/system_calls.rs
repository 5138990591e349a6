//! The system calls that a partition may make, by seccomp (<https://docs.kernel.org/userspace-api/seccomp_filter.html>).
//! Node with worker threads needs no others; any other is refused with EPERM, so that code sees an error and goes on.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};
use std::collections::BTreeMap;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Calls that are allowed whatever their arguments.
const PLAIN: &[i64] = &[
    libc::SYS_brk,
    libc::SYS_capget,
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_close,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_eventfd2,
    libc::SYS_execve,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_fadvise64,
    libc::SYS_fallocate,
    libc::SYS_fcntl,
    libc::SYS_fdatasync,
    libc::SYS_fstat,
    libc::SYS_fsync,
    libc::SYS_ftruncate,
    libc::SYS_futex,
    libc::SYS_get_mempolicy,
    libc::SYS_getcpu,
    libc::SYS_getcwd,
    libc::SYS_getdents64,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getrandom,
    libc::SYS_getrusage,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_gettid,
    libc::SYS_gettimeofday,
    libc::SYS_getuid,
    libc::SYS_kill,
    libc::SYS_lseek,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_memfd_create,
    libc::SYS_mkdirat,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    libc::SYS_pipe2,
    libc::SYS_pkey_alloc,
    libc::SYS_pkey_mprotect,
    libc::SYS_ppoll,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_prlimit64,
    libc::SYS_pselect6,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_read,
    libc::SYS_readlinkat,
    libc::SYS_readv,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_getparam,
    libc::SYS_sched_getscheduler,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_yield,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_setitimer,
    libc::SYS_shutdown,
    libc::SYS_sigaltstack,
    libc::SYS_statx,
    libc::SYS_sysinfo,
    libc::SYS_tgkill,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_uname,
    libc::SYS_unlinkat,
    libc::SYS_utimensat,
    libc::SYS_wait4,
    libc::SYS_write,
    libc::SYS_writev,
];

/// The older calls of this architecture; newer ones have none.
#[cfg(target_arch = "x86_64")]
const OLDER: &[i64] = &[
    libc::SYS_access,
    libc::SYS_arch_prctl,
    libc::SYS_dup2,
    libc::SYS_epoll_wait,
    libc::SYS_getrlimit,
    libc::SYS_lstat,
    libc::SYS_mkdir,
    libc::SYS_open,
    libc::SYS_poll,
    libc::SYS_readlink,
    libc::SYS_rename,
    libc::SYS_rmdir,
    libc::SYS_select,
    libc::SYS_stat,
    libc::SYS_unlink,
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[i64] = &[];

/// Calls of a network; `socket` is limited to its own families.
const NETWORK: &[i64] = &[
    libc::SYS_accept4,
    libc::SYS_bind,
    libc::SYS_connect,
    libc::SYS_getpeername,
    libc::SYS_listen,
    libc::SYS_recvfrom,
    libc::SYS_recvmmsg,
    libc::SYS_recvmsg,
    libc::SYS_sendmmsg,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_setsockopt,
];

/// Calls of a guest kernel beside those of the programs that it serves. Its processes are processes here, too, and
/// it traces them: they are its children, with the same filter.
#[cfg(target_arch = "x86_64")]
const KERNEL: &[i64] = &[
    libc::SYS_epoll_create,
    libc::SYS_ptrace,
    libc::SYS_rt_sigsuspend,
    libc::SYS_statfs,
    libc::SYS_timer_create,
    libc::SYS_timer_gettime,
    libc::SYS_timer_settime,
    libc::SYS_setsid,
];

/// There is no such kernel for other processors.
#[cfg(not(target_arch = "x86_64"))]
const KERNEL: &[i64] = &[];

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

/// Needs of a program beside computing and reading files.
pub struct Wanted {
    pub may_fork: bool,
    pub has_network: bool,
    /// It is a guest kernel.
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

fn allowed(wanted: Wanted) -> seccompiler::Result<Rules> {
    let Wanted { may_fork, has_network, is_kernel } = wanted;
    let plain = PLAIN.iter().chain(OLDER).map(|&call| (call, Vec::new()));
    let mut rules: Rules = plain.collect();
    rules.insert(libc::SYS_ioctl, one_of(1, &IOCTLS)?);
    rules.insert(libc::SYS_prctl, one_of(0, &PRCTLS)?);
    let no_namespace = (NAMESPACES, 0);
    let a_thread = (NAMESPACES | THREAD, THREAD);
    rules.insert(
        libc::SYS_clone,
        vec![masked(if may_fork || is_kernel { no_namespace } else { a_thread })?],
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

/// The first argument, with only the bits of the mask, is that value.
fn masked((mask, value): (u64, u64)) -> seccompiler::Result<SeccompRule> {
    rule(0, SeccompCmpOp::MaskedEq(mask), value).map_err(seccompiler::Error::from)
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
