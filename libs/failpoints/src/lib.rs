//! Named places where a process can be made to die, for kill tests.
//!
//! Every service declares its points in one list ([`register!`]) and calls [`hit`] before and after
//! each commit and each effect. Unless the environment names a point, a hit costs one atomic load.
//! With `PLATFORM_FAILPOINT=NAME` (or `NAME:3` for the third hit) the process writes a line to the
//! file named by `PLATFORM_FAILPOINT_LOG` and kills itself with SIGKILL: no destructor, no flush, no
//! goodbye. With `PLATFORM_FAILPOINT_TRACE=FILE` every point that is hit is written there once, so
//! that a test can find points that a story never reaches.
//!
//! Invariants: a name that is not in the process's list is a programming error and refused in debug
//! builds; nothing here is reachable without those variables.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Names the point at which to die: `NAME` or `NAME:NTH`.
pub const POINT: &str = "PLATFORM_FAILPOINT";
/// The file that gets a line before the process dies.
pub const LOG: &str = "PLATFORM_FAILPOINT_LOG";
/// The file that gets the name of each point when it is hit first.
pub const TRACE: &str = "PLATFORM_FAILPOINT_TRACE";

/// Declares a list of points: `register!(POINTS: "a.before", "a.after");`.
#[macro_export]
macro_rules! register {
    ($(#[$meta:meta])* $list:ident: $($name:literal),+ $(,)?) => {
        $(#[$meta])*
        pub const $list: &[&str] = &[$($name),+];
    };
}

struct Armed {
    point: Option<(String, u32)>,
    log: Option<PathBuf>,
    trace: Option<PathBuf>,
    hits: AtomicU32,
    traced: Mutex<BTreeSet<&'static str>>,
}

const UNKNOWN: u8 = 0;
const OFF: u8 = 1;
const ON: u8 = 2;
static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);
static ARMED: OnceLock<Armed> = OnceLock::new();

/// Passes the point `name`, which must be in `list`. Returns unless the environment says to die here.
#[inline]
pub fn hit(list: &'static [&'static str], name: &'static str) {
    debug_assert!(list.contains(&name), "the failpoint {name:?} is not declared");
    if STATE.load(Ordering::Relaxed) != OFF {
        slow(name);
    }
}

#[cold]
fn slow(name: &'static str) {
    let armed = ARMED.get_or_init(from_environment);
    if armed.point.is_none() && armed.trace.is_none() {
        STATE.store(OFF, Ordering::Relaxed);
        return;
    }
    STATE.store(ON, Ordering::Relaxed);
    if let Some(file) = &armed.trace {
        let mut traced = armed.traced.lock().unwrap_or_else(PoisonError::into_inner);
        if traced.insert(name) {
            append(file, name);
        }
    }
    if let Some((point, nth)) = &armed.point
        && point == name
        && armed.hits.fetch_add(1, Ordering::SeqCst) + 1 == *nth
    {
        if let Some(file) = &armed.log {
            append(file, name);
        }
        die();
    }
}

fn from_environment() -> Armed {
    let path = |variable| std::env::var_os(variable).map(PathBuf::from);
    Armed {
        point: std::env::var(POINT).ok().map(|text| parse(&text)),
        log: path(LOG),
        trace: path(TRACE),
        hits: AtomicU32::new(0),
        traced: Mutex::new(BTreeSet::new()),
    }
}

fn parse(text: &str) -> (String, u32) {
    match text.rsplit_once(':').map(|(name, nth)| (name, nth.parse())) {
        Some((name, Ok(nth))) => (name.to_owned(), nth),
        _ => (text.to_owned(), 1),
    }
}

fn append(file: &PathBuf, line: &str) {
    // One short write in append mode: lines of several processes do not mix. A test that cannot read
    // the line fails by itself, so an error here needs no telling.
    if let Ok(mut file) = OpenOptions::new().create(true).append(true).open(file) {
        let _ = file.write_all(format!("{line}\n").as_bytes());
    }
}

fn die() -> ! {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    loop {
        std::thread::park();
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_point_may_name_which_hit_is_meant() {
        assert_eq!(parse("a.b"), ("a.b".to_owned(), 1));
        assert_eq!(parse("a.b:3"), ("a.b".to_owned(), 3));
        assert_eq!(parse("a:b"), ("a:b".to_owned(), 1));
    }
}
