//! `platform`: every role of the platform and every client command, in one binary.
//!
//! Invariants: this is the only crate that names adapters; a client command talks to the services over
//! authenticated HTTP, also when they run in this very process; every error says what was wrong, where,
//! and what to do, and ends with a documented exit code.

mod args;
mod commands;
mod config;
mod context;
mod demo;
mod error;
mod exit;
mod manifest;
mod pages;
mod platform;
mod printer;
mod render;
mod roles;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::Cli;
use crate::exit::Exit;
use crate::printer::Printer;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let wanted = !error.use_stderr();
            let _ = error.print();
            return ExitCode::from(if wanted { Exit::Success } else { Exit::Usage }.code());
        }
    };
    let printer = Printer::new(cli.global.output);
    match commands::run(cli, printer) {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(error) => {
            printer.error(&error);
            ExitCode::from(error.exit.code())
        }
    }
}
