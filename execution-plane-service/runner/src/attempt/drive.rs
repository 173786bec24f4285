//! One attempt from its lease to its report.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use contracts::{
    ExecutionResult, ExecutionStatus, ExitCategory, ExitReason, ExitSummary, Isolation as Grade, JobStarted,
};
use execution_plane_api::{Lease, StartPhase, StartedRequest};
use execution_plane_domain::job::JobParameters;
use kernel::id::AttemptId;
use serde_json::{Map, Value, json};

use super::active::Active;
use super::deliver::{self, Delivered};
use super::outcome::{self, Outcome};
use super::prepare::{self, Refusal};
use super::recover;
use super::report::Report;
use super::uploads;
use crate::jobs::checks::{self, Finding};
use crate::jobs::context::{Begun, JobContext};
use crate::jobs::{self, RemoteProcesses, WorkEnd};
use crate::output::{MaskSet, OutputSink};
use crate::runner::Runner;
use crate::state::{Home, SavedLease};
use crate::stop::{Stop, StopCause};

/// A job that ends within this time is reported by its end alone.
const QUICK: Duration = Duration::from_millis(50);

/// Runs the attempt and delivers its report; then it is out of hand.
pub(crate) async fn drive(runner: Arc<Runner>, active: Arc<Active>, lease: Lease, received_at: DateTime<Utc>) {
    // Its end was told in vain, and the lease given out again: the end is told again, nothing is run again.
    if let Some(left) = runner.state.begun_before(active.id) {
        return recover::recover(runner, active, left).await;
    }
    let home = runner.state.home(active.id);
    let saved = SavedLease { lease, received_at };
    let output = home.record_lease(&saved).and_then(|()| {
        failpoints::hit("runner.lease.recorded");
        OutputSink::open(&home.output(), runner.config.output_limit_bytes)
    });
    let delivered = match output {
        Ok(output) => {
            let sending = deliver::Sending::begin(&runner, &active, &output);
            let report = report(&runner, &active, &saved, &home, &output).await;
            deliver::deliver(&runner, &active, &home, report, sending).await
        }
        // Without its record nothing may begin: after a restart nobody would know of it.
        Err(error) => {
            tracing::error!(attempt = %active.id, %error, "the lease cannot be recorded; handing it back");
            let message = format!("the runner's state directory cannot be written: {error}");
            let refusal = Refusal {
                category: ExitCategory::InfrastructureError,
                message,
            };
            let mut report = refused(&saved, &refusal);
            report.blame_runner();
            deliver::finish_only(&runner, &active, report).await
        }
    };
    if delivered == Delivered::Settled {
        home.forget();
    }
    failpoints::hit("runner.attempt.forgotten");
    runner.registry.remove(active.id);
}

async fn report(runner: &Runner, active: &Active, saved: &SavedLease, home: &Home, output: &OutputSink) -> Report {
    let lease = &saved.lease;
    if lease.cancel_requested {
        active.cancel();
    }
    let timer = tokio::spawn(time_limit(active.stop.clone(), lease.job.controls.timeout_seconds));
    let prepared = async {
        let parameters = prepare::admit(lease)?;
        let isolation = prepare::isolation(runner, &lease.job)?;
        let context = prepare::context(runner, active, lease, isolation, home, output.clone()).await?;
        Ok::<_, Refusal>((parameters, context))
    };
    let prepared = tokio::select! {
        biased;
        cause = active.stop.asked() => Err(cause),
        prepared = prepared => Ok(prepared),
    };
    let report = match prepared {
        Err(cause) => not_begun(saved, cause),
        Ok(Err(refusal)) => {
            output.say(&refusal.message);
            refused(saved, &refusal)
        }
        Ok(Ok((parameters, context))) => {
            if let Err(error) = home.record_begin() {
                let message = format!("the runner's state directory cannot be written: {error}");
                return refused(
                    saved,
                    &Refusal {
                        category: ExitCategory::InfrastructureError,
                        message,
                    },
                );
            }
            failpoints::hit("runner.start.recorded");
            let telling = tokio::spawn(tell_start(
                runner.clone(),
                active.id,
                active.epoch,
                context.begun.clone(),
                grade(&context),
                active.stop.clone(),
            ));
            let report = work(runner, saved, home, parameters, &context).await;
            telling.abort();
            report
        }
    };
    timer.abort();
    report
}

