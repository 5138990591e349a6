//! Counts the system calls that a program makes through its C library: for `manycore trace` without
//! privileges. The loader puts this library before the C library (`LD_PRELOAD`), so its functions are
//! called first; each calls the real one and counts it.
//!
//! Counts are in a file that `manycore trace` created and named in `MANYCORE_TRACE_COUNTS`: a header,
//! then a row for each thread. A row is written by its own thread alone, so counting is an addition and
//! no atomic step. Not counted: calls that the C library makes by itself (locks of threads, memory of
//! `malloc`, reads of `fopen`), programs without a compatible C library, and programs with more rights
//! than their user. A forked process has a row from its first call on, and another one from the first
//! call of the program that it runs.
//! Not here: reading the file (`src/syscalls/preload.ts`, which has the same numbers).

// The loader and the file are Linux's; elsewhere the library is empty.
#![cfg(target_os = "linux")]

use std::cell::Cell;
use std::ffi::CStr;
use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering::Relaxed};

/// "MCTC", little-endian.
const MAGIC: u32 = 0x4354_434d;
const ROWS: u32 = 2048;
const CALLS: usize = 512;
const HEADER_BYTES: usize = 64;
/// Process, thread, the thread's name at its first call; then count and errors for each call.
const ROW_WORDS: usize = HEAD_WORDS + 2 * CALLS;
const HEAD_WORDS: usize = 2 + NAME_BYTES / 4;
/// Maximum size of a name in the kernel, including the zero at the end.
const NAME_BYTES: usize = 16;
const FILE_BYTES: usize = HEADER_BYTES + ROWS as usize * ROW_WORDS * 4;

/// Arguments of one call: as many registers as the C ABI has for numbers and pointers. Registers beyond
/// a function's own arguments do no harm.
type Real = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize) -> isize;

/// The real function of a name, found at its first call.
struct Next {
    name: &'static CStr,
    found: AtomicPtr<libc::c_void>,
}

impl Next {
    const fn new(name: &'static CStr) -> Next {
        Next { name, found: AtomicPtr::new(null_mut()) }
    }

    fn address(&self) -> *mut libc::c_void {
        // Relaxed: every thread that searches finds the same address.
        let known = self.found.load(Relaxed);
        if !known.is_null() {
            return known;
        }
        // SAFETY: the name is NUL-terminated.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.found.store(found, Relaxed);
        found
    }
}

/// The row in which this thread counts.
#[derive(Clone, Copy)]
enum Row {
    Unknown,
    /// There is no row, or it is being claimed.
    None,
    At(NonNull<u32>),
}

thread_local! {
    static ROW: Cell<Row> = const { Cell::new(Row::Unknown) };
}

/// The mapped file; `None` where there is none.
static FILE: OnceLock<Option<Mapped>> = OnceLock::new();

struct Mapped(NonNull<u32>);
// SAFETY: the mapping stays to the end of the process; threads write into rows of their own.
unsafe impl Send for Mapped {}
// SAFETY: as above; the count of rows is an atomic.
unsafe impl Sync for Mapped {}

fn count(number: libc::c_long, has_failed: bool) {
    let row = ROW.with(|row| match row.get() {
        Row::Unknown => {
            row.set(Row::None); // calls of this thread meanwhile are not counted
            let claimed = claim().map_or(Row::None, Row::At);
            row.set(claimed);
            claimed
        }
        known => known,
    });
    let (Row::At(row), Ok(number)) = (row, usize::try_from(number)) else { return };
    if number >= CALLS {
        return;
    }
    let at = HEAD_WORDS + 2 * number;
    add(row, at, 1);
    if has_failed {
        add(row, at + 1, 1);
    }
}

/// Adds to a word of this thread's row.
fn add(row: NonNull<u32>, at: usize, part: u32) {
    // SAFETY: the row has `ROW_WORDS` words, and `at` is one of them.
    let place = unsafe { row.add(at) };
    // SAFETY: aligned and mapped; `manycore trace` reads it when it may be a step behind.
    let word = unsafe { AtomicU32::from_ptr(place.as_ptr()) };
    // Relaxed, and no atomic addition: this row has no other writer.
    word.store(word.load(Relaxed).wrapping_add(part), Relaxed);
}

