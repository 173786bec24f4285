//! One test that uses every command at least once against a live platform, as people and as programs do.

use std::collections::BTreeSet;

use e2e::{Deployment, Options, Role, World};
use serde_json::Value;

use super::person::Person;
use super::{catalog, coverage, pack};

const GATED: &str = "tried/gated";
const ENDLESS: &str = "tried/endless";

/// The deployment itself runs by these; `up` and `demo` have tests of their own.
const ELSEWHERE: [&str; 5] = ["database", "serve", "runner", "up", "demo"];

struct Cast {
    /// Operates.
    ada: Person,
    /// Approves.
    bob: Person,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_command_does_what_it_says_for_people_and_for_programs() {
    let deployment = Deployment::start(&Options::default()).await;
    let _world = World::start(&deployment, 1).await;
    let cast = Cast {
        ada: Person::of(&deployment, "person:ada", &["operator", "admin", "viewer", "approver"]),
        bob: Person::of(&deployment, "person:bob", &["approver", "viewer"]),
    };
    let directory = deployment.path().to_owned();
    catalog::works_alone(&deployment, &cast.ada);
    pack::publish(&directory, &cast.ada);
    catalog::describes_what_there_is(&directory, &cast.ada);
    catalog::drains_a_runner(&cast.ada);
    cast.ada.waits_for_the_catalog();
    catalog::lists_every_kind(&cast.ada);
    catalog::rebuilds_the_copy(&cast.ada);

    cast.plans();
    let id = cast.runs_to_a_gate();
    cast.approves_what_is_shown(&id);
    cast.looks_at_what_failed(&id);
    cast.retries_with_another_parameter(&id);
    cast.proves(&directory, &deployment, &id);
    cast.rejects();
    cast.pauses_and_skips();
    cast.cancels();
    cast.resolves_what_a_lost_runner_left(&deployment).await;
    cast.cancels_by_force(&deployment).await;
    cast.reads_the_audit();

    let typed: BTreeSet<String> = cast.ada.typed().union(&cast.bob.typed()).cloned().collect();
    let mut untried = coverage::untried(&coverage::commands(), &typed);
    untried.retain(|command| !ELSEWHERE.contains(&command.as_str()));
    assert!(untried.is_empty(), "commands that no test tries: {untried:?}");
    deployment.stop().await;
}

impl Cast {
    fn plans(&self) {
        self.ada
            .types(&["plan", GATED, "-e", "test", "-p", "code=1"], 0)
            .tells(&[
                "bound to node/web-1",
                "waits for approval by role approver",
                "Blast radius",
            ]);
        let plan = self.ada.reads(&["plan", GATED, "-e", "test"], 0);
        let id = plan["id"].as_str().expect("an id");
        self.ada
            .types(&["describe", "plan", id], 0)
            .tells(&[id, plan["digest"].as_str().expect("a digest")]);
        self.ada
            .types(&["plan", GATED, "-e", "nowhere"], 3)
            .tells(&["No plan", "slot host"]);
        let unmet = self.ada.reads(&["plan", GATED, "-e", "nowhere"], 3);
        assert_eq!(unmet["satisfiable"], false);
    }

    /// An operation that waits for Bob; its second job will fail.
    fn runs_to_a_gate(&self) -> String {
        let said = self
            .ada
            .types(
                &[
                    "run",
                    GATED,
                    "-e",
                    "test",
                    "-p",
                    "code=1",
                    "--until-gate",
                    "--reason",
                    "a test",
                ],
                8,
            )
            .tells(&["✔ look", "ask waits for approval by role approver"]);
        let first = said.out.lines().next().expect("a line");
        first.split_whitespace().nth(1).expect("an id").to_owned()
    }

