//! One command a file. Each reads its arguments, talks to the services, and says what came of it.

mod apply;
mod artifact;
mod ask;
mod audit;
mod decide;
mod describe;
mod drain;
mod edge;
mod find;
mod gate;
mod get;
mod intervene;
mod last_line;
mod lines;
mod logs;
mod observe;
mod outline;
mod pack;
mod plan;
mod progress;
mod proof;
mod rebuild;
mod run;
mod stalled;
mod times;
mod token;
mod watch;
mod withdraw;

use crate::args::{Cli, Command};
use crate::context::Session;
use crate::error::CliError;
use crate::exit::Exit;
use crate::platform::Platform;
use crate::printer::Printer;
use crate::render::Table;
use crate::roles;

/// Runs the command.
///
/// # Errors
/// What a person is told; the exit code is in it.
pub fn run(cli: Cli, printer: Printer) -> Result<Exit, CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(dispatch(cli, printer))
}

async fn dispatch(cli: Cli, printer: Printer) -> Result<Exit, CliError> {
    let connect = || Platform::connect(Session::find(cli.global.context.as_deref())?);
    match &cli.command {
        Command::Up(up) => roles::up::run(up, printer).await,
        Command::Serve(serve) => roles::serve::run(serve, printer).await,
        Command::Database(what) => roles::database::run(what, printer).await,
        Command::Runner(runner) => roles::runner::run(runner, printer).await,
        Command::Config(check) => roles::check::run(check, printer),
        Command::Demo(demo) => crate::demo::run(demo, printer).await,
        Command::Get(get) => get::run(get, &connect()?, printer).await,
        Command::Describe(what) => describe::run(what, &connect()?, printer).await,
        Command::Apply(files) => apply::run(files, &connect()?, printer).await,
        Command::Observe(what) => observe::run(what, &connect()?, printer).await,
        Command::Withdraw(what) => withdraw::run(what, &connect()?, printer).await,
        Command::Edge(what) => edge::run(what, &connect()?, printer).await,
        Command::Pack(what) => pack::run(what, connect, printer).await,
        Command::Plan(ask) => plan::run(ask, &connect()?, printer).await,
        Command::Run(what) => run::run(what, &connect()?, printer).await,
        Command::Watch(what) => watch::run(what, &connect()?, printer).await,
        Command::Approve(what) => decide::run(what, control_plane_api::Decision::Approve, &connect()?, printer).await,
        Command::Reject(what) => decide::run(what, control_plane_api::Decision::Reject, &connect()?, printer).await,
        Command::Retry(what) => intervene::retry(what, &connect()?, printer).await,
        Command::Skip(what) => intervene::skip(what, &connect()?, printer).await,
        Command::Pause(what) => intervene::pause(what, &connect()?, printer).await,
        Command::Resume(what) => intervene::resume(what, &connect()?, printer).await,
        Command::Cancel(what) => intervene::cancel(what, &connect()?, printer).await,
        Command::Resolve(what) => intervene::resolve(what, &connect()?, printer).await,
        Command::Logs(what) => logs::run(what, &connect()?, printer).await,
        Command::Artifact(what) => artifact::run(what, &connect()?, printer).await,
        Command::Drain(what) => drain::run(what, &connect()?, printer).await,
        Command::Rebuild(what) => rebuild::run(what, &connect()?, printer).await,
        Command::Audit(what) => audit::run(what, &connect()?, printer).await,
        Command::Proof(what) => proof::run(what, connect, printer).await,
        Command::Token(what) => token::run(what, cli.global.context.as_deref(), printer),
        Command::Secret(what) => roles::secret::run(what, printer),
        Command::Failpoints => {
            let names = roles::failpoints::all();
            printer.value(&names, || names.join("\n"));
            Ok(Exit::Success)
        }
        Command::ExitCodes => {
            let codes: Vec<_> = Exit::ALL
                .iter()
                .map(|(_, code, meaning)| serde_json::json!({"code": code, "meaning": meaning}))
                .collect();
            printer.list(&codes, "codes", || {
                let mut table = Table::new(&["code", "meaning"]);
                for (_, code, meaning) in Exit::ALL {
                    table.row([code.to_string(), meaning.to_owned()]);
                }
                table
            });
            Ok(Exit::Success)
        }
    }
}
