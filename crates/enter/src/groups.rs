//! Control groups of a partition: limits of memory, tasks and processor time, in version 2
//! (<https://docs.kernel.org/admin-guide/cgroup-v2.html>) or, where its controllers are elsewhere, in version 1.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const PREFIX: &str = "manycore-";
/// Microseconds in which a group may use its share of a core.
const PERIOD_US: u64 = 100_000;
/// Limits of swap, which a kernel that does not count it has not: there is none, or `swapaccount=0`.
const SWAP: [&str; 2] = ["memory.swap.max", "memory.memsw.limit_in_bytes"];
/// Tries to remove a group whose processes are about to be gone, and the pause between them.
const REMOVALS: u32 = 2000;
const PAUSE: Duration = Duration::from_millis(1);

#[derive(Debug, Default)]
pub struct Limits {
    pub memory_bytes: Option<u64>,
    /// Processes and threads.
    pub tasks: Option<u64>,
    /// Percent of one core.
    pub cpu_percent: Option<u64>,
}

/// Reasons for which the kernel has ended or refused something in a group.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Causes {
    pub memory: bool,
    pub tasks: bool,
}

/// The groups of one partition: one in version 2, up to three in version 1.
#[derive(Debug)]
pub struct Groups {
    pub version: u8,
    folders: Vec<PathBuf>,
}

impl Groups {
    /// Makes the groups of this process's partition, below its own. `Err`: why there can be none.
    pub fn make(limits: &Limits) -> Result<Groups, String> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").map_err(|e| e.to_string())?;
        let own = fs::read_to_string("/proc/self/cgroup").map_err(|e| e.to_string())?;
        let name = format!("{PREFIX}{}", std::process::id());
        match own_folder(&mounts, &own, "") {
            Some(folder) if controls(&folder, "memory") => make_unified(&folder, &name, limits),
            _ => make_separate(&mounts, &own, &name, limits),
        }
    }

    /// The files to which a process writes `0` to join.
    pub fn doors(&self) -> Vec<PathBuf> {
        self.folders.iter().map(|folder| folder.join("cgroup.procs")).collect()
    }

    pub fn causes(&self) -> Causes {
        let count = |file: &str, key: &str| {
            let texts = self.folders.iter().filter_map(|at| fs::read_to_string(at.join(file)).ok());
            texts.filter_map(|text| number_of(&text, key)).any(|number| number > 0)
        };
        let events = if self.version == 2 { "memory.events" } else { "memory.oom_control" };
        Causes { memory: count(events, "oom_kill"), tasks: count("pids.events", "max") }
    }

    /// Kills what is in the groups.
    pub fn kill(&self) {
        for door in self.doors() {
            let pids = fs::read_to_string(door).unwrap_or_default();
            for pid in pids.lines().filter_map(|line| line.parse().ok()) {
                // SAFETY: plain call; a number that is gone meanwhile answers ESRCH.
                unsafe { libc::kill(pid, libc::SIGKILL) };
            }
        }
    }

    /// Removes the groups; what is left in them is killed.
    pub fn remove(&self) {
        for folder in &self.folders {
            for _ in 0..REMOVALS {
                if fs::remove_dir(folder).is_ok() || !folder.exists() {
                    break;
                }
                self.kill();
                std::thread::sleep(PAUSE);
            }
        }
    }
}

fn make_unified(own: &Path, name: &str, limits: &Limits) -> Result<Groups, String> {
    let mut problem = String::new();
    // A group with processes of its own passes no controllers on: then one above it may.
    for above in own.ancestors().take_while(|at| controls(at, "memory")) {
        let groups = Groups { version: 2, folders: vec![above.join(name)] };
        match make_in(above, name, &unified(limits)) {
            Ok(()) => return Ok(groups),
            Err(error) => problem = error,
        }
        groups.folders.iter().for_each(|folder| drop(fs::remove_dir(folder)));
    }
    Err(problem)
}

fn make_separate(mounts: &str, own: &str, name: &str, limits: &Limits) -> Result<Groups, String> {
    let mut groups = Groups { version: 1, folders: Vec::new() };
    for (controller, settings) in separate(limits) {
        let made = own_folder(mounts, own, controller)
            .ok_or(format!("no control groups with the controller {controller} are mounted"))
            .and_then(|at| make_in(&at, name, &settings).map(|()| at.join(name)));
        match made {
            Ok(folder) => groups.folders.push(folder),
            Err(error) => {
                groups.remove();
                return Err(error);
            }
        }
    }
    Ok(groups)
}

fn make_in(above: &Path, name: &str, settings: &[(&str, String)]) -> Result<(), String> {
    sweep(above);
    let folder = above.join(name);
    let failed = |what: &Path, error| format!("{}: {error}", what.display());
    fs::create_dir(&folder).map_err(|error| failed(&folder, error))?;
    for (name, value) in settings {
        let file = folder.join(name);
        if SWAP.contains(name) && !file.exists() {
            continue;
        }
        if let Err(error) = fs::write(&file, value) {
            let _ = fs::remove_dir(&folder);
            return Err(failed(&file, error));
        }
    }
    Ok(())
}

