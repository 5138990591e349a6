//! The first process on a guest kernel: it makes the folders of the system, gives the program its channel at the
//! same descriptors as outside (3 and 4), starts it without rights, and passes its output and its exit code out.
//! It ends the guest with the program.
//!
//! Not here: the command line of the kernel (kernel.rs). All that can fail here ends the guest with exit code 125.
//! Long (over 400 lines), because the steps of one process follow each other here.

use crate::arguments::Arguments;
use crate::kernel::{OUTER_TMP, SPEC, TMP};
use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::mpsc::{self, Sender};
use std::thread;

/// The user of the program, as outside.
const USER: u32 = 65534;
const SEGMENT_DEVICE: &str = "/dev/mmapper";
const BELL_DEVICE: &str = "/dev/ttyS0";
const ERROR_CONSOLE: &str = "/dev/tty0";
const OUTPUT_CONSOLE: &str = "/dev/tty1";
/// The input of a program without a channel (src/worker/partition/guest-input.ts).
const INPUT_CONSOLE: &str = "/dev/tty2";
const SEGMENT: RawFd = 3;
const BELL: RawFd = 4;
/// User-mode Linux ends with the number in this file.
const EXIT_CODE: &str = "/proc/exitcode";
/// The messages of the kernel that are printed: those below this level.
const PRINTED_LEVEL: &str = "/proc/sys/kernel/printk";
const REFUSED: i32 = 125;
/// The last line of a guest whose kernel has ended something for its memory (src/worker/partition/ends.ts).
const OUT_OF_MEMORY: &str = "the guest is out of memory";

/// Runs the program of the guest, and ends the guest. Never returns in a guest.
pub fn run() -> Result<i32, String> {
    if std::process::id() != 1 {
        return Err("guest is the command of a guest kernel alone".to_owned());
    }
    let code = serve().unwrap_or_else(|text| {
        report(&text);
        REFUSED
    });
    let _ = fs::write(EXIT_CODE, format!("{code}\n"));
    let _ = fs::write(PRINTED_LEVEL, "0"); // else the kernel writes that it halts
    // SAFETY: plain call.
    unsafe { libc::reboot(libc::RB_POWER_OFF) };
    Err("the guest does not end".to_owned())
}

fn serve() -> Result<i32, String> {
    let given = read_spec()?;
    mount("proc", "/proc", "")?;
    // The kernel has mounted the devices, or its mount has failed: then this one has the reason.
    if !fs::exists(ERROR_CONSOLE).unwrap_or(false) {
        mount("devtmpfs", "/dev", "")?;
    }
    let file_bytes = given.number("file-bytes")?.ok_or("there is no limit of files")?;
    mount_tmp(&given, file_bytes)?;
    crate::enter::limit(libc::RLIMIT_FSIZE, file_bytes, "the size of files")?;
    let links = [("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")];
    for (name, target) in links {
        let link =
            std::os::unix::fs::symlink(format!("/proc/self/{target}"), format!("/dev/{name}"));
        link.map_err(|error| format!("/dev/{name}: {error}"))?;
    }
    start_and_wait(&given)
}

fn read_spec() -> Result<Arguments, String> {
    let text = fs::read_to_string(SPEC).map_err(|error| format!("{SPEC}: {error}"))?;
    let words = text.strip_suffix('\0').ok_or(format!("{SPEC} is not whole"))?;
    Arguments::parse(words.split('\0').map(str::to_owned))
}

/// Mounts the guest's own /tmp, and shows in it what the sandbox shows in its.
fn mount_tmp(given: &Arguments, size_bytes: u64) -> Result<(), String> {
    bind(TMP, OUTER_TMP)?;
    mount("tmpfs", TMP, &format!("mode=1777,size={size_bytes}"))?;
    for path in given.all("keep") {
        let source =
            Path::new(OUTER_TMP).join(path.trim_start_matches(TMP).trim_start_matches('/'));
        make_place(&source, Path::new(path)).map_err(|error| format!("{path}: {error}"))?;
        bind(&source.to_string_lossy(), path)?;
    }
    let outer = CString::new(OUTER_TMP).map_err(|error| error.to_string())?;
    // SAFETY: `outer` is live. What is bound stays.
    if unsafe { libc::umount2(outer.as_ptr(), libc::MNT_DETACH) } != 0 {
        return Err(last_error(OUTER_TMP));
    }
    Ok(())
}

