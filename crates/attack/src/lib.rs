//! Raw system calls for the tests of hostile code in partitions (test/partitions): JavaScript has none of its own.
//! An addon of Node with these functions:
//!
//! - `call(number, ...arguments)` makes a system call; an argument is an integer, or a `Buffer` for its address. It
//!   returns the result, or the negated number of the error.
//! - `compat(number)` makes one without arguments by the gate of 32-bit programs, as far as there is one.
//! - `bomb()` starts processes which start processes; it returns the negated number of the error if not even the
//!   first can be started, and never otherwise.
//! - `fill()` starts processes that wait for ever, until the system refuses another; it returns how many there are.
//! - `about()` returns the numbers that tests need, as JSON.
//!
//! Not here: the attempts themselves.

// Partitions are of Linux alone; elsewhere the library is empty.
#![cfg(target_os = "linux")]

#[path = "../../enter/src/call_lists.rs"]
mod call_lists;
mod names;
mod node_api;

use call_lists::{KERNEL, NETWORK, OLDER, PLAIN};
use node_api::{Environment, Given, Value};

/// Calls that are allowed with some arguments alone (crates/enter/src/system_calls.rs).
const BY_ARGUMENT: &[i64] = &[libc::SYS_clone, libc::SYS_ioctl, libc::SYS_prctl];
/// Arguments of a system call.
const MOST_ARGUMENTS: usize = 6;

/// Makes the functions of the addon. Node calls it by its name.
///
/// # Safety
/// Node calls it, with an environment and an object that live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn napi_register_module_v1(env: Environment, exports: Value) -> Value {
    let functions: [(&std::ffi::CStr, node_api::Callback); 5] =
        [(c"call", call), (c"compat", compat), (c"bomb", bomb), (c"fill", fill), (c"about", about)];
    for (name, function) in functions {
        // SAFETY: both live, by this function's contract.
        unsafe { node_api::add(env, exports, name, function) };
    }
    exports
}

/// # Safety
/// Node calls it.
unsafe extern "C" fn call(env: Environment, info: node_api::Info) -> Value {
    // SAFETY: those of this call.
    let given = unsafe { node_api::arguments::<{ MOST_ARGUMENTS + 1 }>(env, info) };
    let words = given.map(|each| match each {
        Given::Integer(value) => value,
        Given::Bytes(address) => address as i64,
        Given::Nothing => 0,
    });
    let [number, a, b, c, d, e, f] = words;
    // SAFETY: memory that it names is that of the buffers; a test which lies about their size ends its own partition.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    // SAFETY: the environment of this call.
    unsafe { node_api::integer(env, checked(result)) }
}

/// # Safety
/// Node calls it.
unsafe extern "C" fn compat(env: Environment, info: node_api::Info) -> Value {
    // SAFETY: those of this call.
    let given = unsafe { node_api::arguments::<1>(env, info) };
    let number = if let [Given::Integer(value)] = given { value } else { 0 };
    // SAFETY: the environment of this call.
    unsafe { node_api::integer(env, by_old_gate(number)) }
}

#[cfg(target_arch = "x86_64")]
fn by_old_gate(number: i64) -> i64 {
    let mut result = number;
    // SAFETY: the gate changes `rax` and registers that are named here; the call has no arguments.
    unsafe {
        std::arch::asm!(
            "int 0x80",
            inout("rax") result,
            out("r8") _,
            out("r9") _,
            out("r10") _,
            out("r11") _,
        );
    }
    i64::from(result as i32)
}

/// Other processors have no such gate.
#[cfg(not(target_arch = "x86_64"))]
fn by_old_gate(_number: i64) -> i64 {
    -i64::from(libc::ENOSYS)
}

/// # Safety
/// Node calls it.
unsafe extern "C" fn bomb(env: Environment, _info: node_api::Info) -> Value {
    let mut has_started = false;
    loop {
        let result = start_process();
        has_started |= result >= 0;
        if !has_started {
            // SAFETY: the environment of this call.
            return unsafe { node_api::integer(env, result) };
        }
    }
}

/// # Safety
/// Node calls it.
unsafe extern "C" fn fill(env: Environment, _info: node_api::Info) -> Value {
    let mut count = 0;
    loop {
        match start_process() {
            0 => wait_for_ever(),
            result if result < 0 => break,
            _ => count += 1,
        }
    }
    // SAFETY: the environment of this call.
    unsafe { node_api::integer(env, count) }
}

/// Returns 0 in the new process, and its number or the negated number of the error in this one.
fn start_process() -> i64 {
    // SAFETY: a plain clone of this process; the child makes system calls alone.
    checked(unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) })
}

fn wait_for_ever() -> ! {
    loop {
        // SAFETY: plain call.
        unsafe { libc::pause() };
    }
}

/// # Safety
/// Node calls it.
unsafe extern "C" fn about(env: Environment, _info: node_api::Info) -> Value {
    let lists = [
        ("plain", PLAIN),
        ("older", OLDER),
        ("byArgument", BY_ARGUMENT),
        ("network", NETWORK),
        ("kernel", KERNEL),
    ];
    let lists: Vec<String> =
        lists.iter().map(|(name, list)| format!("\"{name}\":{list:?}")).collect();
    let numbers = names::NUMBERS.iter().chain(names::OLDER);
    let numbers: Vec<String> =
        numbers.map(|(name, number)| format!("\"{name}\":{number}")).collect();
    let text = format!("{{\"numbers\":{{{}}},{}}}", numbers.join(","), lists.join(","));
    // SAFETY: the environment of this call.
    unsafe { node_api::text(env, &text) }
}

/// The result of a system call, or the negated number of its error.
fn checked(result: i64) -> i64 {
    if result != -1 {
        return result;
    }
    -i64::from(std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
}
