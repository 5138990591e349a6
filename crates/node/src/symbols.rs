//! Finds functions of the runtime that loaded us, by name: Node exports them, other runtimes may not.

use std::ffi::{CStr, c_void};

/// # Safety
/// `T` is the type of a function pointer with the signature that is documented for `name`.
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
