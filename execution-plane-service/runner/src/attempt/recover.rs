//! What a restarted runner does with what its earlier self left: ends it and tells the truth.
//!
//! Sandboxes died with the earlier process; plain processes are found by their mark; what was started
//! on targets is swept. Then the report says whether the job had begun.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::active::Active;
use super::deliver::{self, Delivered, Sending};
use super::drive;
use super::prepare;
use super::report::Report;
use crate::jobs::context::{Begun, JobContext, Places};
use crate::jobs::{self, RemoteProcesses};
use crate::output::OutputSink;
use crate::runner::Runner;
use crate::secrets::Secrets;
use crate::state::{LeftBehind, SavedLease};
use crate::stop::{Stop, StopCause};

/// Ends the attempt's processes and delivers its report. Begins after a pull that listed the attempt, or the
/// service would take nothing of it.
pub(crate) async fn recover(runner: Arc<Runner>, active: Arc<Active>, left: LeftBehind) {
    let LeftBehind {
        home,
        saved,
        begun,
        report,
    } = left;
    let delivered = match OutputSink::open(&home.output(), runner.config.output_limit_bytes) {
        Ok(output) => {
            let report = match report {
                Some(report) => report,
                None if begun => interrupted(&runner, &saved, &output).await,
                None => {
                    let mut report = drive::not_begun(&saved, StopCause::ShutDown);
                    report.result.exit_summary.message = "the runner was restarted before the job began".to_owned();
                    report
                }
            };
            let sending = Sending::begin(&runner, &active, &output);
            deliver::deliver(&runner, &active, &home, report, sending).await
        }
        Err(error) => {
            tracing::error!(attempt = %active.id, %error, "the output spool cannot be read; its report is kept");
            if active.is_gone() {
                Delivered::Settled
            } else {
                Delivered::Kept
            }
        }
    };
    if delivered == Delivered::Settled {
        home.forget();
    }
    runner.registry.remove(active.id);
}

async fn interrupted(runner: &Runner, saved: &SavedLease, output: &OutputSink) -> Report {
    let mark = saved.lease.attempt_id.to_string();
    for isolation in &runner.deps.isolation {
        isolation.end_leftovers(&mark).await;
    }
    output.say("the runner was restarted while the job ran");
    let remote = sweep(runner, saved, output).await;
    drive::interrupted(saved, begun_at(saved), &remote)
}

/// The earlier self recorded that the job began, not when; it was after the lease came.
const fn begun_at(saved: &SavedLease) -> DateTime<Utc> {
    saved.received_at
}

async fn sweep(runner: &Runner, saved: &SavedLease, output: &OutputSink) -> RemoteProcesses {
    let lease = &saved.lease;
    let doubt = |why: String| RemoteProcesses::Unknown(vec![why]);
    let Ok(parameters) = prepare::admit(lease) else {
        return RemoteProcesses::None;
    };
    let reaches_out = lease
        .job
        .target
        .resources
        .iter()
        .any(|target| target.connection.is_some());
    let isolation = match prepare::isolation(runner, &lease.job) {
        _ if !reaches_out => return RemoteProcesses::None,
        Ok(isolation) => isolation,
        Err(refusal) => return doubt(refusal.message),
    };
    let rules = &runner.config.secret_rules;
    let secrets = match Secrets::resolve(&lease.job, runner.deps.secrets.as_ref(), rules).await {
        Ok(secrets) => secrets,
        Err(error) => return doubt(error.to_string()),
    };
    let places = Places {
        content: None,
        inputs: None,
        artifacts: runner.config.runtime_directory.clone(),
    };
    let context = JobContext::new(
        Arc::new(lease.job.clone()),
        Arc::clone(&runner.tools),
        isolation,
        secrets,
        places,
        output.clone(),
        Stop::new(),
        Begun::default(),
    );
    for target in lease
        .job
        .target
        .resources
        .iter()
        .filter(|target| target.connection.is_some())
    {
        context.touch(&target.resource_id);
    }
    if let Err(error) = context.start_agent().await {
        return doubt(error.to_string());
    }
    let remote = jobs::of(parameters).sweep(&context).await;
    context.end_agent().await;
    remote
}

/// Takes everything that was left in hand, before the first pull.
pub(crate) fn take_in_hand(left: &LeftBehind) -> Arc<Active> {
    Arc::new(Active::new(left.saved.lease.attempt_id, left.saved.lease.epoch, None))
}
