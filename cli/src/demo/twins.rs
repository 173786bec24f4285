//! The unhappy twins: a broken host, a wrong parameter, a second operation on the same hosts, a cancel.

use std::net::TcpListener;

use chrono::{DateTime, Utc};
use demo_hosts::{Host, Hosts};

use super::stage::{Stage, Who, untrue};
use super::story::{PORT, SCENARIO, app_dir, pages, version};
use crate::error::CliError;
use crate::exit::Exit;

fn host(hosts: &Hosts, index: usize) -> Result<&Host, CliError> {
    hosts.hosts.get(index).ok_or_else(|| untrue("there are three hosts"))
}

fn broken(error: &demo_hosts::HostError) -> CliError {
    untrue(format!("a host cannot be broken or mended: {error}"))
}

async fn approved(stage: &Stage, id: &str) -> Result<(), CliError> {
    stage
        .types(Who::Ada, &["watch", id, "--until-gate"], Exit::Waiting)
        .await?;
    stage.types(Who::Bob, &["approve", id, "--yes"], Exit::Success).await?;
    Ok(())
}

async fn state(stage: &Stage, id: &str, node: &str) -> Result<String, CliError> {
    Ok(stage.node(id, node).await?["state"]
        .as_str()
        .unwrap_or_default()
        .to_owned())
}

/// (a) Host 2 has no space left. The operation ends truthfully; the host is mended; retry carries on.
pub async fn broken_host(stage: &mut Stage, hosts: &Hosts) -> Result<(), CliError> {
    stage.chapter("Unhappy twin (a): host 2 is out of disk space");
    let message = "Second edition";
    let before = [version(stage, "node/web-2").await?, version(stage, "node/web-3").await?];
    host(hosts, 1)?.break_disk_full().map_err(|error| broken(&error))?;
    let id = stage
        .starts(&[
            SCENARIO,
            "-e",
            "demo",
            "-p",
            &format!("site_message={message}"),
            "-p",
            &app_dir(),
        ])
        .await?;
    approved(stage, &id).await?;
    let text = stage.types(Who::Ada, &["watch", &id], Exit::Untrue).await?;
    stage.check(
        text.contains("node/web-2") && text.to_lowercase().contains("space"),
        "it says which host failed, and why",
    )?;
    let states = [
        state(stage, &id, "publish[node/web-1]").await?,
        state(stage, &id, "rollout[node/web-2]").await?,
        state(stage, &id, "rollout[node/web-3]").await?,
    ];
    stage.check(
        states == ["succeeded", "failed", "skipped"],
        "host 1 is done, host 2 failed, host 3 was not started",
    )?;
    let never = text.lines().find(|line| line.trim_start().starts_with("not started: "));
    stage.check(
        never.is_some_and(|line| line.contains("rollout[node/web-3]")),
        "it says what was not started",
    )?;
    let after = [version(stage, "node/web-2").await?, version(stage, "node/web-3").await?];
    stage.check(before == after, "the catalog was told nothing about hosts 2 and 3")?;

    let runs_on_1 = host(hosts, 0)?.commands().map_err(|error| broken(&error))?.len();
    host(hosts, 1)?.mend().map_err(|error| broken(&error))?;
    stage.tell("The disk has space again. Ada retries: run 2 of the same operation.");
    stage
        .types(Who::Ada, &["retry", &id, "-m", "disk mended"], Exit::Success)
        .await?;
    stage.check(
        pages(stage, hosts, message).await == [true; 3],
        "all three hosts serve the second edition",
    )?;
    let commands = host(hosts, 0)?.commands().map_err(|error| broken(&error))?.len();
    stage.check(
        runs_on_1 == commands,
        "host 1 was not touched again: counted on the host itself",
    )?;
    let operation = stage.reads(&["get", "operations", &id]).await?;
    stage.check(operation["run"] == 2, "it is run 2 of the same operation")?;
    let asked = times_asked(stage, &id).await?;
    stage.check(asked == 1, format!("the gate was asked once ({asked})"))?;
    Ok(())
}

/// (b) The fault is a parameter: a port that host 2 cannot give. Gives the operation, carried on with another.
pub async fn wrong_parameter(stage: &mut Stage, hosts: &Hosts) -> Result<String, CliError> {
    stage.chapter("Unhappy twin (b): the fault is a parameter");
    let message = "Third edition";
    let taken = TcpListener::bind((host(hosts, 1)?.address, 8081))?;
    stage.tell("Port 8081 is taken on host 2.");
    let asked = format!("site_message={message}");
    let id = stage
        .starts(&[
            SCENARIO,
            "-e",
            "demo",
            "-p",
            &asked,
            "-p",
            &app_dir(),
            "-p",
            "http_port=8081",
        ])
        .await?;
    approved(stage, &id).await?;
    stage.types(Who::Ada, &["watch", &id], Exit::Untrue).await?;
    drop(taken);
    let port = format!("http_port={PORT}");
    stage
        .types(
            Who::Ada,
            &["retry", &id, "--set", &port, "--until-gate", "-m", "another port"],
            Exit::Waiting,
        )
        .await?;
    let asked = times_asked(stage, &id).await?;
    stage.check(
        asked == 2,
        format!("the plan is another one now, so the gate is asked again ({asked})"),
    )?;
    stage.types(Who::Bob, &["approve", &id, "--yes"], Exit::Success).await?;
    Ok(id)
}

