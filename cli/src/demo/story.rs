//! The story, straight: three hosts, one rollout, approved by another person, proved afterwards.

use std::fmt::Write as _;
use std::path::Path;

use demo_hosts::{DATA_VOLUME, Host, Hosts};

use super::stage::{Stage, Who, source, untrue};
use crate::error::CliError;
use crate::exit::Exit;

/// Where the site is put on every host.
pub fn app_dir() -> String {
    format!("app_dir={DATA_VOLUME}/site")
}

pub const SCENARIO: &str = "web-rollout/rollout";
pub const PORT: u16 = 8080;

/// Registers what there is: types, capabilities, hosts with their real addresses and keys.
pub async fn register(stage: &mut Stage, root: &Path, hosts: &Hosts) -> Result<(), CliError> {
    stage.chapter("What there is: types, capabilities, three hosts with addresses and host keys");
    let file = stage.path("hosts.yaml");
    std::fs::write(&file, hosts_file(hosts))?;
    let examples = |name: &str| source(root, &format!("examples/{name}")).map(|path| path.display().to_string());
    let (types, capabilities) = (examples("resource-types.yaml")?, examples("capabilities.yaml")?);
    stage
        .types(
            Who::Ada,
            &["apply", "-f", &types, "-f", &capabilities, "-f", &file],
            Exit::Success,
        )
        .await?;
    let again = stage.types(Who::Ada, &["apply", "-f", &file], Exit::Success).await?;
    stage.check(
        again.lines().all(|line| line.ends_with("unchanged")),
        "applying the same again changes nothing",
    )?;
    for host in &hosts.hosts {
        let seen = stage.path(&format!("uname-{}", host.name));
        let output = host
            .ssh(&hosts.private_key, &hosts.known_hosts)
            .arg("uname -r")
            .output()?;
        std::fs::write(&seen, &output.stdout)?;
        let version = format!("version={}", String::from_utf8_lossy(&output.stdout).trim());
        let resource = format!("node/{}", host.name);
        let args = [
            "observe",
            &resource,
            "os.linux",
            "--set",
            &version,
            "--source",
            "ssh: uname -r",
            "--seen",
            &seen,
        ];
        stage.types(Who::Ada, &args, Exit::Success).await?;
    }
    let (key, data) = (
        hosts.private_key.display().to_string(),
        stage.data.display().to_string(),
    );
    stage
        .types(
            Who::Ada,
            &[
                "secret",
                "put",
                "vault://ssh/web-hosts",
                "--from",
                &key,
                "--data",
                &data,
            ],
            Exit::Success,
        )
        .await?;
    stage
        .types(
            Who::Ada,
            &["get", "resources", "-e", "demo", "-t", "compute.node"],
            Exit::Success,
        )
        .await?;
    Ok(())
}

fn hosts_file(hosts: &Hosts) -> String {
    let mut text = String::new();
    for (index, host) in hosts.hosts.iter().enumerate() {
        let number = index + 1;
        let Host {
            name,
            address,
            port,
            user,
            host_key,
            ..
        } = host;
        let _ = write!(
            text,
            "---\nkind: Resource\nname: rack/demo-{number}\nspec:\n  resource_type: topology.rack\n  environment: demo\n  \
             lifecycle_status: running\n---\nkind: Resource\nname: node/{name}\nspec:\n  resource_type: compute.node.web\n  \
             environment: demo\n  labels: {{tier: web}}\n  lifecycle_status: running\n  connection:\n    address: {address}\n    \
             port: {port}\n    user: {user}\n    python_interpreter: /usr/bin/python3\n    host_keys:\n      - {host_key}\n  \
             edges:\n    - {{edge_type: part_of, target: rack/demo-{number}}}\n"
        );
    }
    text
}

/// Publishes the packs and looks at plans, met and unmet.
pub async fn plan(stage: &mut Stage, root: &Path) -> Result<(), CliError> {
    stage.chapter("What can be done: a scenario pack, checked and pinned by digest");
    for name in ["web-rollout", "host-report"] {
        let pack = source(root, &format!("packs/{name}"))?.display().to_string();
        stage
            .types(Who::Ada, &["pack", "validate", &pack], Exit::Success)
            .await?;
        stage.types(Who::Ada, &["pack", "push", &pack], Exit::Success).await?;
    }
    let pack = source(root, "packs/web-rollout")?.display().to_string();
    let again = stage.types(Who::Ada, &["pack", "push", &pack], Exit::Success).await?;
    stage.check(again.contains("unchanged"), "a published version stays what it was")?;

    stage.chapter("What would happen: a plan, and one that cannot be");
    let args = [
        "plan",
        SCENARIO,
        "-e",
        "demo",
        "-p",
        "site_message=Hello from the first rollout",
        "-p",
        &app_dir(),
        "--wait-for",
        "node/web-3@2",
    ];
    let text = stage.types(Who::Ada, &args, Exit::Success).await?;
    stage.check(
        ["node/web-1", "node/web-2", "node/web-3"]
            .iter()
            .all(|host| text.contains(host)),
        "the plan names all three hosts",
    )?;
    stage.check(
        text.lines()
            .any(|line| line.contains("read_log") && line.contains("skipped")),
        "nobody asked for the log to be read, so the plan says that this step is skipped",
    )?;
    let text = stage
        .types(
            Who::Ada,
            &["plan", SCENARIO, "-e", "nowhere", "-p", "site_message=x"],
            Exit::Refused,
        )
        .await?;
    stage.check(
        text.contains("slot web"),
        "a plan that cannot be says which requirement is not met, and why",
    )?;
    Ok(())
}

