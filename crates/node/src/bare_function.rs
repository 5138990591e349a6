//! A function for JavaScript that costs little to call: at each call of a method, Node finds the object behind
//! `this` and checks its type.

use crate::error::Result;
use napi::bindgen_prelude::{Env, Unknown};
use napi::{check_status, sys};
use std::ffi::{CString, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

/// Makes a function of one number that returns what `work` does, or throws its error. Without a number it gets 0.
pub fn bare_function<F>(env: &Env, work: F) -> napi::Result<Unknown<'_>>
where
    F: Fn(u32) -> Result<u32> + 'static,
{
    let data: *mut c_void = Box::into_raw(Box::new(work)).cast();
    let mut made = null_mut();
    // SAFETY: on the thread of `env`, with a live out-parameter. `call` finds its `F` behind `data`.
    let status = unsafe {
        sys::napi_create_function(env.raw(), null_mut(), 0, Some(call::<F>), data, &mut made)
    };
    check_status!(status)?;
    // SAFETY: as above; `data` is used until the function is collected.
    let status = unsafe {
        sys::napi_add_finalizer(env.raw(), made, data, Some(end::<F>), null_mut(), null_mut())
    };
    check_status!(status)?;
    // SAFETY: a live value of this environment.
    Ok(unsafe { Unknown::from_raw_unchecked(env.raw(), made) })
}

/// # Safety
/// V8 calls it as the function that `bare_function` made with an `F`.
unsafe extern "C" fn call<F>(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value
where
    F: Fn(u32) -> Result<u32>,
{
    let (mut count, mut argument, mut data) = (1, null_mut(), null_mut());
    // SAFETY: the arguments of a callback, and live out-parameters; that of `this` may be null.
    unsafe {
        sys::napi_get_cb_info(env, info, &mut count, &mut argument, null_mut(), &mut data);
    }
    let mut number = 0;
    // SAFETY: a live value of this environment; one that is no number leaves the 0.
    unsafe { sys::napi_get_value_uint32(env, argument, &mut number) };
    // SAFETY: the box of `bare_function`, which lives as long as the function.
    let work = unsafe { &*data.cast::<F>() };
    let (code, reason) = match catch_unwind(AssertUnwindSafe(|| work(number))) {
        Ok(Ok(result)) => {
            let mut value = null_mut();
            // SAFETY: on the thread of `env`, with a live out-parameter.
            unsafe { sys::napi_create_uint32(env, result, &mut value) };
            return value;
        }
        Ok(Err(error)) => (error.status, error.reason),
        Err(_) => ("GenericFailure".to_owned(), "the native library panicked".to_owned()),
    };
    let text = |text: String| CString::new(text).unwrap_or_default();
    let (code, reason) = (text(code), text(reason));
    // SAFETY: on the thread of `env`, with texts that live until it returns.
    unsafe { sys::napi_throw_error(env, code.as_ptr(), reason.as_ptr()) };
    null_mut()
}

/// # Safety
/// `data` is the box of `bare_function`, which nothing uses any more.
unsafe extern "C" fn end<F>(_env: sys::napi_env, data: *mut c_void, _hint: *mut c_void) {
    // SAFETY: the contract of this function.
    drop(unsafe { Box::from_raw(data.cast::<F>()) });
}
