//! What the environment armed, and dying of it.

use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::process::{Signal, getpid, kill_process};

enum Armed {
    Nothing,
    Trace(Mutex<BTreeSet<&'static str>>),
    Die { name: String, nth: u64, seen: AtomicU64 },
}

fn armed() -> &'static Armed {
    static ARMED: OnceLock<Armed> = OnceLock::new();
    ARMED.get_or_init(|| match std::env::var(crate::ARM) {
        Ok(text) => parse(&text),
        Err(_) => Armed::Nothing,
    })
}

fn parse(text: &str) -> Armed {
    match text {
        "" => Armed::Nothing,
        "trace" => Armed::Trace(Mutex::default()),
        _ => {
            let (name, nth) = match text.split_once(':') {
                Some((name, nth)) => (name, nth.parse().ok()),
                None => (text, Some(1)),
            };
            // A count that is no number would make a test believe that it killed something.
            let Some(nth) = nth.filter(|nth| *nth > 0) else {
                panic!("{}={text:?} is not <name> or <name>:<nth>", crate::ARM)
            };
            Armed::Die {
                name: name.to_owned(),
                nth,
                seen: AtomicU64::new(0),
            }
        }
    }
}

pub(crate) fn is_armed() -> bool {
    !matches!(armed(), Armed::Nothing)
}

pub(crate) fn reached(name: &'static str) {
    match armed() {
        Armed::Nothing => {}
        Armed::Trace(seen) => {
            let is_new = seen.lock().unwrap_or_else(PoisonError::into_inner).insert(name);
            if is_new {
                log("reached", name, 1);
            }
        }
        Armed::Die { name: armed, nth, seen } => {
            if armed == name && seen.fetch_add(1, Ordering::SeqCst) + 1 == *nth {
                log("killed", name, *nth);
                die();
            }
        }
    }
}

fn die() -> ! {
    // The signal cannot be refused; the loop only waits for it to arrive.
    let _ = kill_process(getpid(), Signal::KILL);
    loop {
        std::thread::park();
    }
}

fn log(what: &str, name: &str, nth: u64) {
    let Ok(path) = std::env::var(crate::LOG) else { return };
    let line = format!("{what} {name} {nth} {}\n", std::process::id());
    // One write in append mode: lines of several processes do not mix.
    let written = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .and_then(|mut file| file.write_all(line.as_bytes()).and_then(|()| file.sync_all()));
    if let Err(error) = written {
        tracing::error!(%error, path, "the failpoint log cannot be written");
    }
}