/// Removes groups whose makers were killed.
fn sweep(above: &Path) {
    for entry in fs::read_dir(above).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let Some(pid) = maker.and_then(|pid| pid.parse::<u32>().ok()) else { continue };
        if !Path::new("/proc").join(pid.to_string()).exists() {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn unified(limits: &Limits) -> Vec<(&'static str, String)> {
    let mut settings = Vec::new();
    if let Some(bytes) = limits.memory_bytes {
        settings.push(("memory.max", bytes.to_string()));
        settings.push(("memory.swap.max", "0".to_owned()));
    }
    if let Some(tasks) = limits.tasks {
        settings.push(("pids.max", tasks.to_string()));
    }
    if let Some(percent) = limits.cpu_percent {
        settings.push(("cpu.max", format!("{} {PERIOD_US}", percent * PERIOD_US / 100)));
    }
    settings
}

fn separate(limits: &Limits) -> Vec<(&'static str, Vec<(&'static str, String)>)> {
    let mut settings = Vec::new();
    if let Some(bytes) = limits.memory_bytes {
        // The second limits memory and swap together, and may not be below the first.
        let names = ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"];
        settings.push(("memory", names.map(|name| (name, bytes.to_string())).to_vec()));
    }
    if let Some(tasks) = limits.tasks {
        settings.push(("pids", vec![("pids.max", tasks.to_string())]));
    }
    if let Some(percent) = limits.cpu_percent {
        let quota = percent * PERIOD_US / 100;
        settings.push((
            "cpu",
            vec![
                ("cpu.cfs_period_us", PERIOD_US.to_string()),
                ("cpu.cfs_quota_us", quota.to_string()),
            ],
        ));
    }
    settings
}

fn controls(folder: &Path, controller: &str) -> bool {
    let text = fs::read_to_string(folder.join("cgroup.controllers")).unwrap_or_default();
    text.split_whitespace().any(|each| each == controller)
}

/// The folder of this process's group with that controller; ``: that of version 2. `mounts`, `own`: the contents of
/// `mountinfo` and `cgroup` in /proc/self.
fn own_folder(mounts: &str, own: &str, controller: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        controllers.split(',').any(|each| each == controller).then_some(path)
    })?;
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, at) = (fields.next()?, fields.next()?);
        let mut kind = kind.split(' ');
        let (name, options) = (kind.next()?, kind.nth(1)?);
        let is_wanted = match controller {
            "" => name == "cgroup2",
            _ => name == "cgroup" && options.split(',').any(|each| each == controller),
        };
        let below = Path::new(path).strip_prefix(root).ok()?;
        is_wanted.then(|| Path::new(at).join(below))
    })
}

/// The number behind a key at the beginning of a line.
fn number_of(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
30 23 0:26 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro,mode=755
31 30 0:27 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw
33 30 0:29 /jobs /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct
34 30 0:30 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory";
    const OWN: &str = "5:memory:/user\n4:cpu,cpuacct:/jobs/7\n0::/init.scope";

    #[test]
    fn the_own_group_is_found_below_its_mount() {
        let folder = |controller| own_folder(MOUNTS, OWN, controller);
        assert_eq!(folder(""), Some("/sys/fs/cgroup/unified/init.scope".into()));
        assert_eq!(folder("memory"), Some("/sys/fs/cgroup/memory/user".into()));
        assert_eq!(folder("cpu"), Some("/sys/fs/cgroup/cpu,cpuacct/7".into()));
        assert_eq!(folder("pids"), None);
    }

    #[test]
    fn memory_has_a_limit_with_swap_wherever_it_is_counted() {
        let limits = Limits { memory_bytes: Some(1 << 27), ..Limits::default() };
        let all = [("unified", unified(&limits)), ("separate", separate(&limits).remove(0).1)];
        let names = [["memory.max", SWAP[0]], ["memory.limit_in_bytes", SWAP[1]]];
        for ((kind, settings), names) in all.iter().zip(names) {
            assert_eq!(settings.iter().map(|(name, _)| *name).collect::<Vec<_>>(), names);
            let above = std::env::temp_dir().join(format!("enter-{kind}-{}", std::process::id()));
            fs::create_dir(&above).expect("a folder");
            let made = make_in(&above, "group", settings);
            let files = names.map(|name| above.join("group").join(name).exists());
            fs::remove_dir_all(&above).expect("removed");
            assert_eq!((made, files), (Ok(()), [true, false]), "{kind}");
        }
        assert_eq!(separate(&limits)[0].1[1].1, "134217728");
    }

    #[test]
    fn numbers_stand_behind_their_keys() {
        let text = "oom 3\noom_kill_disable 1\noom_kill 2\n";
        assert_eq!(number_of(text, "oom_kill"), Some(2));
        assert_eq!(number_of(text, "max"), None);
    }
}