/// Makes an empty file or folder, as the source is one, unless there is one.
fn make_place(source: &Path, place: &Path) -> std::io::Result<()> {
    if source.is_dir() {
        return fs::create_dir_all(place);
    }
    fs::create_dir_all(place.parent().unwrap_or(place))?;
    OpenOptions::new().create(true).append(true).open(place).map(drop).or_else(|error| {
        // It is there, in a folder that cannot be written.
        if place.exists() { Ok(()) } else { Err(error) }
    })
}

fn bind(source: &str, place: &str) -> Result<(), String> {
    let text = |from: &str| CString::new(from).map_err(|error| error.to_string());
    let (source, at) = (text(source)?, text(place)?);
    let none = std::ptr::null();
    // SAFETY: both texts are live; a bind needs no kind and no options.
    let result =
        unsafe { libc::mount(source.as_ptr(), at.as_ptr(), none, libc::MS_BIND, none.cast()) };
    if result != 0 { Err(last_error(place)) } else { Ok(()) }
}

fn mount(kind: &str, at: &str, options: &str) -> Result<(), String> {
    let text = |from: &str| CString::new(from).map_err(|error| error.to_string());
    let (kind, place, options) = (text(kind)?, text(at)?, text(options)?);
    let flags = libc::MS_NOSUID;
    // SAFETY: all texts are live.
    let result = unsafe {
        libc::mount(kind.as_ptr(), place.as_ptr(), kind.as_ptr(), flags, options.as_ptr().cast())
    };
    if result != 0 { Err(last_error(at)) } else { Ok(()) }
}

fn start_and_wait(given: &Arguments) -> Result<i32, String> {
    let output = open_raw(OUTPUT_CONSOLE)?;
    let errors = open_raw(ERROR_CONSOLE)?;
    let channel = if given.has("channel") { Some(open_channel()?) } else { None };
    let (input, input_line) = open_input(channel.is_some())?;
    let (output_end, output_start) = pipe()?;
    let (errors_end, errors_start) = pipe()?;
    let mut descriptors = vec![(input, 0), (output_start, 1), (errors_start, 2)];
    if let Some((segment, bell)) = channel {
        descriptors.extend([(segment, SEGMENT), (bell, BELL)]);
    }
    let child = start(given, &descriptors)?;
    drop(descriptors);
    keep_awake();
    if let Some((line, writer)) = input_line {
        thread::spawn(move || pump_input(line, writer)); // it ends with the guest
    }
    let (pumping, pumped) = mpsc::channel();
    pump(output_end.into(), output, pumping.clone());
    pump(errors_end.into(), errors, pumping);
    let code = wait_for_end(child)?;
    // SAFETY: ends all but this process; without one it answers ESRCH.
    unsafe { libc::kill(-1, libc::SIGKILL) };
    // Not `join`: User-mode Linux may end a wait with ENOSYS, at which the C library aborts.
    while pumped.recv().is_ok() {}
    if was_out_of_memory() {
        report(OUT_OF_MEMORY);
    }
    Ok(code)
}

/// Returns the input of the program, and for one without a channel the line that it comes over, with its way on.
fn open_input(has_channel: bool) -> Result<(OwnedFd, Option<(File, File)>), String> {
    if has_channel {
        let none = File::open("/dev/null").map_err(|error| format!("/dev/null: {error}"))?;
        return Ok((above_channel(none.into())?, None));
    }
    let (input, writer) = pipe()?;
    let mut line = open_raw(INPUT_CONSOLE)?;
    request(&mut line)?;
    Ok((input, Some((line, File::from(writer)))))
}