    fn approves_what_is_shown(&self, id: &str) {
        let gates = self.bob.reads(&["get", "gates", id], 0);
        let digest = gates[0]["covers_digest"].as_str().expect("a digest").to_owned();
        for command in [["get", "gates", id].as_slice(), &["describe", "gate", id]] {
            self.bob.types(command, 0).tells(&[
                "Act with code 1?",
                "person:ada",
                "role approver, not person:ada",
                "2 nodes: act, after",
                "node/web-1",
                "destroys nothing",
                "denied in ",
                &digest,
            ]);
        }
        self.bob
            .types(&["describe", "gate", &format!("{id}/ask")], 0)
            .tells(&["code = 1", "tried/gated 1.0.0 in test"]);
        // The one who asked may not; nobody approves without having said what.
        self.ada
            .types(&["approve", id], 6)
            .tells(&["you may not decide ask", "person:ada", "hint:"]);
        self.ada.types(&["approve", id, "--yes"], 6);
        self.bob.types(&["approve", id], 2).tells(&[
            "Act with code 1?",
            "nothing was approved",
            &format!("--digest {}", &digest[..12]),
        ]);
        self.bob
            .types(&["approve", id, "--digest", "000000000000"], 5)
            .tells(&["nothing was decided", &digest]);
        assert_eq!(self.bob.reads(&["get", "gates", id], 0)[0]["state"], "open");
        self.bob
            .types(&["approve", id, "--digest", &digest[..12], "-m", "looks right"], 0)
            .tells(&[
                "approved gate ask",
                "2 nodes on node/web-1",
                &format!("bound to {digest}"),
            ]);
    }

    fn looks_at_what_failed(&self, id: &str) {
        self.ada
            .types(&["watch", id], 1)
            .tells(&["✘ act", "failed: act", "not started: after", "done: look, ask"]);
        let lines = self.ada.reads_lines(&["watch", id], 1);
        assert_eq!(lines.last().expect("the operation")["state"], "failed");
        self.ada
            .types(&["describe", "operation", id], 0)
            .tells(&["failed", "person:ada", "a test", "NODE", "act"]);
        self.ada
            .types(&["get", "operations", "--state", "failed"], 0)
            .tells(&[id]);
        self.ada.types(&["get", "operations", id], 0).tells(&[id]);
        self.ada
            .types(&["get", "node-runs", id, "--state", "failed"], 0)
            .tells(&["act"])
            .keeps_to_itself("look");
        self.ada
            .types(&["get", "events", id], 0)
            .tells(&["gate_opened", "person:bob"]);
        assert!(
            self.ada
                .reads(&["get", "events", id], 0)
                .as_array()
                .is_some_and(|all| all.len() > 5)
        );
        self.ada
            .types(&["logs", id], 0)
            .tells(&["── look (", "looking\n", "── act (", "acting\n"]);
        self.ada
            .types(&["logs", id, "--node", "act", "-f"], 0)
            .tells(&["act | acting", "act ── ended: failed"])
            .keeps_to_itself("looking");
        let chunks = self.ada.reads_lines(&["logs", id], 0);
        let text_of = |node: &str| -> String {
            let of_node = chunks.iter().filter(|chunk| chunk["node_id"] == node);
            of_node.filter_map(|chunk| chunk["text"].as_str()).collect()
        };
        assert!(text_of("look").contains("looking"), "{chunks:#?}");
        assert!(text_of("act").contains("acting"), "{chunks:#?}");
        assert!(chunks.iter().all(|chunk| chunk["attempt_id"].is_string()));
        self.looks_at_an_attempt(id);
    }

    fn looks_at_an_attempt(&self, id: &str) {
        let attempts = self.ada.reads(&["get", "attempts", "--operation", id], 0);
        assert_eq!(attempts.as_array().map(Vec::len), Some(2));
        let of = |node: &str| -> String {
            let all = attempts.as_array().into_iter().flatten();
            let found = all.into_iter().find(|attempt| attempt["plan_node_id"] == node);
            found
                .and_then(|attempt| attempt["attempt_id"].as_str())
                .expect("an attempt")
                .to_owned()
        };
        let (look, act) = (of("look"), of("act"));
        self.ada
            .types(&["get", "attempts", &act], 0)
            .tells(&[&act, "failed"])
            .keeps_to_itself(&look);
        self.ada
            .types(&["describe", "attempt", &act], 0)
            .tells(&[&format!("✘ attempt {act}  failed"), "act of operation"]);
        self.ada.types(&["logs", &act], 0).tells(&["acting"]);
        let followed = self.ada.reads_lines(&["logs", "-f", &act], 0);
        assert_eq!(followed.last().expect("the end")["end"], "failed");
        self.ada
            .types(&["get", "artifacts", &look], 0)
            .tells(&["report", "5 B"]);
        assert_eq!(self.ada.types(&["artifact", &look, "report"], 0).out, "seen\n");
        self.ada
            .types(&["artifact", &look, "reprt"], 4)
            .tells(&["has no artifact \"reprt\"", "platform get artifacts"]);
    }

