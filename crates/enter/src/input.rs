//! The input of a program in a partition: a pipe that the process outside fills. The input of the starter itself may
//! be a terminal or a socket, to which the program could write.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd};
use std::process::ChildStdin;
use std::thread;

/// Copies stdin until its end, or until the program has no input any more. The thread ends with this process.
pub fn pass_on(mut program: ChildStdin) {
    thread::spawn(move || {
        // SAFETY: nobody closes stdin; a missing one is an error of `read`.
        let mut input = ManuallyDrop::new(unsafe { File::from_raw_fd(libc::STDIN_FILENO) });
        let mut bytes = [0; 16 << 10];
        loop {
            match input.read(&mut bytes) {
                Ok(count) if count > 0 && program.write_all(&bytes[..count]).is_ok() => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => wait_for(&input),
                _ => break,
            }
        }
    });
}

/// Waits for more: another program may have set the file to answer at once.
fn wait_for(input: &File) {
    let mut wanted = libc::pollfd { fd: input.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: `wanted` is live.
    unsafe { libc::poll(&mut wanted, 1, -1) };
}
