//! Which cores this process really gets: affinity, cgroup quota, and where a thread runs.

pub mod affinity;
pub mod cgroup;
pub mod placement;
pub mod topology;
