//! Starts a program in a partition. Six commands:
//!
//! - `run` makes the control groups, starts bubblewrap in them, and removes them at its end;
//! - `enter` runs inside of the namespaces: it sets limits, files and system calls, and becomes the program, or a
//!   guest kernel that runs it;
//! - `guest` is the first process on a guest kernel, and starts the program there;
//! - `gvisor` becomes gVisor with a container, and `inherit` runs in that and becomes the program;
//! - `probe` prints what this kernel offers, as JSON.
//!
//! A step that fails is the end, with one line on stderr and the exit code 125: a partition is never weaker than
//! asked for. Not here: which files a partition gets (src/worker/partition/).

#[cfg(target_os = "linux")]
mod arguments;
#[cfg(target_os = "linux")]
mod call_lists;
#[cfg(target_os = "linux")]
mod enter;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod groups;
#[cfg(target_os = "linux")]
mod guest;
#[cfg(target_os = "linux")]
mod gvisor;
#[cfg(target_os = "linux")]
mod input;
#[cfg(target_os = "linux")]
mod kernel;
#[cfg(target_os = "linux")]
mod probe;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod system_calls;

#[cfg(target_os = "linux")]
fn main() {
    let mut words = std::env::args().skip(1);
    let command = words.next().unwrap_or_default();
    let outcome = match command.as_str() {
        "run" => arguments::Arguments::parse(words).and_then(|given| run::run(&given)),
        "enter" => arguments::Arguments::parse(words).and_then(|given| enter::enter(&given)),
        "gvisor" => arguments::Arguments::parse(words).and_then(|given| gvisor::start(&given)),
        "inherit" => arguments::Arguments::parse(words).and_then(|given| gvisor::inherit(&given)),
        "guest" => guest::run(),
        "probe" => {
            probe::probe();
            Ok(0)
        }
        _ => Err(format!("there is no command {command:?}: only manycore starts this program")),
    };
    match outcome {
        Ok(code) => std::process::exit(code),
        Err(text) => {
            eprintln!("manycore-enter: {text}");
            std::process::exit(125);
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("manycore-enter: partitions need Linux");
    std::process::exit(125);
}
