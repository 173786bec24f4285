//! Readable logs on standard error; `PLATFORM_LOG` takes a filter like `info,control_plane_server=debug`.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

/// Begins logging. Only roles that stay log; client commands speak for themselves.
pub fn start() {
    let filter = EnvFilter::try_from_env("PLATFORM_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    // A second start in one process keeps the first.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .try_init();
}
