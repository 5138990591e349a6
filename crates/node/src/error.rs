//! Errors of the core as JavaScript errors: `code` is the stable code.

use manycore_core::CoreError;

pub type Result<T> = napi::Result<T, String>;

pub fn to_js(error: CoreError) -> napi::Error<String> {
    napi::Error::new(error.code().to_owned(), error.to_string())
}

pub fn refused(what: &str) -> napi::Error<String> {
    napi::Error::new("NATIVE_REFUSED".to_owned(), what.to_owned())
}
