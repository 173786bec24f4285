//! Named places where a process can be made to die, so that tests can show that dying there loses
//! nothing.
//!
//! A service declares its names once ([`register!`]) and calls [`hit`] before and after each commit
//! and each effect. Nothing happens unless the environment arms one:
//!
//! - `PLATFORM_FAILPOINT=<name>` or `<name>:<nth>`: at the nth time (first by default) that the
//!   place is reached, a line is appended to the log and the process kills itself with `SIGKILL`;
//!   no destructor runs, nothing is flushed.
//! - `PLATFORM_FAILPOINT=trace`: nothing dies; each name is logged the first time it is reached.
//! - `PLATFORM_FAILPOINT_LOG=<file>`: where the lines `<what> <name> <nth> <pid>` go.
//!
//! Invariants: switched off, a hit is one atomic load. A name that is reached but not declared is a
//! programming error, caught in debug builds once its service has declared its list.

mod armed;
mod declared;
mod source;

use core::sync::atomic::{AtomicU8, Ordering};

pub use declared::{declare, declared};
pub use source::names_in_source;

/// Arms a failpoint.
pub const ARM: &str = "PLATFORM_FAILPOINT";
/// Names the file that hits are written to.
pub const LOG: &str = "PLATFORM_FAILPOINT_LOG";

const UNKNOWN: u8 = 0;
const OFF: u8 = 1;
const ON: u8 = 2;
static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Declares a service's failpoints: a constant list, for [`declare`] at the service's start and for
/// the test that iterates it. A name given twice, or one that is not made of lower-case words
/// joined by dots, fails the build.
///
/// ```
/// failpoints::register! {
///     /// The failpoints of the notebook.
///     pub const NOTEBOOK = ["notebook.write.before_commit", "notebook.write.after_commit"];
/// }
/// failpoints::declare(NOTEBOOK);
/// failpoints::hit("notebook.write.after_commit");
/// ```
#[macro_export]
macro_rules! register {
    ($(#[$meta:meta])* $visibility:vis const $list:ident = [$($name:literal),* $(,)?];) => {
        $(#[$meta])*
        $visibility const $list: &[&str] = {
            const NAMES: &[&str] = &[$($name),*];
            $crate::check_names(NAMES);
            NAMES
        };
    };
}

/// The place `name` is reached. See the crate's page for what may happen.
pub fn hit(name: &'static str) {
    match STATE.load(Ordering::Relaxed) {
        OFF if cfg!(not(debug_assertions)) => {}
        OFF => declared::check(name),
        ON => {
            declared::check(name);
            armed::reached(name);
        }
        _ => {
            STATE.store(if armed::is_armed() { ON } else { OFF }, Ordering::Relaxed);
            hit(name);
        }
    }
}

/// Refuses a bad list at build time. Used by [`register!`].
#[doc(hidden)]
pub const fn check_names(names: &[&str]) {
    let mut index = 0;
    while index < names.len() {
        assert!(
            is_name(names[index].as_bytes()),
            "a failpoint is named like service.step.after_commit"
        );
        let mut other = index + 1;
        while other < names.len() {
            assert!(
                !same(names[index].as_bytes(), names[other].as_bytes()),
                "a failpoint is declared twice"
            );
            other += 1;
        }
        index += 1;
    }
}

const fn is_name(name: &[u8]) -> bool {
    let mut dots = 0;
    let mut index = 0;
    let mut after_dot = true;
    while index < name.len() {
        match name[index] {
            b'.' if !after_dot => {
                dots += 1;
                after_dot = true;
            }
            b'a'..=b'z' => after_dot = false,
            b'0'..=b'9' | b'_' | b'-' if !after_dot => {}
            _ => return false,
        }
        index += 1;
    }
    dots > 0 && !after_dot
}

const fn same(one: &[u8], two: &[u8]) -> bool {
    if one.len() != two.len() {
        return false;
    }
    let mut index = 0;
    while index < one.len() {
        if one[index] != two[index] {
            return false;
        }
        index += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::is_name;

    #[test]
    fn names_are_lower_case_words_joined_by_dots() {
        for good in ["a.b", "execution.finish.after_commit", "runner.spool-1.sent"] {
            assert!(is_name(good.as_bytes()), "{good}");
        }
        for bad in ["", "a", "a.", ".a", "a..b", "A.b", "a.b c", "a.1", "a:1"] {
            assert!(!is_name(bad.as_bytes()), "{bad}");
        }
    }
}