async fn time_limit(stop: Stop, seconds: u32) {
    tokio::time::sleep(Duration::from_secs(seconds.into())).await;
    stop.ask(StopCause::TimedOut);
}

fn grade(context: &JobContext) -> Grade {
    context.isolation.report().grade
}

/// Information for readers, not permission; so a job that is over at once leaves it out.
async fn tell_start(runner: Runner, id: AttemptId, epoch: u64, begun: Begun, isolation_used: Grade, stop: Stop) {
    begun.happened().await;
    tokio::time::sleep(QUICK).await;
    let at = begun.at().unwrap_or_else(Utc::now);
    let request = StartedRequest {
        epoch,
        phase: StartPhase::Running,
        at,
        isolation_used,
    };
    match runner.client.started(id, &request).await {
        Ok(answer) if answer.state == execution_plane_api::AttemptState::Cancelling => stop.ask(StopCause::Cancelled),
        Ok(_) => {}
        Err(error) => tracing::warn!(attempt = %id, %error, "the start could not be told"),
    }
    failpoints::hit("runner.started.sent");
}

async fn work(
    runner: &Runner,
    saved: &SavedLease,
    home: &Home,
    parameters: JobParameters,
    context: &JobContext,
) -> Report {
    let all_checks = parameters.checks().to_vec();
    let contract = &context.spec.output_contract;
    let job = jobs::of(parameters);
    let mut end = match context.start_agent().await {
        Ok(()) => job.run(context).await,
        Err(error) => WorkEnd::failed(ExitCategory::InfrastructureError, -1, error.to_string()),
    };
    let mut findings = Vec::new();
    let worth_checking = end.status == ExecutionStatus::Succeeded || (end.ran_through && !contract.evidence.is_empty());
    if context.stop.cause().is_none() && worth_checking {
        findings = checks::evaluate(context, &all_checks).await;
        for finding in findings.iter().filter(|finding| finding.from_job_spec.is_none()) {
            context.output.say(&finding.told());
        }
    }
    let begun = context.begun.at().is_some();
    let outcome = match context.stop.cause() {
        Some(cause) => {
            let remote = job.sweep(context).await;
            outcome::stopped(end, cause, begun, &remote)
        }
        None => {
            if end.adrift {
                let remote = job.sweep(context).await;
                outcome::tell_remote(&mut end, &remote);
            }
            outcome::by_itself(end, &findings, contract)
        }
    };
    context.end_agent().await;
    compose(runner, saved, home, context, outcome, &findings)
}

fn compose(
    runner: &Runner,
    saved: &SavedLease,
    home: &Home,
    context: &JobContext,
    outcome: Outcome,
    findings: &[Finding],
) -> Report {
    let masks = context.secrets.masks();
    let mut end = outcome.end;
    end.outputs.insert("isolation".to_owned(), isolation_told(context));
    end.outputs.insert("timing".to_owned(), timing(saved, context));
    let (dropped, broken) = context.output.shortfall();
    if dropped > 0 {
        end.outputs.insert("output_dropped_bytes".to_owned(), dropped.into());
    }
    let begun = context.begun.at();
    let mut report = Report {
        result: result(saved, begun, end, masks),
        uploads: Vec::new(),
        isolation_used: Some(grade(context)),
    };
    report.result.reason = outcome.reason;
    if let Some(broken) = broken {
        let message = format!("its output could not be kept: {broken}");
        report.fail(ExitCategory::InfrastructureError, message);
    }
    match uploads::evidence(&context.spec, findings, home, &mut report.uploads) {
        Ok(evidence) => report.result.evidence = evidence,
        Err(error) => {
            let message = format!("the sources of its evidence cannot be kept: {error}");
            report.fail(ExitCategory::InfrastructureError, message);
        }
    }
    let stopped = context.stop.cause().is_some();
    for name in &context.spec.output_contract.artifacts {
        let directory = &context.places.artifacts;
        match uploads::artifact(name, directory, runner.config.artifact_limit_bytes, masks) {
            Ok(upload) => report.uploads.push(upload),
            Err(_) if stopped || report.result.status != ExecutionStatus::Succeeded => {}
            Err(fault) => report.fail(fault.category, fault.message),
        }
    }
    report
}

