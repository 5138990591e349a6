//! The last steps before the program of a partition begins, inside of its namespaces. Their order matters: each step
//! takes a right that the ones before it need.

use crate::arguments::Arguments;
use crate::{files, kernel, system_calls};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Becomes the program; returns only when that fails.
pub fn enter(given: &Arguments) -> Result<i32, String> {
    // SAFETY: plain call. Nothing that is started from here on gains a right by its file.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
        return Err(failed("no_new_privs"));
    }
    limit(libc::RLIMIT_CORE, 0, "core dumps")?;
    if let Some(bytes) = given.number("file-bytes")? {
        limit(libc::RLIMIT_FSIZE, bytes, "the size of files")?;
    }
    let mut program = match given.last("kernel") {
        Some(path) => kernel::command(given, path)?,
        None => program(given)?,
    };
    if !given.has("no-landlock") {
        files::restrict(given.all("read"), given.all("write"))?;
    }
    if !given.has("no-seccomp") {
        system_calls::restrict(system_calls::Wanted {
            may_fork: given.has("fork"),
            has_network: given.has("network"),
            is_kernel: given.last("kernel").is_some(),
        })?;
    }
    let error = program.exec();
    Err(format!("{} cannot be started: {error}", program.get_program().display()))
}

fn program(given: &Arguments) -> Result<Command, String> {
    let (program, args) = given.program.split_first().ok_or("there is no program")?;
    let mut command = Command::new(program);
    command.args(args);
    Ok(command)
}

/// Sets a limit of this process and of all that it starts.
pub fn limit(resource: libc::__rlimit_resource_t, bytes: u64, what: &str) -> Result<(), String> {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: `limit` is live.
    if unsafe { libc::setrlimit(resource, &limit) } != 0 {
        return Err(failed(what));
    }
    Ok(())
}

fn failed(what: &str) -> String {
    format!("the kernel refuses a limit of {what}: {}", std::io::Error::last_os_error())
}
