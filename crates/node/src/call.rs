//! Calls JavaScript from a callback of the event loop.

use napi::sys;
use std::ptr::null_mut;

/// Calls the function behind `function` with ticks and microtasks after it. False: it threw (then
/// `uncaughtException` was raised), or JavaScript may not run any more.
pub(crate) fn call_into_js(env: sys::napi_env, function: sys::napi_ref) -> bool {
    let mut scope = null_mut();
    // SAFETY: on the thread of `env`; closed below.
    if unsafe { sys::napi_open_handle_scope(env, &mut scope) } != sys::Status::napi_ok {
        return false;
    }
    let mut callee = null_mut();
    // SAFETY: the reference lives as long as the environment.
    unsafe { sys::napi_get_reference_value(env, function, &mut callee) };
    // Not the global object: node:domain mistakes a property `domain` of the receiver for its own, and
    // the REPL has such a global.
    let receiver = callee;
    let mut result = null_mut();
    // SAFETY: `callee` is live in the open scope; there are no arguments.
    let status = unsafe {
        sys::napi_make_callback(env, null_mut(), receiver, callee, 0, null_mut(), &mut result)
    };
    if status == sys::Status::napi_pending_exception {
        let mut exception = null_mut();
        // SAFETY: a live out-parameter.
        unsafe { sys::napi_get_and_clear_last_exception(env, &mut exception) };
        // SAFETY: `exception` is live in the open scope.
        unsafe { sys::napi_fatal_exception(env, exception) };
    }
    // SAFETY: opened above.
    unsafe { sys::napi_close_handle_scope(env, scope) };
    status == sys::Status::napi_ok
}