fn isolation_told(context: &JobContext) -> Value {
    let report = context.isolation.report();
    json!({"grade": report.grade, "lacks": report.lacks})
}

/// The runner's own stamps: where the time of an attempt goes.
fn timing(saved: &SavedLease, context: &JobContext) -> Value {
    json!({"received_at": saved.received_at, "begun_at": context.begun.at(), "work_ended_at": Utc::now()})
}

fn result(saved: &SavedLease, begun: Option<DateTime<Utc>>, end: WorkEnd, masks: &MaskSet) -> ExecutionResult {
    let job = &saved.lease.job;
    let outputs = match masks.mask_json(Value::Object(end.outputs)) {
        Value::Object(outputs) => outputs,
        _ => Map::new(),
    };
    ExecutionResult {
        operation_id: job.operation_id,
        plan_node_id: job.plan_node_id.clone(),
        attempt_id: job.attempt_id,
        status: end.status,
        started_at: begun,
        finished_at: Utc::now(),
        exit_summary: ExitSummary {
            code: end.code,
            category: end.category,
            message: masks.mask_text(&end.message),
        },
        artifacts: Vec::new(),
        evidence: Vec::new(),
        raw_logs: Vec::new(),
        job_started: Some(if begun.is_some() {
            JobStarted::Yes
        } else {
            JobStarted::No
        }),
        reason: None,
        outputs: (!outputs.is_empty()).then_some(outputs),
    }
}

/// A report of a job of which nothing ran.
pub(crate) fn refused(saved: &SavedLease, refusal: &Refusal) -> Report {
    let end = WorkEnd::failed(refusal.category, -1, refusal.message.clone());
    let mut result = result(saved, None, end, &MaskSet::of([]));
    if refusal.category == ExitCategory::PolicyError {
        result.reason = Some(ExitReason::Policy);
    }
    Report {
        result,
        uploads: Vec::new(),
        isolation_used: None,
    }
}

/// A report of a job that was stopped before anything of it ran.
pub(crate) fn not_begun(saved: &SavedLease, cause: StopCause) -> Report {
    let end = WorkEnd::failed(ExitCategory::Unknown, -1, "");
    let Outcome { end, reason } = outcome::stopped(end, cause, false, &RemoteProcesses::None);
    let mut result = result(saved, None, end, &MaskSet::of([]));
    result.reason = reason;
    Report {
        result,
        uploads: Vec::new(),
        isolation_used: None,
    }
}

/// A report of a job that an earlier self of this runner had begun.
pub(crate) fn interrupted(saved: &SavedLease, begun_at: DateTime<Utc>, remote: &RemoteProcesses) -> Report {
    let message = "the runner was restarted while the job ran; its processes were ended";
    let mut end = WorkEnd::failed(ExitCategory::InfrastructureError, -1, message);
    outcome::tell_remote(&mut end, remote);
    let mut report = Report {
        result: result(saved, Some(begun_at), end, &MaskSet::of([])),
        uploads: Vec::new(),
        isolation_used: Some(saved.lease.job.runner.isolation),
    };
    report.blame_runner();
    report
}
