//! Finds functions and data of the runtime that loaded us, by name: Node exports them, other runtimes may not.

use manycore_core::sys::check_refusal;
use napi::sys;
use std::ffi::{CStr, c_void};
use std::ops::RangeInclusive;

/// The oldest and the newest line of Node with which uses of V8's own functions and layout were tested.
const TESTED: RangeInclusive<u32> = 20..=26;

/// Refuses a version of Node with which nothing was tested.
pub fn check_tested(env: sys::napi_env) -> Result<(), &'static str> {
    let is_tested = TESTED.contains(&node_major(env)) && check_refusal("node-version").is_ok();
    is_tested.then_some(()).ok_or("not tested with this version of Node")
}

fn node_major(env: sys::napi_env) -> u32 {
    let mut version = std::ptr::null();
    // SAFETY: on the thread of `env`, with a live out-parameter.
    let status = unsafe { sys::napi_get_node_version(env, &mut version) };
    if status != sys::Status::napi_ok || version.is_null() {
        return 0;
    }
    // SAFETY: Node returns a static value.
    unsafe { (*version).major }
}

/// # Safety
/// `T` is a pointer to a function with the signature, or to data of the type, that is documented for `name`.
pub unsafe fn find<T>(name: &CStr) -> Option<T> {
    // SAFETY: a NUL-terminated name; RTLD_DEFAULT searches what is loaded.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if address.is_null() {
        return None;
    }
    assert_eq!(size_of::<T>(), size_of::<*mut c_void>());
    // SAFETY: same size (asserted), and the caller vouches for the signature.
    Some(unsafe { std::mem::transmute_copy(&address) })
}
