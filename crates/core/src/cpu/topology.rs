//! Counts the cores that manycore may use, with the reason for the number.

use super::{affinity, cgroup};

/// A number of cores and the sentence that explains it.
#[derive(Debug, Clone, PartialEq)]
pub struct Granted {
    pub count: u32,
    pub reason: String,
}

/// Affinity, cut down to the quota: a quota of 1.5 counts as 2 (a second process can use the half),
/// one below 1 as 1.
pub fn granted() -> Granted {
    let allowed = affinity::allowed().map(|cpus| cpus.len()).ok();
    let online = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    decide(allowed, online, cgroup::quota_cores())
}

fn decide(allowed: Option<usize>, online: usize, quota: Option<f64>) -> Granted {
    let (cores, source) = match allowed {
        Some(count) if count > 0 => (count, "the affinity mask allows"),
        _ => (online.max(1), "the system reports"),
    };
    let plural = |count: usize| if count == 1 { "core" } else { "cores" };
    match quota {
        Some(limit) if limit < cores as f64 => Granted {
            count: (limit.ceil() as u32).max(1),
            reason: format!(
                "the cgroup quota is {limit:.2} cores; {source} {cores} {}",
                plural(cores)
            ),
        },
        _ => Granted { count: cores as u32, reason: format!("{source} {cores} {}", plural(cores)) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smaller_of_affinity_and_quota_is_granted() {
        assert_eq!(decide(Some(8), 8, Some(1.5)).count, 2);
        assert_eq!(decide(Some(8), 8, Some(0.25)).count, 1);
        assert_eq!(decide(Some(2), 8, Some(4.0)).count, 2);
        assert_eq!(decide(Some(2), 8, None).count, 2);
        assert_eq!(decide(None, 3, None).count, 3);
    }

    #[test]
    fn at_least_one_core_is_granted_here() {
        let granted = granted();
        assert!(granted.count >= 1);
        assert!(!granted.reason.is_empty());
    }
}