    fn retries_with_another_parameter(&self, id: &str) {
        self.ada
            .types(&["retry", id, "--set", "code=0", "--until-gate", "-m", "mended"], 8)
            .tells(&["ask waits for approval"]);
        self.bob
            .types(&["approve", id, "--yes"], 0)
            .tells(&["approved gate ask"]);
        self.ada
            .types(&["watch", id], 0)
            .tells(&["✔ act", "✔ after", "succeeded"]);
        assert_eq!(self.ada.reads(&["get", "operations", id], 0)["run"], 2);
    }

    fn proves(&self, directory: &std::path::Path, deployment: &Deployment, id: &str) {
        let file = directory.join("proof.json").display().to_string();
        let key = deployment.data().join("proof.pub").display().to_string();
        self.ada
            .types(&["proof", "export", id, "-f", &file], 0)
            .tells(&["proof of operation", &file]);
        self.ada
            .types(&["proof", "verify", &file, "--key", &key], 0)
            .tells(&["holds", "gate ask, by person:bob"]);
        assert_eq!(
            self.ada.reads(&["proof", "verify", &file, "--key", &key], 0)["holds"],
            true
        );
        let text = std::fs::read_to_string(&file).expect("own file");
        std::fs::write(&file, text.replacen("person:bob", "person:eve", 1)).expect("own file");
        self.ada
            .types(&["proof", "verify", &file, "--key", &key], 1)
            .tells(&["the proof does not hold"]);
    }

    fn rejects(&self) {
        let id = self.ada.starts(&[GATED, "-e", "test"]);
        self.ada.types(&["watch", &id, "--until-gate"], 8);
        let gate = self.bob.reads(&["reject", &id, "-m", "not today"], 0);
        assert_eq!(
            (gate["state"].as_str(), gate["decided_by"].as_str()),
            (Some("rejected"), Some("person:bob"))
        );
        self.ada.types(&["watch", &id], 1).tells(&["failed", "ask"]);
        self.bob
            .types(&["approve", &id], 5)
            .tells(&["no gate of this operation waits for a decision: ask is rejected by person:bob"]);
    }

    fn pauses_and_skips(&self) {
        let id = self.ada.starts(&[GATED, "-e", "test"]);
        self.ada.types(&["watch", &id, "--until-gate"], 8);
        self.ada
            .types(&["pause", &id, "-m", "let me look"], 0)
            .tells(&[&format!("operation {id} is paused")]);
        self.bob.types(&["approve", &id, "--yes"], 0);
        assert_eq!(self.ada.reads(&["get", "operations", &id], 0)["state"], "paused");
        self.ada.types(&["skip", &id, "after", "-m", "not wanted"], 0);
        let resumed = self.ada.reads(&["resume", &id], 0);
        assert_eq!(resumed["id"], id.as_str());
        self.ada.types(&["watch", &id], 0).tells(&["✔ act", "skipped"]);
    }

