//! Starts programs without a copy of this process. The standard library uses posix_spawn(3) where no
//! further option requires fork. In glibc that is vfork(2), so a start costs the same however much
//! memory this process has. Node forks.

use crate::error::{Result, refused};
use manycore_core::sys::{self as core_sys, Reaped};
use napi::bindgen_prelude::{AsyncTask, Task};
use napi::{Env, Error, Status};
use napi_derive::napi;
use std::os::fd::{AsFd, IntoRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Program to start.
#[napi(object)]
pub struct ProgramOptions {
    pub path: String,
    pub args: Vec<String>,
    /// The whole environment.
    pub env: Vec<Vec<String>>,
    pub folder: String,
    /// Size of the pipes.
    pub pipe_bytes: i32,
}

/// A running program, in a process group of its own. The descriptors are the caller's to close.
#[napi(object)]
pub struct StartedProgram {
    pub pid: i32,
    pub stdin: i32,
    pub stdout: i32,
}

pub struct Start {
    options: ProgramOptions,
}

impl Task for Start {
    type Output = StartedProgram;
    type JsValue = StartedProgram;

    fn compute(&mut self) -> napi::Result<StartedProgram> {
        let options = &self.options;
        let pairs = options.env.iter().filter_map(|pair| Some((pair.first()?, pair.get(1)?)));
        let spawned = Command::new(&options.path)
            .args(&options.args)
            .env_clear()
            .envs(pairs)
            .current_dir(&options.folder)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let failed = |error: std::io::Error| Error::new(Status::GenericFailure, error.to_string());
        let mut child = spawned.map_err(failed)?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (stdin, stdout) = pipes.ok_or_else(|| Error::from_reason("there are no pipes"))?;
        let (stdin, stdout) = (OwnedFd::from(stdin), OwnedFd::from(stdout));
        for pipe in [&stdin, &stdout] {
            // A small pipe works as well: each user has a limit for all pipes together.
            let _ = core_sys::set_pipe_size(pipe.as_fd(), options.pipe_bytes);
        }
        Ok(StartedProgram {
            pid: child.id() as i32,
            stdin: stdin.into_raw_fd(),
            stdout: stdout.into_raw_fd(),
        })
    }

    fn resolve(&mut self, _env: Env, output: StartedProgram) -> napi::Result<StartedProgram> {
        Ok(output)
    }
}

/// Starts a program, in a thread of libuv's pool; its standard error is ours.
#[napi]
pub fn start_program(options: ProgramOptions) -> AsyncTask<Start> {
    AsyncTask::new(Start { options })
}

/// Status of a program that has ended, as of wait(2); `None` while it runs. Fails for a process that is
/// no child of this one, or was reaped before.
#[napi]
pub fn reap_program(pid: i32) -> Result<Option<i32>> {
    match core_sys::reap(pid) {
        Reaped::Running => Ok(None),
        Reaped::Ended(status) => Ok(Some(status)),
        Reaped::Unknown => Err(refused("no such child")),
    }
}
