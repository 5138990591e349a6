//! The few functions of Node-API (<https://nodejs.org/api/n-api.html>) that the addon needs. Without a package for
//! it: tests build this library while they run.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;

pub type Environment = *mut c_void;
pub type Value = *mut c_void;
pub type Info = *mut c_void;
pub type Callback = unsafe extern "C" fn(Environment, Info) -> Value;

unsafe extern "C" {
    fn napi_create_function(
        env: Environment,
        name: *const c_char,
        length: usize,
        callback: Callback,
        data: *mut c_void,
        result: *mut Value,
    ) -> c_int;
    fn napi_set_named_property(
        env: Environment,
        object: Value,
        name: *const c_char,
        value: Value,
    ) -> c_int;
    fn napi_get_cb_info(
        env: Environment,
        info: Info,
        count: *mut usize,
        values: *mut Value,
        this: *mut Value,
        data: *mut *mut c_void,
    ) -> c_int;
    fn napi_get_value_int64(env: Environment, value: Value, result: *mut i64) -> c_int;
    fn napi_get_buffer_info(
        env: Environment,
        value: Value,
        data: *mut *mut c_void,
        length: *mut usize,
    ) -> c_int;
    fn napi_create_int64(env: Environment, value: i64, result: *mut Value) -> c_int;
    fn napi_create_string_utf8(
        env: Environment,
        text: *const c_char,
        length: usize,
        result: *mut Value,
    ) -> c_int;
}

/// An argument of a call.
#[derive(Clone, Copy)]
pub enum Given {
    Integer(i64),
    /// The address of a buffer.
    Bytes(*mut c_void),
    /// There is none, or a value of another kind.
    Nothing,
}

/// Adds a function to the exports.
///
/// # Safety
/// `env` and `exports` live.
pub unsafe fn add(env: Environment, exports: Value, name: &CStr, function: Callback) {
    let mut made = null_mut();
    // SAFETY: the name is text of this length, and the place is live.
    unsafe {
        napi_create_function(
            env,
            name.as_ptr(),
            name.count_bytes(),
            function,
            null_mut(),
            &mut made,
        )
    };
    // SAFETY: all live.
    unsafe { napi_set_named_property(env, exports, name.as_ptr(), made) };
}

/// The arguments of a call.
///
/// # Safety
/// `env` and `info` are those of the call.
pub unsafe fn arguments<const COUNT: usize>(env: Environment, info: Info) -> [Given; COUNT] {
    let mut values = [null_mut(); COUNT];
    let mut count = COUNT;
    // SAFETY: there are `count` places; more are not asked for.
    unsafe { napi_get_cb_info(env, info, &mut count, values.as_mut_ptr(), null_mut(), null_mut()) };
    // SAFETY: Node fills all places: arguments that are missing are `undefined`.
    values.map(|value| unsafe { given(env, value) })
}

/// # Safety
/// `env` and `value` live.
unsafe fn given(env: Environment, value: Value) -> Given {
    let mut integer = 0;
    // SAFETY: all live.
    if unsafe { napi_get_value_int64(env, value, &mut integer) } == 0 {
        return Given::Integer(integer);
    }
    let (mut bytes, mut length) = (null_mut(), 0);
    // SAFETY: all live; a value that is no buffer is refused.
    if unsafe { napi_get_buffer_info(env, value, &mut bytes, &mut length) } == 0 {
        return Given::Bytes(bytes);
    }
    Given::Nothing
}

/// # Safety
/// `env` lives.
pub unsafe fn integer(env: Environment, value: i64) -> Value {
    let mut made = null_mut();
    // SAFETY: the place is live.
    unsafe { napi_create_int64(env, value, &mut made) };
    made
}

/// # Safety
/// `env` lives.
pub unsafe fn text(env: Environment, text: &str) -> Value {
    let mut made = null_mut();
    // SAFETY: the text has this length, and the place is live.
    unsafe { napi_create_string_utf8(env, text.as_ptr().cast(), text.len(), &mut made) };
    made
}
