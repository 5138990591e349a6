//! The process that stands outside of a partition for its life: it makes the control groups, starts the program in
//! them, ends it when the starter ends or sends SIGTERM, and removes the groups. On descriptor `--status` it
//! writes why the kernel has ended something: `memory`, `tasks`. With `--input` it passes its own input on.

use crate::arguments::Arguments;
use crate::groups::{Groups, Limits};
use crate::input;
use std::ffi::CString;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};

/// Returns the exit code of the program; 128 and the number of the signal that has ended it.
pub fn run(given: &Arguments) -> Result<i32, String> {
    die_with(given.number("parent")?)?;
    keep_from_program(given.number("keep")?.unwrap_or(2))?;
    let status: Option<RawFd> = given.number("status")?;
    let limits = Limits {
        memory_bytes: given.number("memory")?,
        tasks: given.number("tasks")?,
        cpu_percent: given.number("cpu")?,
    };
    let groups = if given.has("no-cgroup") { None } else { Some(Groups::make(&limits)?) };
    let outcome = start(given, groups.as_ref()).and_then(|mut child| {
        let program_input = child.stdin.take();
        let own = [status, program_input.as_ref().map(AsRawFd::as_raw_fd)];
        let closed = close_inherited(own.into_iter().flatten().collect());
        program_input.into_iter().for_each(input::pass_on);
        let waited = closed.and_then(|()| wait(&mut child, groups.as_ref()));
        if waited.is_err() {
            let _ = child.kill(); // it may have ended meanwhile
        }
        waited
    });
    if let Some(groups) = groups {
        let causes = groups.causes();
        groups.remove();
        let words = [(causes.memory, "memory\n"), (causes.tasks, "tasks\n")];
        let text: String =
            words.iter().filter(|(is_so, _)| *is_so).map(|(_, word)| *word).collect();
        if let Some(fd) = status {
            // SAFETY: the starter has passed this descriptor for this.
            let mut file = unsafe { File::from_raw_fd(fd) };
            let _ = file.write_all(text.as_bytes()); // the starter may be gone
        }
    }
    outcome
}

/// Requests SIGTERM for the end of the starter, and blocks all signals that `wait` takes.
fn die_with(parent: Option<i32>) -> Result<(), String> {
    let signals = waited_signals();
    // SAFETY: `signals` is live, and no other thread exists.
    unsafe { libc::sigprocmask(libc::SIG_BLOCK, &signals, std::ptr::null_mut()) };
    // SAFETY: plain call.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM, 0, 0, 0) };
    // SAFETY: plain call.
    let now = unsafe { libc::getppid() };
    match parent {
        Some(parent) if parent != now => Err("the starter has ended".to_owned()),
        _ => Ok(()),
    }
}

/// Closes all descriptors above `last` where the program begins: the starter may have left some open for others.
fn keep_from_program(last: libc::c_uint) -> Result<(), String> {
    const CLOEXEC: libc::c_uint = 4;
    close_range(last + 1, libc::c_uint::MAX, CLOEXEC)
}

/// Closes the descriptors from `first` to `last`, or applies `flags` to them.
fn close_range(first: libc::c_uint, last: libc::c_uint, flags: libc::c_uint) -> Result<(), String> {
    // SAFETY: numbers alone; no object of this process owns one that is closed now.
    if unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) } != 0 {
        let error = std::io::Error::last_os_error();
        return Err(format!("descriptors cannot be closed (Linux 5.11): {error}"));
    }
    Ok(())
}

fn waited_signals() -> libc::sigset_t {
    // SAFETY: a set is plain numbers.
    let mut signals = unsafe { std::mem::zeroed() };
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGCHLD] {
        // SAFETY: `signals` is live.
        unsafe { libc::sigaddset(&mut signals, signal) };
    }
    signals
}

fn start(given: &Arguments, groups: Option<&Groups>) -> Result<Child, String> {
    let (program, args) = given.program.split_first().ok_or("there is no program")?;
    let doors = groups.map(Groups::doors).unwrap_or_default();
    let doors: Result<Vec<_>, _> =
        doors.iter().map(|door| CString::new(door.as_os_str().as_bytes())).collect();
    let doors = doors.map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(args);
    if given.has("input") {
        command.stdin(Stdio::piped());
    }
    let prepare = move || {
        doors.iter().try_for_each(join)?;
        // SAFETY: a set is plain numbers.
        let none = unsafe { std::mem::zeroed() };
        // SAFETY: `none` is live; the child of a fork has one thread.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut()) };
        Ok(())
    };
    // SAFETY: `prepare` makes system calls alone, and allocates nothing.
    unsafe { command.pre_exec(prepare) };
    command.spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("{program} is not there"),
        _ => format!("{program} cannot be started: {error}"),
    })
}

/// Moves this process into a group.
fn join(door: &CString) -> std::io::Result<()> {
    // SAFETY: `door` is a live text.
    let fd = unsafe { libc::open(door.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) };
    if fd < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: `fd` is open, and nobody else has it.
    let mut file = unsafe { File::from_raw_fd(fd) };
    file.write_all(b"0")
}

/// Closes what the program alone is to have, so all but `own`: its channel ends when it ends.
fn close_inherited(mut own: Vec<RawFd>) -> Result<(), String> {
    own.sort_unstable();
    let mut first = 3;
    for fd in own.into_iter().map(|fd| fd as libc::c_uint).filter(|fd| *fd > 2) {
        if fd > first {
            close_range(first, fd - 1, 0)?;
        }
        first = fd + 1;
    }
    close_range(first, libc::c_uint::MAX, 0)
}

fn wait(child: &mut Child, groups: Option<&Groups>) -> Result<i32, String> {
    let signals = waited_signals();
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)));
        }
        // SAFETY: `signals` is live, and no information is requested.
        let signal = unsafe { libc::sigwaitinfo(&signals, std::ptr::null_mut()) };
        if signal == libc::SIGTERM || signal == libc::SIGHUP {
            let _ = child.kill(); // it may have ended meanwhile
            groups.iter().for_each(|groups| groups.kill());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_that_stay_open_are_an_error() {
        let error = close_range(9, 8, 0).expect_err("the kernel refuses this");
        assert!(error.starts_with("descriptors cannot be closed"), "{error}");
    }
}
