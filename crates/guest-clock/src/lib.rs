//! The clocks of a program on a guest kernel (User-mode Linux), which has no vDSO: each reading is a system call,
//! and each system call of a guest is two stops of a traced process. The loader puts this library before the C
//! library (`LD_PRELOAD`), so that readings come from the time stamp counter of the processor.
//!
//! The rate of the counter is measured against the kernel's clock at the first reading, and again in growing
//! intervals up to a minute (`Scale::next`). The monotonic clock never goes back: what it returned last is kept.
//! Where the counter stops or changes its rate, all readings are those of the kernel.
//! Not here: clocks of processor time, which the kernel alone has.

// Other processors have no such counter; there the library is empty.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod clock;
mod scale;

use clock::Clock;

static CLOCK: Clock = Clock::new();

/// Writes the time into a C structure of two words; 0: done.
///
/// # Safety
/// `place` is null, or valid for a write.
unsafe fn put<T>(place: *mut T, time: T) -> libc::c_int {
    if !place.is_null() {
        // SAFETY: valid by this function's contract.
        unsafe { place.write(time) };
    }
    0
}

/// Stands in for clock_gettime(2).
///
/// # Safety
/// The same as for the real one.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn clock_gettime(
    id: libc::clockid_t,
    place: *mut libc::timespec,
) -> libc::c_int {
    match id {
        libc::CLOCK_MONOTONIC
        | libc::CLOCK_MONOTONIC_RAW
        | libc::CLOCK_MONOTONIC_COARSE
        | libc::CLOCK_BOOTTIME => {
            // SAFETY: the caller's promise.
            unsafe { put(place, clock::timespec(CLOCK.monotonic())) }
        }
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE => {
            // SAFETY: the caller's promise.
            unsafe { put(place, clock::timespec(CLOCK.realtime())) }
        }
        // SAFETY: the caller's promise.
        _ => unsafe { libc::syscall(libc::SYS_clock_gettime, id, place) as libc::c_int },
    }
}

/// Stands in for gettimeofday(2). A time zone is that of the C library: none.
///
/// # Safety
/// The same as for the real one.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn gettimeofday(
    place: *mut libc::timeval,
    zone: *mut [libc::c_int; 2],
) -> libc::c_int {
    let now = clock::timespec(CLOCK.realtime());
    // SAFETY: the caller's promise.
    unsafe { put(zone, [0, 0]) };
    // SAFETY: the caller's promise.
    unsafe { put(place, libc::timeval { tv_sec: now.tv_sec, tv_usec: now.tv_nsec / 1000 }) }
}

/// Stands in for time(2).
///
/// # Safety
/// The same as for the real one.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn time(place: *mut libc::time_t) -> libc::time_t {
    let now = clock::timespec(CLOCK.realtime()).tv_sec;
    // SAFETY: the caller's promise.
    unsafe { put(place, now) };
    now
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_has_the_time_of_the_kernel() {
        let kernel = clock::kernel_ns(libc::CLOCK_REALTIME);
        let mut value = libc::timeval { tv_sec: 0, tv_usec: 0 };
        // SAFETY: `value` is live.
        assert_eq!(unsafe { gettimeofday(&mut value, std::ptr::null_mut()) }, 0);
        // SAFETY: null is allowed.
        let seconds = unsafe { time(std::ptr::null_mut()) };
        let us = value.tv_sec as u64 * 1_000_000 + value.tv_usec as u64;
        let late = us - kernel / 1000;
        assert!(late < 60_000_000, "{late} µs later");
        assert!(seconds >= value.tv_sec, "{seconds} {}", value.tv_sec);
    }

    #[test]
    fn clocks_of_processor_time_are_those_of_the_kernel() {
        let mut now = libc::timespec { tv_sec: -1, tv_nsec: -1 };
        // SAFETY: `now` is live.
        let result = unsafe { clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now) };
        assert_eq!((result, now.tv_sec), (0, 0));
        // SAFETY: `now` is live.
        assert_eq!(unsafe { clock_gettime(12345, &mut now) }, -1);
    }
}
