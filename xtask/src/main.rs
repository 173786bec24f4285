//! Checks of the tree that no compiler makes, each a subcommand.
//!
//! They read sources and `cargo metadata` only, so that they tell the truth about what is there and
//! not about what a document says is there.

mod architecture;
mod edges;
mod failpoints;
mod files;
mod operations;
mod part;
mod queries;
mod workspace;

use std::{
    fmt,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::{Context, Result};

use crate::workspace::Graph;

const USAGE: &str = "\
Usage: xtask architecture       who may depend on whom
       xtask edges              docs/edges.toml against the clients that services use
       xtask failpoints         commits against the places where a process can be made to die
       xtask files              sizes, names and words of the files
       xtask queries [--write]  the committed descriptions of SQL queries against real databases";

/// A rule that does not hold, and where.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    pub place: String,
    pub what: String,
}

impl Violation {
    fn new(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            what: what.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let checked = match arguments[..] {
        ["architecture"] => root().and_then(|root| Ok(architecture::check(&Graph::load(&root)?))),
        ["edges"] => root().and_then(|root| edges::check(&root, &Graph::load(&root)?)),
        ["failpoints"] => root().and_then(|root| failpoints::check(&root)),
        ["files"] => root().and_then(|root| files::check(&root)),
        ["queries"] => root().and_then(|root| queries::check(&root)),
        ["queries", "--write"] => root().and_then(|root| queries::write(&root)).map(|()| Vec::new()),
        _ => {
            let _ = writeln!(io::stderr(), "{USAGE}");
            return ExitCode::from(2);
        }
    };
    report(checked)
}

fn report(checked: Result<Vec<Violation>>) -> ExitCode {
    match checked {
        Ok(violations) if violations.is_empty() => ExitCode::SUCCESS,
        Ok(violations) => {
            for violation in &violations {
                let _ = writeln!(io::stderr(), "{violation}");
            }
            let _ = writeln!(io::stderr(), "{} violations", violations.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            let _ = writeln!(io::stderr(), "xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The workspace that the current directory is in.
fn root() -> Result<PathBuf> {
    let here = std::env::current_dir().context("cannot tell the current directory")?;
    let found = here
        .ancestors()
        .find(|directory| directory.join("Cargo.lock").is_file());
    found
        .map(PathBuf::from)
        .context("this is not inside the workspace: no Cargo.lock here or above")
}
