//! The numbers of the system calls that attempts make by name.

/// `name: number` for each call that is named.
macro_rules! numbers {
    ($($name:ident => $call:ident),* $(,)?) => {
        &[$((stringify!($name), libc::$call)),*]
    };
}

pub const NUMBERS: &[(&str, i64)] = numbers![
    acct => SYS_acct,
    add_key => SYS_add_key,
    bpf => SYS_bpf,
    chroot => SYS_chroot,
    clock_settime => SYS_clock_settime,
    clone => SYS_clone,
    clone3 => SYS_clone3,
    delete_module => SYS_delete_module,
    finit_module => SYS_finit_module,
    init_module => SYS_init_module,
    io_uring_setup => SYS_io_uring_setup,
    ioctl => SYS_ioctl,
    kcmp => SYS_kcmp,
    kexec_load => SYS_kexec_load,
    keyctl => SYS_keyctl,
    mknodat => SYS_mknodat,
    mount => SYS_mount,
    open_by_handle_at => SYS_open_by_handle_at,
    openat => SYS_openat,
    perf_event_open => SYS_perf_event_open,
    pidfd_getfd => SYS_pidfd_getfd,
    pivot_root => SYS_pivot_root,
    prctl => SYS_prctl,
    process_vm_readv => SYS_process_vm_readv,
    process_vm_writev => SYS_process_vm_writev,
    ptrace => SYS_ptrace,
    reboot => SYS_reboot,
    request_key => SYS_request_key,
    setdomainname => SYS_setdomainname,
    sethostname => SYS_sethostname,
    setns => SYS_setns,
    settimeofday => SYS_settimeofday,
    setuid => SYS_setuid,
    socket => SYS_socket,
    socketpair => SYS_socketpair,
    swapon => SYS_swapon,
    syslog => SYS_syslog,
    umount2 => SYS_umount2,
    unshare => SYS_unshare,
    userfaultfd => SYS_userfaultfd,
    vhangup => SYS_vhangup,
    waitid => SYS_waitid,
];

/// Calls of this architecture alone.
#[cfg(target_arch = "x86_64")]
pub const OLDER: &[(&str, i64)] = numbers![vfork => SYS_vfork];
#[cfg(not(target_arch = "x86_64"))]
pub const OLDER: &[(&str, i64)] = &[];