    fn reads_the_audit(&self) {
        self.ada
            .types(&["get", "audit"], 0)
            .tells(&["WHO", "person:ada", "person:bob"]);
        let refused = |entry: &&Value| entry["allowed"] == false && entry["actor"] == "person:ada";
        let audit = self.ada.reads(&["get", "audit"], 0);
        assert!(
            audit.as_array().into_iter().flatten().any(|entry| refused(&entry)),
            "{audit:#}"
        );
        for (service, action) in [
            ("resource-catalog", "resource.put"),
            ("execution-plane", "attempt.submit"),
        ] {
            self.ada
                .types(&["get", "audit", "--service", service], 0)
                .tells(&["WHO", action, "127.0.0.1", "accepted"]);
        }
        let chains = self.ada.reads(&["audit", "verify"], 0);
        let heads: Vec<String> = chains.as_array().into_iter().flatten().map(head).collect();
        assert_eq!(heads.len(), 3, "{chains:#}");
        for head in &heads {
            self.ada.types(&["audit", "verify", "--known-head", head], 0).tells(&[
                "✔ resource-catalog",
                "✔ control-plane",
                "✔ execution-plane",
            ]);
        }
        let (name, _) = heads[0].rsplit_once(':').unwrap_or_default();
        let other = format!("{name}:{}", "0".repeat(64));
        self.ada
            .types(&["audit", "verify", "--known-head", &other], 1)
            .tells(&["✘ resource-catalog", "made anew"]);
    }

    /// An operation whose job runs, and its attempt.
    fn runs_endlessly(&self) -> (String, String) {
        let id = self.ada.starts(&[ENDLESS, "-e", "test"]);
        let running = |attempts: &Value| attempts[0]["state"] == "running";
        let attempts = self.ada.until(&["get", "attempts", "--operation", &id], running);
        let attempt = attempts[0]["attempt_id"].as_str().expect("an id").to_owned();
        (id, attempt)
    }

    fn cancels(&self) {
        let (id, _) = self.runs_endlessly();
        self.ada
            .types(&["get", "claims", "node/web-1"], 0)
            .tells(&[&id, "exclusive"]);
        let other = self.ada.types(&["run", ENDLESS, "-e", "test", "--no-queue"], 1);
        other.tells(&["node/web-1", &id]);
        self.ada
            .types(&["cancel", &id, "-m", "enough"], 0)
            .tells(&["cancelled"]);
        assert_eq!(self.ada.reads(&["get", "operations", &id], 0)["state"], "cancelled");
        self.ada.types(&["watch", &id], 9);
    }

    async fn resolves_what_a_lost_runner_left(&self, deployment: &Deployment) {
        let (id, _) = self.runs_endlessly();
        deployment.kill(Role::Runner).await;
        self.ada.types(&["watch", &id], 10).tells(&[
            "? wait is unresolved",
            &format!("platform resolve {id} 'wait' --outcome failed"),
            "keeps what it has claimed",
        ]);
        self.ada
            .types(
                &[
                    "resolve",
                    &id,
                    "wait",
                    "--outcome",
                    "failed",
                    "-m",
                    "looked: it is gone",
                ],
                0,
            )
            .tells(&[&id]);
        self.ada.types(&["watch", &id], 1).tells(&["failed: wait"]);
        deployment.launch(Role::Runner, &[]);
    }

    /// A cancel that nobody answers is not waited for without end.
    async fn cancels_by_force(&self, deployment: &Deployment) {
        let (id, _) = self.runs_endlessly();
        deployment.kill(Role::ExecutionPlane).await;
        let asked = self.ada.reads(&["cancel", "--no-wait", &id], 0);
        assert_eq!(asked["state"], "cancelling");
        self.ada
            .types(&["cancel", "--force", &id, "-m", "execution-plane is away"], 10)
            .tells(&["unresolved", "? wait is unresolved"]);
        self.ada
            .types(&["resolve", &id, "wait", "--outcome", "failed", "-m", "looked"], 0);
        deployment.launch(Role::ExecutionPlane, &[]);
        deployment.wait_ready(Role::ExecutionPlane).await;
    }
}

/// A chain that holds, as it is kept elsewhere.
fn head(chain: &Value) -> String {
    assert_eq!(chain["holds"], true, "{chain:#}");
    let (service, head) = (chain["service"].as_str().unwrap_or_default(), &chain["head"]);
    format!(
        "{service}:{}:{}",
        head["sequence"],
        head["hash"].as_str().unwrap_or_default()
    )
}
