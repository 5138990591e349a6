//! The cores that the scheduler may use for a thread.

use crate::error::Result;
use crate::sys;

/// Core numbers this thread may run on, ascending.
pub fn allowed() -> Result<Vec<u32>> {
    sys::affinity()
}

/// Restricts the calling thread to `cpus`; fails when none of them is allowed or one does not exist.
pub fn pin(cpus: &[u32]) -> Result<()> {
    sys::set_affinity(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_is_allowed_only_where_it_was_pinned() {
        let run = || {
            let first = allowed().expect("affinity")[0];
            pin(&[first]).expect("an allowed core");
            assert_eq!(allowed().expect("affinity"), [first]);
            assert_eq!(sys::current_cpu(), Some(first));
            assert!(pin(&[5000]).is_err());
        };
        std::thread::spawn(run).join().expect("the pinned thread");
    }
}