/// What was done before the parameter was changed stays as it is, and says so.
pub async fn revisions(stage: &mut Stage, id: &str) -> Result<(), CliError> {
    let first = stage.node(id, "rollout[node/web-1]").await?;
    let second = stage.node(id, "rollout[node/web-2]").await?;
    stage.check(
        first["plan_revision"] == 1 && second["plan_revision"] == 2,
        "host 1 stays, and reads \"at revision 1\"; host 2 ran at revision 2",
    )?;
    stage
        .types(Who::Ada, &["describe", "operation", id], Exit::Success)
        .await?;
    Ok(())
}

/// A second operation on the same hosts, started while `id` is carried on, waits for it and starts cleanly
/// afterwards.
pub async fn second_operation(stage: &mut Stage, id: &str) -> Result<(), CliError> {
    stage.chapter("Meanwhile, a second operation of another scenario on the same hosts");
    let carried_on = "rollout[node/web-2]";
    stage
        .until("the rollout is carried on", &["get", "node-runs", id], |runs| {
            runs.as_array().is_some_and(|all| {
                all.iter().any(|run| {
                    run["node_id"] == carried_on && (run["state"] == "dispatched" || run["state"] == "running")
                })
            })
        })
        .await?;
    let other = stage.starts(&["host-report/report", "-e", "demo"]).await?;
    let waits = |value: &serde_json::Value| {
        value["waiting_for"]
            .as_array()
            .is_some_and(|all| all.iter().any(|w| w["kind"] == "claim" && w["holder"] == id))
    };
    stage
        .until(
            "the second operation waits for the first",
            &["get", "operations", &other],
            waits,
        )
        .await?;
    let text = stage
        .types(Who::Ada, &["get", "operations", &other], Exit::Success)
        .await?;
    stage.check(text.contains(id), "it says for whom it waits, and since when")?;
    stage.types(Who::Ada, &["get", "claims"], Exit::Success).await?;
    stage.types(Who::Ada, &["watch", id], Exit::Success).await?;
    stage.types(Who::Ada, &["watch", &other], Exit::Success).await?;
    let first_end = stage.reads(&["get", "operations", id]).await?["ended_at"].clone();
    let runs = stage.reads(&["get", "node-runs", &other]).await?;
    let begins: Vec<_> = runs
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|run| moment(&run["started_at"]))
        .collect();
    let ended = moment(&first_end);
    stage.check(
        ended.is_some() && !begins.is_empty() && begins.iter().all(|begin| Some(*begin) >= ended),
        "both came to their end, and nothing of the second began before the first had ended",
    )
}

/// A cancel while ansible runs: nothing of the cancelled item goes on, what was done stays.
pub async fn cancel(stage: &mut Stage, hosts: &Hosts) -> Result<(), CliError> {
    stage.chapter("Cancel in the middle of the rollout");
    let message = "Fourth edition";
    let id = stage
        .starts(&[
            SCENARIO,
            "-e",
            "demo",
            "-p",
            &format!("site_message={message}"),
            "-p",
            &app_dir(),
        ])
        .await?;
    approved(stage, &id).await?;
    let second = "rollout[node/web-2]";
    let begun = stage
        .until("host 2 has its turn", &["get", "node-runs", &id], |runs| {
            attempt_of(runs, second).is_some()
        })
        .await?;
    let attempt = attempt_of(&begun, second).ok_or_else(|| untrue("the node has an attempt"))?;
    let mark = format!("PLATFORM_ATTEMPT={attempt}");
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(60);
    while host(hosts, 1)?.marked(&mark).is_empty() {
        if tokio::time::Instant::now() > deadline {
            return Err(untrue("ansible runs on host 2 within a minute"));
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    stage.tell("Ansible is at work on host 2.");
    stage
        .types(Who::Ada, &["cancel", &id, "-m", "wrong day"], Exit::Success)
        .await?;
    let operation = stage.reads(&["get", "operations", &id]).await?;
    stage.check(
        operation["state"] == "cancelled",
        "it reads cancelled once everything of it has ended",
    )?;
    let left = host(hosts, 1)?.marked(&mark);
    stage.check(left.is_empty(), "on host 2 nothing of the cancelled attempt runs")?;
    let serving = pages(stage, hosts, message).await;
    stage.check(
        serving[0] && !serving[2],
        "host 1 keeps what it got, host 3 was not touched",
    )?;
    let claims = stage.reads(&["get", "claims"]).await?;
    stage.check(
        claims.as_array().is_some_and(Vec::is_empty),
        "nobody holds anything any more",
    )?;
    Ok(())
}

/// How often an operation's gates were asked.
async fn times_asked(stage: &Stage, id: &str) -> Result<usize, CliError> {
    let events = stage.reads(&["get", "events", id]).await?;
    let opened = |event: &&serde_json::Value| event["type"] == "gate_opened";
    Ok(events.as_array().map_or(0, |all| all.iter().filter(opened).count()))
}

fn moment(value: &serde_json::Value) -> Option<DateTime<Utc>> {
    value.as_str()?.parse().ok()
}

/// The last attempt of a node, once it has one.
fn attempt_of(runs: &serde_json::Value, node: &str) -> Option<String> {
    let run = runs.as_array()?.iter().find(|run| run["node_id"] == node)?;
    Some(run["attempts"].as_array()?.last()?["attempt_id"].as_str()?.to_owned())
}