/// The rollout, from request to proof.
pub async fn roll_out(stage: &mut Stage, hosts: &Hosts) -> Result<String, CliError> {
    stage.chapter("Ada asks for it; a check runs; the gate waits for somebody else");
    let message = "Hello from the first rollout";
    let id = stage
        .starts(&[
            SCENARIO,
            "-e",
            "demo",
            "-p",
            &format!("site_message={message}"),
            "-p",
            &app_dir(),
            "-p",
            "read_log=true",
        ])
        .await?;
    stage
        .types(Who::Ada, &["watch", &id, "--until-gate"], Exit::Waiting)
        .await?;
    stage.check(
        pages(stage, hosts, message).await == [false; 3],
        "before the approval nothing was rolled out",
    )?;
    stage.types(Who::Ada, &["approve", &id], Exit::Forbidden).await?;
    stage.tell("Ada asked for it, so Ada may not approve it. Bob looks at it and does.");
    let text = stage.types(Who::Bob, &["describe", "gate", &id], Exit::Success).await?;
    stage.check(
        text.contains("The site of a host is gone for a moment"),
        "whoever decides sees the risk that the scenario speaks of",
    )?;
    let gates = stage.reads(&["get", "gates", &id]).await?;
    let digest = gates[0]["covers_digest"].as_str().unwrap_or_default();
    let shown = digest.get(..12).unwrap_or_default();
    stage
        .types(
            Who::Bob,
            &["approve", &id, "--digest", shown, "-m", "looks right"],
            Exit::Success,
        )
        .await?;

    stage.chapter("Ansible rolls it out host by host; every host is checked before the next");
    stage.types(Who::Ada, &["watch", &id], Exit::Success).await?;
    stage.check(
        pages(stage, hosts, message).await == [true; 3],
        "all three hosts serve the page",
    )?;
    let order = ends(stage, &id, "rollout").await?;
    stage.check(order.is_sorted(), "the hosts were done one after the other, in order")?;

    stage.chapter("The catalog knows, with the evidence; so does the projection");
    let text = stage
        .types(
            Who::Ada,
            &["get", "resources", "--capability", "web.http"],
            Exit::Success,
        )
        .await?;
    stage.check(
        text.matches("web.http").count() >= 3,
        "three resources provide web.http",
    )?;
    let node = stage.reads(&["get", "resources", "node/web-1"]).await?;
    let provided = node["provided_capabilities"]
        .as_array()
        .and_then(|all| all.iter().find(|c| c["capability"] == "web.http"));
    let evidence = provided.and_then(|c| c["evidence"].as_array()).map_or(0, Vec::len);
    stage.check(
        evidence >= 3,
        "web.http on node/web-1 carries the evidence of its checks, with the log that was read this time",
    )?;
    let plan = [
        SCENARIO,
        "-e",
        "demo",
        "-p",
        "site_message=again",
        "--wait-for",
        &format!("node/web-3@{}", version(stage, "node/web-3").await?),
    ];
    let mut args = vec!["plan"];
    args.extend(plan);
    let made = stage.reads(&args).await?;
    stage.check(
        made["satisfiable"] == true,
        "the projection knows that version too: a plan from it binds the hosts",
    )?;
    Ok(id)
}

/// Exports the proof and tries to cheat it.
pub async fn prove(stage: &mut Stage, id: &str) -> Result<(), CliError> {
    stage.chapter("Proof: exported, checked offline, and proof against a changed byte");
    let (file, key) = (stage.path("proof.json"), stage.path("proof.pub"));
    stage
        .types(Who::Ada, &["proof", "export", id, "-f", &file], Exit::Success)
        .await?;
    stage
        .types(Who::Ada, &["proof", "verify", &file, "--key", &key], Exit::Success)
        .await?;
    let bytes = std::fs::read(&file)?;
    let text = String::from_utf8_lossy(&bytes);
    let at = text
        .find("web.http")
        .ok_or_else(|| untrue("the proof does not speak of web.http"))?;
    let mut forged = bytes.clone();
    forged[at] ^= 1;
    let forgery = stage.path("forged.json");
    std::fs::write(&forgery, forged)?;
    stage
        .types(Who::Ada, &["proof", "verify", &forgery, "--key", &key], Exit::Untrue)
        .await?;
    stage.tell("One changed byte, and the proof no longer holds.");
    Ok(())
}

/// Which hosts serve a page that says `message`.
pub async fn pages(stage: &Stage, hosts: &Hosts, message: &str) -> [bool; 3] {
    let mut serve = [false; 3];
    for (index, host) in hosts.hosts.iter().enumerate().take(3) {
        let page = stage.page(&host.address.to_string(), PORT).await;
        serve[index] = page.is_some_and(|page| page.contains(message));
    }
    serve
}

/// The current version of a resource at the catalog.
pub async fn version(stage: &Stage, resource: &str) -> Result<i64, CliError> {
    let value = stage.reads(&["get", "resources", resource]).await?;
    value["version"]
        .as_i64()
        .ok_or_else(|| untrue(format!("{resource} has no version")))
}

/// When the items of a fan-out ended, in the order of the hosts.
async fn ends(stage: &Stage, id: &str, template_node: &str) -> Result<Vec<String>, CliError> {
    let mut times = Vec::new();
    for number in 1..=3 {
        let node = stage.node(id, &format!("{template_node}[node/web-{number}]")).await?;
        times.push(node["ended_at"].as_str().unwrap_or_default().to_owned());
    }
    Ok(times)
}