/// A row for this thread; `None` when there is no file, or no row is left.
fn claim() -> Option<NonNull<u32>> {
    // SAFETY: plain call.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: it is this thread's own.
    let errno = unsafe { place.read() };
    let row = FILE.get_or_init(map_file).as_ref().and_then(claim_in);
    // SAFETY: as above; the caller is yet to see what its own call left there.
    unsafe { place.write(errno) };
    row
}

fn claim_in(file: &Mapped) -> Option<NonNull<u32>> {
    // SAFETY: the header has 16 words; the second one counts rows.
    let place = unsafe { file.0.add(1) };
    // SAFETY: aligned and mapped, and used as an atomic alone.
    let count = unsafe { AtomicU32::from_ptr(place.as_ptr()) };
    let at = count.fetch_add(1, Relaxed);
    if at >= ROWS {
        return None;
    }
    // SAFETY: the file has `ROWS` rows behind its header.
    let row = unsafe { file.0.add(HEADER_BYTES / 4 + at as usize * ROW_WORDS) };
    // SAFETY: plain call.
    let pid = unsafe { libc::getpid() };
    // SAFETY: plain call.
    let tid = unsafe { libc::gettid() };
    add(row, 0, pid as u32);
    add(row, 1, tid as u32);
    name(row);
    Some(row)
}

/// Writes the thread's name, which is the only name left once the process has ended.
fn name(row: NonNull<u32>) {
    let mut name = [0_u8; NAME_BYTES];
    // SAFETY: the kernel writes as many bytes as the buffer has.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    for (at, part) in name.chunks_exact(4).enumerate() {
        let word = part.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
        add(row, 2 + at, word);
    }
}

fn map_file() -> Option<Mapped> {
    // SAFETY: the name is NUL-terminated; the environment is unchanged this early.
    let path = unsafe { libc::getenv(c"MANYCORE_TRACE_COUNTS".as_ptr()) };
    if path.is_null() {
        return None;
    }
    // SAFETY: a string of the environment.
    let fd = unsafe { libc::open(path, libc::O_RDWR | libc::O_CLOEXEC) };
    if fd < 0 {
        return None;
    }
    // SAFETY: plain call on a descriptor of ours.
    let size = unsafe { libc::lseek(fd, 0, libc::SEEK_END) };
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: no fixed address, so no mapping is touched.
    let start = unsafe { libc::mmap(null_mut(), FILE_BYTES, access, libc::MAP_SHARED, fd, 0) };
    // SAFETY: the descriptor is ours; the mapping stays.
    unsafe { libc::close(fd) };
    if start == libc::MAP_FAILED || size != FILE_BYTES as libc::off_t {
        return None;
    }
    let start = NonNull::new(start.cast::<u32>())?;
    // SAFETY: mapped and aligned to a page.
    let magic = unsafe { start.read() };
    // SAFETY: the handler stays; if it cannot be had, a fork counts into the row of its parent.
    unsafe { pthread_atfork(None, None, Some(leave_row)) };
    (magic == MAGIC).then_some(Mapped(start))
}

unsafe extern "C" {
    fn pthread_atfork(
        before: Option<unsafe extern "C" fn()>,
        in_parent: Option<unsafe extern "C" fn()>,
        in_child: Option<unsafe extern "C" fn()>,
    ) -> libc::c_int;
}

/// Leaves the row in a forked process: it belongs to the parent, which writes there without atomic
/// steps.
unsafe extern "C" fn leave_row() {
    ROW.with(|row| row.set(Row::Unknown));
}

/// Calls that newer architectures have only in another form, named as in the C library.
#[cfg(target_arch = "x86_64")]
use libc as calls;
#[cfg(not(target_arch = "x86_64"))]
mod calls {
    pub use libc::*;
    pub use libc::{
        SYS_dup3 as SYS_dup2, SYS_epoll_pwait as SYS_epoll_wait, SYS_faccessat as SYS_access,
        SYS_fchmodat as SYS_chmod, SYS_linkat as SYS_link, SYS_mkdirat as SYS_mkdir,
        SYS_ppoll as SYS_poll, SYS_readlinkat as SYS_readlink, SYS_renameat as SYS_rename,
        SYS_symlinkat as SYS_symlink, SYS_unlinkat as SYS_rmdir, SYS_unlinkat as SYS_unlink,
    };
}

