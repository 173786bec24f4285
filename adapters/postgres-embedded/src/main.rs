//! Runs one command with a private PostgreSQL beside it: `make test` and the benchmarks use it.
//!
//! The server starts before the command and ends after it, whatever the command does.

use std::{
    ffi::OsString,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

use child_process::{DeathSignal, Launch};
use postgres_embedded::{Config, Listen, Server};
use tokio::signal::unix::{SignalKind, signal};

const USAGE: &str = "\
Usage: postgres-embedded DIRECTORY [--durable] [--env NAME] [-- COMMAND [ARG...]]

Starts a PostgreSQL server with its data in DIRECTORY, runs COMMAND with the superuser's URL in the
environment variable NAME (PLATFORM_TEST_POSTGRES when not given), and stops the server again.
Without COMMAND it says READY and stays until it is told to end.
  --durable   sync every commit to disk (off by default: this program serves tests)";

struct Arguments {
    directory: PathBuf,
    durable: bool,
    variable: String,
    command: Vec<OsString>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Some(arguments) = parse(std::env::args_os().skip(1).collect()) else {
        let _ = writeln!(io::stderr(), "{USAGE}");
        return ExitCode::from(2);
    };
    match run(arguments).await {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            let _ = writeln!(io::stderr(), "postgres-embedded: {error}");
            let mut cause = error.source();
            while let Some(error) = cause {
                let _ = writeln!(io::stderr(), "  because: {error}");
                cause = error.source();
            }
            ExitCode::FAILURE
        }
    }
}

fn parse(arguments: Vec<OsString>) -> Option<Arguments> {
    let mut rest = arguments.into_iter();
    let directory = rest
        .next()
        .filter(|first| !first.as_encoded_bytes().starts_with(b"-"))?;
    let mut parsed = Arguments {
        directory: directory.into(),
        durable: false,
        variable: "PLATFORM_TEST_POSTGRES".into(),
        command: Vec::new(),
    };
    while let Some(argument) = rest.next() {
        match argument.to_str() {
            Some("--durable") => parsed.durable = true,
            Some("--env") => parsed.variable = rest.next()?.into_string().ok()?,
            Some("--") => {
                parsed.command = rest.collect();
                return (!parsed.command.is_empty()).then_some(parsed);
            }
            _ => return None,
        }
    }
    Some(parsed)
}

async fn run(arguments: Arguments) -> Result<u8, Box<dyn std::error::Error>> {
    let config = if arguments.durable {
        Config::new(&arguments.directory)
    } else {
        Config::for_tests(&arguments.directory)
    };
    let server = Server::start(Config {
        listen: Listen::AnyLoopbackPort,
        ..config
    })
    .await?;
    let status = beside(&server, arguments).await;
    server.stop().await?;
    status
}

async fn beside(server: &Server, arguments: Arguments) -> Result<u8, Box<dyn std::error::Error>> {
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    let mut command = arguments.command.into_iter();
    let Some(program) = command.next() else {
        writeln!(io::stdout(), "READY {}", server.socket_directory().display())?;
        tokio::select! { _ = interrupted.recv() => {}, _ = terminated.recv() => {} }
        return Ok(0);
    };
    let url = server
        .loopback_url("postgres")
        .unwrap_or_else(|| server.url("postgres"));
    let child = Launch::new(program, DeathSignal::Terminate)
        .args(command)
        .env(arguments.variable, url)
        .spawn()?;
    let status = tokio::select! {
        status = child.exited() => status,
        _ = interrupted.recv() => end(&child).await,
        _ = terminated.recv() => end(&child).await,
    };
    Ok(status
        .and_then(|status| status.code())
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(1))
}

/// The command is told to end as this program was; the server stays until it has.
async fn end(child: &child_process::KeptChild) -> Option<std::process::ExitStatus> {
    let _ = child.signal(child_process::Signal::TERM);
    child.exited().await
}