/// Starts the program with these descriptors at their places. Not `Command`: it reports errors over a socket, and
/// a guest has none.
fn start(given: &Arguments, descriptors: &[(OwnedFd, RawFd)]) -> Result<libc::pid_t, String> {
    let texts = |words: Vec<String>| -> Result<Vec<CString>, String> {
        words.into_iter().map(|word| CString::new(word).map_err(|e| e.to_string())).collect()
    };
    let clock = given.last("clock").map(|path| format!("LD_PRELOAD={path}"));
    let variables = given.all("env").map(str::to_owned).chain(clock);
    let (args, env) = (texts(given.program.clone())?, texts(variables.collect())?);
    let pointers = |from: &[CString]| -> Vec<*const libc::c_char> {
        from.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (arg_pointers, env_pointers) = (pointers(&args), pointers(&env));
    // SAFETY: this process has one thread.
    let child = unsafe { libc::fork() };
    if child < 0 {
        return Err(last_error("fork"));
    }
    if child > 0 {
        return Ok(child);
    }
    let prepared = descriptors
        .iter()
        .try_for_each(|(fd, at)| place(fd.as_raw_fd(), *at))
        .and_then(|()| std::env::set_current_dir(TMP))
        .and_then(|()| drop_rights());
    if prepared.is_ok() {
        // SAFETY: plain call; the runtime of this program ignores the signal.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        // SAFETY: `args` and `env` are live, and their lists end with null.
        unsafe { libc::execve(arg_pointers[0], arg_pointers.as_ptr(), env_pointers.as_ptr()) };
    }
    let error = prepared.err().unwrap_or_else(std::io::Error::last_os_error);
    let line = format!("manycore-enter: {} cannot be started: {error}\n", given.program[0]);
    let _ = std::io::stderr().write_all(line.as_bytes());
    std::process::exit(REFUSED)
}

/// Ends each sleep of a kernel that is not ours by a timer: it may sleep on although an interrupt has come
/// (crates/enter/guest/idle.patch).
fn keep_awake() {
    const SLEEP_MS: i32 = 10;
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    if !release.trim_end().ends_with("-manycore") {
        thread::spawn(|| {
            loop {
                // SAFETY: it reads no descriptor. Not `sleep`, which panics at ENOSYS.
                unsafe { libc::poll(std::ptr::null_mut(), 0, SLEEP_MS) };
            }
        });
    }
}

/// Waits for the program and all that it leaves behind; returns its exit code, as a shell has it.
fn wait_for_end(child: libc::pid_t) -> Result<i32, String> {
    loop {
        let mut status = 0;
        // SAFETY: `status` is live.
        let ended = unsafe { libc::waitpid(-1, &mut status, 0) };
        if ended == child {
            let status = ExitStatus::from_raw(status);
            return Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)));
        }
        if ended < 0 && std::io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return Err(last_error("wait"));
        }
    }
}

/// The end to read from, and the one to write to.
fn pipe() -> Result<(OwnedFd, OwnedFd), String> {
    let (reader, writer) = std::io::pipe().map_err(|error| format!("pipe: {error}"))?;
    Ok((above_channel(reader.into())?, above_channel(writer.into())?))
}

/// The device of the segment, and that of the bell.
fn open_channel() -> Result<(OwnedFd, OwnedFd), String> {
    let segment = OpenOptions::new().read(true).write(true).open(SEGMENT_DEVICE);
    let segment = segment.map_err(|error| format!("{SEGMENT_DEVICE}: {error}"))?;
    Ok((above_channel(segment.into())?, above_channel(open_raw(BELL_DEVICE)?.into())?))
}

/// A descriptor that `place` cannot overwrite.
fn above_channel(fd: OwnedFd) -> Result<OwnedFd, String> {
    // SAFETY: `fd` is open.
    let moved = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 16) };
    if moved < 0 {
        return Err(last_error("the channel"));
    }
    // SAFETY: `moved` is new.
    Ok(unsafe { OwnedFd::from_raw_fd(moved) })
}

