//! gVisor (<https://gvisor.dev>) as the kernel of a partition: `gvisor` writes the description of the container and
//! becomes `runsc`; `inherit` is the program that runsc starts in it, and becomes the program of the partition.
//!
//! The root of the container is a folder that bubblewrap has made. Old versions of runsc pass descriptors 0 to 2 and
//! no others: with `--channel` the segment travels as 0, the bell as 1, and all output of the program goes to 2.

use crate::arguments::Arguments;
use std::fmt::Write;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Places in the partition around the container (src/worker/partition/gvisor.ts).
const ROOT: &str = "/.manycore/root";
const RUNSC: &str = "/.manycore/runsc";
/// Place of this program in the container.
const ENTER: &str = "/.manycore/enter";
const BUNDLE: &str = "/run/bundle";
const STATE: &str = "/run/state";
const TMP: &str = "/tmp";
/// The owner of the files of the starter, in the namespaces of bubblewrap; it has no capabilities.
const USER: u32 = 0;

/// Becomes runsc; returns only when that fails.
pub fn start(given: &Arguments) -> Result<i32, String> {
    fs::create_dir_all(BUNDLE).map_err(|error| format!("{BUNDLE}: {error}"))?;
    let config = format!("{BUNDLE}/config.json");
    fs::write(&config, container(given)?).map_err(|error| format!("{config}: {error}"))?;
    let mut command = Command::new(RUNSC);
    command.args(["--rootless", "--root", STATE, "--network=none", "--platform=ptrace"]);
    command.args(["--ignore-cgroups", "run", "--bundle", BUNDLE, "partition"]);
    command.env_clear();
    crate::system_calls::restrict_gvisor()?;
    let error = command.exec();
    Err(format!("{RUNSC} cannot be started: {error}"))
}

/// Moves a channel to descriptors 3 and 4, sets the limit of files, and becomes the program.
pub fn inherit(given: &Arguments) -> Result<i32, String> {
    if let Some(bytes) = given.number("file-bytes")? {
        crate::enter::limit(libc::RLIMIT_FSIZE, bytes, "the size of files")?;
    }
    let (program, args) = given.program.split_first().ok_or("there is no program")?;
    let mut command = Command::new(program);
    command.args(args);
    if given.has("channel") {
        let null = fs::File::open("/dev/null").map_err(|error| format!("/dev/null: {error}"))?;
        for (from, to) in [(0, 3), (1, 4), (2, 1)] {
            move_descriptor(from, to)?;
        }
        command.stdin(null);
    }
    let error = command.exec();
    Err(format!("{program} cannot be started: {error}"))
}

fn move_descriptor(from: i32, to: i32) -> Result<(), String> {
    // SAFETY: `from` is open, and this process needs no other one at `to`.
    if unsafe { libc::dup2(from, to) } < 0 {
        return Err(format!("descriptor {from}: {}", std::io::Error::last_os_error()));
    }
    Ok(())
}

/// The description of the container, as JSON
/// (<https://github.com/opencontainers/runtime-spec/blob/main/config.md>).
fn container(given: &Arguments) -> Result<String, String> {
    let file_bytes: u64 = given.number("file-bytes")?.ok_or("there is no limit of files")?;
    let limit = file_bytes.to_string();
    let own = [ENTER, "inherit", "--file-bytes", &limit];
    let channel = given.has("channel").then_some("--channel");
    let program = given.program.iter().map(String::as_str);
    let args = list(own.into_iter().chain(channel).chain(["--"]).chain(program));
    let variables: Vec<String> =
        std::env::vars().map(|(name, value)| format!("{name}={value}")).collect();
    let env = list(variables.iter().map(String::as_str));
    let mut mounts = vec![
        mount("/proc", "proc", "proc", &[]),
        mount(TMP, "tmpfs", "tmpfs", &["mode=1777", &format!("size={file_bytes}")]),
    ];
    let hidden = |path: &&str| Path::new(path).starts_with(TMP) && *path != TMP;
    for path in given.all("read").filter(hidden) {
        mounts.push(mount(path, "bind", &format!("{ROOT}{path}"), &["rbind", "ro"]));
    }
    for path in given.all("write") {
        mounts.push(mount(path, "bind", &format!("{ROOT}{path}"), &["rbind", "rw"]));
    }
    let namespaces =
        ["pid", "network", "ipc", "uts", "mount"].map(|kind| format!("{{\"type\":\"{kind}\"}}"));
    Ok(format!(
        "{{\"ociVersion\":\"1.0.0\",\"process\":{{\"terminal\":false,\"user\":{{\"uid\":{USER},\"gid\":{USER}}},\
         \"args\":{args},\"env\":{env},\"cwd\":\"{TMP}\",\"capabilities\":{{}},\"noNewPrivileges\":true}},\
         \"root\":{{\"path\":\"{ROOT}\",\"readonly\":true}},\"hostname\":\"partition\",\
         \"mounts\":[{}],\"linux\":{{\"namespaces\":[{}]}}}}",
        mounts.join(","),
        namespaces.join(",")
    ))
}

fn mount(at: &str, kind: &str, source: &str, options: &[&str]) -> String {
    let options = list(options.iter().copied());
    let (at, source) = (text(at), text(source));
    format!(
        "{{\"destination\":{at},\"type\":\"{kind}\",\"source\":{source},\"options\":{options}}}"
    )
}

fn list<'given>(texts: impl Iterator<Item = &'given str>) -> String {
    format!("[{}]", texts.map(text).collect::<Vec<_>>().join(","))
}

/// A text of JSON.
fn text(given: &str) -> String {
    let mut made = String::from('"');
    for each in given.chars() {
        match each {
            '"' | '\\' => made.extend(['\\', each]),
            _ if each.is_control() => write!(made, "\\u{:04x}", u32::from(each)).unwrap_or(()),
            _ => made.push(each),
        }
    }
    made.push('"');
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_one_of_json() {
        assert_eq!(text("a \"b\" \\ \n\u{7f} ü"), r#""a \"b\" \\ \u000a\u007f ü""#);
    }

    #[test]
    fn the_folders_in_tmp_and_those_to_write_are_mounted() {
        let words = ["--file-bytes", "9", "--read", "/a", "--read", "/tmp/b", "--write", "/c"];
        let words = words
            .iter()
            .chain(&["--channel"])
            .chain(&["--", "node", "x"])
            .map(|&word| word.to_owned());
        let made = container(&Arguments::parse(words).expect("well formed")).expect("made");
        assert!(made.contains(
            r#""args":["/.manycore/enter","inherit","--file-bytes","9","--channel","--","node","x"]"#
        ));
        assert!(
            made.contains(
                r#"{"destination":"/tmp/b","type":"bind","source":"/.manycore/root/tmp/b""#
            )
        );
        assert!(made.contains(r#"{"destination":"/c","type":"bind","source":"/.manycore/root/c""#));
        assert!(!made.contains(r#""destination":"/a""#));
    }
}
