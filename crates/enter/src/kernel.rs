//! A guest kernel (User-mode Linux, <https://docs.kernel.org/virt/uml/user_mode_linux_howto_v2.html>) as the
//! program of a partition. Its root is what the partition shows; its memory is a file in the partition's /tmp.
//!
//! The command line of a kernel is short and has no quotes for every character: the program, its arguments and its
//! environment are in a file (`SPEC`), which the first process of the guest reads (guest.rs).

use crate::arguments::Arguments;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// The program of the guest, as `--name value` and `--`, each word followed by a zero.
pub const SPEC: &str = "/tmp/.manycore-guest";
/// Places of this program, and of the library of clocks, in a partition with a guest: the kernel and the loader
/// split paths with spaces.
pub const INIT: &str = "/.manycore/enter";
pub const CLOCK: &str = "/.manycore/guest-clock.so";
/// The folder of the sandbox with the memory of the guest, and below it what may be shown; the guest has its own.
pub const TMP: &str = "/tmp";
/// An empty folder, through which the guest reaches the sandbox's.
pub const OUTER_TMP: &str = "/.manycore/tmp";
/// Descriptors of the channel: the segment, and the socket that is its bell.
const SEGMENT: u32 = 3;
const BELL: u32 = 4;
/// Descriptor of the input of a program without a channel (src/worker/partition/guest-input.ts).
const INPUT: u32 = 3;

/// The command that starts the kernel, for the program of `given`. It writes the file for the guest.
pub fn command(given: &Arguments, kernel: &str) -> Result<Command, String> {
    let memory_mb: u32 = given.number("memory-mb")?.ok_or("--kernel has no --memory-mb")?;
    keep_addresses()?;
    if let Some(core) = given.number("core")? {
        stay_on(core)?;
    }
    fs::write(SPEC, spec(given)).map_err(|error| format!("{SPEC}: {error}"))?;
    let mut command = Command::new(kernel);
    command.args(parameters(memory_mb, given.has("channel")));
    command.env_clear().env("TMPDIR", TMP).env("HOME", TMP);
    Ok(command)
}

/// Turns the random places of memory off: the kernel makes its memory larger by the distance between its end and
/// the heap, which would be more than the partition has.
fn keep_addresses() -> Result<(), String> {
    // SAFETY: plain call.
    if unsafe { libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong) } < 0 {
        return Err(format!("fixed addresses: {}", std::io::Error::last_os_error()));
    }
    Ok(())
}

/// Keeps this process and all that it starts on one core.
fn stay_on(core: usize) -> Result<(), String> {
    if core >= libc::CPU_SETSIZE as usize {
        return Err(format!("there is no core {core}"));
    }
    // SAFETY: all-zero bytes are an empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `core` is below the number of bits of the set.
    unsafe { libc::CPU_SET(core, &mut set) };
    // SAFETY: `set` is live, with its size.
    if unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) } != 0 {
        return Err(format!("core {core}: {}", std::io::Error::last_os_error()));
    }
    Ok(())
}

fn parameters(memory_mb: u32, has_channel: bool) -> Vec<String> {
    // `quiet` is for the part outside of the guest. At level 1 a panic is printed, and nothing else.
    let fixed = "root=none rootfstype=hostfs rootflags=/ rw quiet loglevel=1 con=null ssl=null";
    let mut words: Vec<String> = fixed.split(' ').map(str::to_owned).collect();
    words.push(format!("init={INIT}"));
    words.push(format!("mem={memory_mb}M"));
    // The first console is that of the kernel.
    words.push("con0=null,fd:2".to_owned());
    words.push("con1=null,fd:1".to_owned());
    if has_channel {
        words.push(format!("iomem=mmapper,/proc/self/fd/{SEGMENT}"));
        words.push(format!("ssl0=fd:{BELL},fd:{BELL}"));
    } else {
        words.push(format!("con2=fd:{INPUT},fd:{INPUT}"));
    }
    words.push("guest".to_owned()); // the argument of `init`
    words
}

fn spec(given: &Arguments) -> Vec<u8> {
    let mut words: Vec<Vec<u8>> = Vec::new();
    if given.has("channel") {
        words.push(b"--channel".to_vec());
    }
    if Path::new(CLOCK).exists() {
        words.extend([b"--clock".to_vec(), CLOCK.into()]);
    }
    if let Some(bytes) = given.last("guest-file-bytes") {
        words.extend([b"--file-bytes".to_vec(), bytes.into()]);
    }
    let shown = given.all("read").chain(given.all("write"));
    for path in shown.filter(|path| Path::new(path).starts_with(TMP) && *path != TMP) {
        words.extend([b"--keep".to_vec(), path.into()]);
    }
    for (name, value) in env::vars_os() {
        let pair = [name.as_bytes(), b"=", value.as_bytes()].concat();
        words.extend([b"--env".to_vec(), pair]);
    }
    words.push(b"--".to_vec());
    words.extend(given.program.iter().map(|word| word.clone().into_bytes()));
    words.into_iter().flat_map(|word| [word, vec![0]].concat()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_the_kernel_fits() {
        let line = parameters(u32::MAX, true).join(" ");
        assert!(line.len() < 1000, "{line}");
        assert!(line.ends_with(" guest"), "{line}");
    }

    #[test]
    fn the_file_for_the_guest_has_the_program_as_it_is() {
        let limit = ["--guest-file-bytes", "96", "--read", "/a"];
        let words = limit.iter().chain(&["--", "node", "-e", "a \"b\"\n", ""]);
        let given = Arguments::parse(words.map(|&word| word.to_owned()));
        let spec = String::from_utf8(spec(&given.expect("well formed"))).expect("text");
        assert!(spec.starts_with("--file-bytes\x0096\0"), "{spec:?}");
        assert!(spec.ends_with("\0--\0node\0-e\0a \"b\"\n\0\0"), "{spec:?}");
        assert!(!spec.contains("--read"), "{spec:?}");
    }

    #[test]
    fn what_the_folder_of_the_guest_would_hide_is_kept() {
        let words = ["--read", "/a", "--write", "/tmp", "--write", "/tmp/b", "--read", "/tmpc"];
        let words = words.iter().chain(&["--", "node"]).map(|&word| word.to_owned());
        let spec = String::from_utf8(spec(&Arguments::parse(words).expect("well formed")));
        assert!(spec.expect("text").starts_with("--keep\0/tmp/b\0--env"));
    }
}