/// Opens a terminal that passes all bytes as they are.
fn open_raw(path: &str) -> Result<File, String> {
    use std::os::unix::fs::OpenOptionsExt;
    let options = libc::O_NOCTTY | libc::O_NONBLOCK;
    let opened = OpenOptions::new().read(true).write(true).custom_flags(options).open(path);
    let file = opened.map_err(|error| format!("{path}: {error}"))?;
    // SAFETY: plain numbers.
    let mut state: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: `state` is live.
    if unsafe { libc::tcgetattr(file.as_raw_fd(), &mut state) } != 0 {
        return Err(last_error(path));
    }
    // SAFETY: `state` is live.
    unsafe { libc::cfmakeraw(&mut state) };
    // SAFETY: `state` is live.
    if unsafe { libc::tcsetattr(file.as_raw_fd(), libc::TCSANOW, &state) } != 0 {
        return Err(last_error(path));
    }
    Ok(file)
}

fn place(fd: RawFd, at: RawFd) -> std::io::Result<()> {
    // SAFETY: `fd` is open, and nobody else in this process needs `at`.
    if unsafe { libc::dup2(fd, at) } < 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(())
}

/// The rights of the program: those of a user that owns nothing.
fn drop_rights() -> std::io::Result<()> {
    let done = |result: i32| match result {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    };
    // SAFETY: plain call.
    done(unsafe { libc::setgroups(0, std::ptr::null()) })?;
    // SAFETY: plain call.
    done(unsafe { libc::setgid(USER) })?;
    // SAFETY: plain call.
    done(unsafe { libc::setuid(USER) })?;
    // SAFETY: plain call.
    done(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })
}

/// Copies all that comes; the thread ends, and drops `pumping`, when all writers have closed their end.
fn pump(mut from: File, mut to: File, pumping: Sender<()>) {
    thread::spawn(move || {
        let _pumping = pumping;
        let mut bytes = [0; 16 << 10];
        while let Ok(count) = from.read(&mut bytes) {
            if count == 0 || write_all(&mut to, &bytes[..count]).is_err() {
                break;
            }
        }
    });
}

/// Passes the input of the program on, the first part of which is requested. Each part is a line of hexadecimal digits;
/// `.` is the end.
/// The line of the kernel loses what comes before it is open, and more than it has memory for.
fn pump_input(mut from: File, mut to: File) {
    let mut bytes = [0; 4 << 10];
    let mut first = None;
    let mut is_over = false;
    while !is_over {
        let count = match from.read(&mut bytes) {
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                wait_for(&from, libc::POLLIN);
                continue;
            }
            Err(_) => return,
        };
        is_over = count == 0;
        let mut is_read = false;
        let mut ready = Vec::with_capacity(count / 2);
        for byte in &bytes[..count] {
            match (digit(*byte), first.take()) {
                (Some(low), Some(high)) => ready.push(high << 4 | low),
                (Some(high), None) => first = Some(high),
                (None, _) if *byte == b'\n' => is_read = true,
                (None, _) => is_over = true,
            }
        }
        if to.write_all(&ready).is_err() || (is_read && request(&mut from).is_err()) {
            return;
        }
    }
}

/// Requests the next part of the input. The first request is also the sign that the guest has started.
fn request(line: &mut File) -> Result<(), String> {
    write_all(line, b"+").map_err(|error| format!("{INPUT_CONSOLE}: {error}"))
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| digit.try_into().ok())
}

/// Writes to a terminal that does not block.
fn write_all(to: &mut File, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                wait_for(to, libc::POLLOUT)
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn wait_for(file: &File, events: libc::c_short) {
    let mut wanted = libc::pollfd { fd: file.as_raw_fd(), events, revents: 0 };
    // SAFETY: `wanted` is live.
    unsafe { libc::poll(&mut wanted, 1, 100) };
}

/// True: the guest kernel has killed a process for its memory.
fn was_out_of_memory() -> bool {
    let counts = fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let kills = counts.lines().find_map(|line| line.strip_prefix("oom_kill "));
    kills.is_some_and(|count| count != "0")
}

/// Writes one line to the errors of the partition, as `main` does.
fn report(text: &str) {
    let line = format!("manycore-enter: {text}\n");
    let _ = match open_raw(ERROR_CONSOLE) {
        Ok(mut to) => write_all(&mut to, line.as_bytes()),
        Err(_) => std::io::stderr().write_all(line.as_bytes()),
    };
}

fn last_error(what: &str) -> String {
    format!("{what}: {}", std::io::Error::last_os_error())
}