/// Stands in for functions of the C library that make one call of the kernel: `function = call`, which
/// is the one that the C library of Linux (glibc) makes.
macro_rules! stand_in {
    ($($function:ident = $call:ident),* $(,)?) => {
        $(
            /// Stands in for the function of this name.
            ///
            /// # Safety
            /// As of the real one.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $function(
                a: usize, b: usize, c: usize, d: usize, e: usize, f: usize,
            ) -> isize {
                const NAME: &CStr = match CStr::from_bytes_with_nul(
                    concat!(stringify!($function), "\0").as_bytes(),
                ) {
                    Ok(name) => name,
                    Err(_) => panic!("a name without a zero in it"),
                };
                static NEXT: Next = Next::new(NAME);
                // SAFETY: it is the address of a C function that takes no more than these. It is there:
                // a program that calls it was linked with a C library that has it.
                let real: Real = unsafe { std::mem::transmute(NEXT.address()) };
                // SAFETY: the arguments are the caller's.
                let result = unsafe { real(a, b, c, d, e, f) };
                // Many return an int: only its 32 bits are defined.
                count(calls::$call, result as i32 == -1);
                result
            }
        )*
    };
}

stand_in! {
    read = SYS_read, write = SYS_write, readv = SYS_readv, writev = SYS_writev,
    pread64 = SYS_pread64, pwrite64 = SYS_pwrite64, close = SYS_close,
    open = SYS_openat, open64 = SYS_openat, openat = SYS_openat, openat64 = SYS_openat,
    lseek64 = SYS_lseek, ftruncate64 = SYS_ftruncate, fsync = SYS_fsync, fdatasync = SYS_fdatasync,
    fcntl64 = SYS_fcntl, ioctl = SYS_ioctl, sendfile64 = SYS_sendfile,
    socket = SYS_socket, connect = SYS_connect, bind = SYS_bind, listen = SYS_listen,
    accept = SYS_accept, accept4 = SYS_accept4, shutdown = SYS_shutdown,
    send = SYS_sendto, sendto = SYS_sendto, sendmsg = SYS_sendmsg,
    recv = SYS_recvfrom, recvfrom = SYS_recvfrom, recvmsg = SYS_recvmsg,
    setsockopt = SYS_setsockopt, getsockopt = SYS_getsockopt,
    getsockname = SYS_getsockname, getpeername = SYS_getpeername,
    epoll_ctl = SYS_epoll_ctl, epoll_wait = SYS_epoll_wait, epoll_pwait = SYS_epoll_pwait,
    poll = SYS_poll, eventfd = SYS_eventfd2, pipe2 = SYS_pipe2,
    mmap64 = SYS_mmap, munmap = SYS_munmap, mprotect = SYS_mprotect, madvise = SYS_madvise,
    waitpid = SYS_wait4, kill = SYS_kill, nanosleep = SYS_clock_nanosleep,
    mkdir = SYS_mkdir, rename = SYS_rename, unlink = SYS_unlink, readlink = SYS_readlink,
    access = SYS_access, chmod = SYS_chmod, fchmod = SYS_fchmod, rmdir = SYS_rmdir,
    link = SYS_link, symlink = SYS_symlink, dup = SYS_dup, dup2 = SYS_dup2, dup3 = SYS_dup3,
    preadv64 = SYS_preadv, pwritev64 = SYS_pwritev, socketpair = SYS_socketpair,
    inotify_add_watch = SYS_inotify_add_watch,
}

/// Stands in for syscall(2), by which Node makes calls that its C library may not have (statx, io_uring).
///
/// # Safety
/// As of the real one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall(
    number: libc::c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> libc::c_long {
    type RealCall = unsafe extern "C" fn(
        libc::c_long,
        usize,
        usize,
        usize,
        usize,
        usize,
        usize,
    ) -> libc::c_long;
    static NEXT: Next = Next::new(c"syscall");
    // SAFETY: it is the address of syscall(2), which takes these.
    let real: RealCall = unsafe { std::mem::transmute(NEXT.address()) };
    // SAFETY: the arguments are the caller's.
    let result = unsafe { real(number, a, b, c, d, e, f) };
    count(number, result == -1);
    result
}
