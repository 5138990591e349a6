//! The CPU quota of the control group: version 2 (`cpu.max`) and version 1 (`cpu.cfs_quota_us`).
//! The tightest limit on the way up to the root counts. Parsing is apart from reading, for the tests.

use std::fs;
use std::path::{Path, PathBuf};

/// The share of CPU time granted, in cores (1.5 = one and a half); `None` without a limit.
pub fn quota_cores() -> Option<f64> {
    let membership = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    tightest(&membership, &mounts, &|path| fs::read_to_string(path).ok())
}

type ReadFile<'a> = &'a dyn Fn(&Path) -> Option<String>;

/// The lowest quota of the group and its ancestors, over all hierarchies that this process is in.
fn tightest(membership: &str, mounts: &str, read: ReadFile<'_>) -> Option<f64> {
    let limits = membership.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (id, controllers, group) = (fields.next()?, fields.next()?, fields.next()?);
        if id == "0" && controllers.is_empty() {
            return limit_upwards(&mount_of(mounts, "cgroup2", None)?, group, read, &read_v2);
        }
        if controllers.split(',').any(|c| c == "cpu") {
            let mount = mount_of(mounts, "cgroup", Some("cpu"))?;
            return limit_upwards(&mount, group, read, &read_v1);
        }
        None
    });
    limits.reduce(f64::min)
}

/// A mounted hierarchy: the group that is visible at `point`.
struct Mount {
    root: String,
    point: PathBuf,
}

fn mount_of(mounts: &str, kind: &str, controller: Option<&str>) -> Option<Mount> {
    mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(3);
        let (root, point) = (left.next()?, left.next()?);
        let mut right = right.split(' ');
        let is_kind = right.next()? == kind;
        let options = right.nth(1).unwrap_or("");
        let has_controller = controller.is_none_or(|c| options.split(',').any(|o| o == c));
        let mount = Mount { root: root.to_owned(), point: PathBuf::from(point) };
        (is_kind && has_controller).then_some(mount)
    })
}

fn limit_upwards(
    mount: &Mount,
    group: &str,
    read: ReadFile<'_>,
    read_limit: &dyn Fn(&Path, ReadFile<'_>) -> Option<f64>,
) -> Option<f64> {
    // In a container the mount shows the group itself as its root.
    let below = group.strip_prefix(mount.root.trim_end_matches('/')).unwrap_or("");
    let mut place = mount.point.join(below.trim_start_matches('/'));
    let mut lowest: Option<f64> = None;
    loop {
        if let Some(limit) = read_limit(&place, read) {
            lowest = Some(lowest.map_or(limit, |l| l.min(limit)));
        }
        if place == mount.point || !place.pop() {
            return lowest;
        }
    }
}

fn read_v2(group: &Path, read: ReadFile<'_>) -> Option<f64> {
    let text = read(&group.join("cpu.max"))?;
    let mut fields = text.split_whitespace();
    let quota: f64 = fields.next()?.parse().ok()?; // "max": no limit
    let period: f64 = fields.next()?.parse().ok()?;
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}

fn read_v1(group: &Path, read: ReadFile<'_>) -> Option<f64> {
    let number = |name: &str| read(&group.join(name))?.trim().parse::<f64>().ok();
    let (quota, period) = (number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?);
    (quota > 0.0 && period > 0.0).then_some(quota / period) // -1: no limit
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn quota(membership: &str, mounts: &str, files: &[(&str, &str)]) -> Option<f64> {
        let files: HashMap<PathBuf, String> =
            files.iter().map(|(path, text)| (PathBuf::from(path), (*text).to_owned())).collect();
        tightest(membership, mounts, &|path| files.get(path).cloned())
    }

    const V2: &str = "31 24 0:27 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw";

    #[test]
    fn the_tightest_limit_on_the_way_up_counts() {
        let files = [
            ("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
            ("/sys/fs/cgroup/a/cpu.max", "150000 100000\n"),
        ];
        assert_eq!(quota("0::/a/b\n", V2, &files), Some(1.5));
    }

    #[test]
    fn no_limit_is_none() {
        assert_eq!(quota("0::/a\n", V2, &[("/sys/fs/cgroup/a/cpu.max", "max 100000")]), None);
        assert_eq!(quota("0::/a\n", V2, &[]), None);
        assert_eq!(quota("nonsense", "more nonsense", &[]), None);
    }

    #[test]
    fn version_1_is_read_where_it_is_mounted_also_inside_a_container() {
        let mounts =
            "40 30 0:33 /docker/x /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct";
        let files = [
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
        ];
        assert_eq!(quota("4:cpu,cpuacct:/docker/x\n", mounts, &files), Some(0.5));
    }
}
