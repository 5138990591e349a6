//! Prints, as one line of JSON, the offers of this kernel to partitions: the version of Landlock, of control groups,
//! and reasons where there is none.

use crate::groups::{Groups, Limits};

pub fn probe() {
    let limits = Limits { memory_bytes: Some(1 << 30), tasks: Some(64), cpu_percent: Some(100) };
    let (version, problem) = match Groups::make(&limits) {
        Ok(groups) => {
            groups.remove();
            (groups.version, String::new())
        }
        Err(problem) => (0, problem),
    };
    let seccomp = if has_seccomp() { "true" } else { "false" };
    println!(
        "{{\"landlock\":{},\"seccomp\":{seccomp},\"groups\":{version},\"groupsProblem\":{}}}",
        landlock_version(),
        json(&problem)
    );
}

/// The version of Landlock's interface; 0: none.
fn landlock_version() -> i64 {
    const ASK_FOR_VERSION: u32 = 1;
    // SAFETY: requests a number alone.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0usize,
            ASK_FOR_VERSION,
        )
    };
    answer.max(0)
}

fn has_seccomp() -> bool {
    const GET_ACTION_AVAIL: libc::c_uint = 2;
    let action: u32 = libc::SECCOMP_RET_ERRNO;
    // SAFETY: `action` is live.
    unsafe { libc::syscall(libc::SYS_seccomp, GET_ACTION_AVAIL, 0, &action) == 0 }
}

fn json(text: &str) -> String {
    let escaped = text.chars().map(|each| match each {
        '"' | '\\' => format!("\\{each}"),
        _ if each.is_control() => " ".to_owned(),
        _ => each.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_a_text_of_json() {
        assert_eq!(json("a \"b\" \\\n"), r#""a \"b\" \\ ""#);
    }
}
