//! Cores that this process really gets: affinity, cgroup quota, and the core on which a thread runs.

pub mod affinity;
pub mod cgroup;
pub mod placement;
pub mod topology;
