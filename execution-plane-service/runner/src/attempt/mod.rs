//! The life of one attempt at the runner: lease recorded, prepared, run, reported, forgotten.

pub(crate) mod active;
pub(crate) mod deliver;
pub(crate) mod drive;
mod finish;
pub(crate) mod outcome;
pub(crate) mod prepare;
pub(crate) mod recover;
pub(crate) mod report;
mod uploads;

pub(crate) use active::{Active, Registry};

use execution_plane_domain::Fault;

/// Faults in one line.
pub(crate) fn told(faults: &[Fault]) -> String {
    let each = |fault: &Fault| format!("{}: {}", fault.pointer, fault.detail);
    let shown: Vec<String> = faults.iter().take(5).map(each).collect();
    let more = faults.len().saturating_sub(shown.len());
    let rest = if more > 0 {
        format!("; and {more} more")
    } else {
        String::new()
    };
    format!("{}{rest}", shown.join("; "))
}
