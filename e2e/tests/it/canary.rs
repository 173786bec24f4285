//! A secret goes through all services and a real host, is printed by every job in every way, and is found
//! nowhere: not in a database, a file, a log, an answer or a process list.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use control_plane_api::{ListEventsQuery, ListNodeRunsQuery, NodeRunState, PageQuery};
use e2e::{DATABASES, Deployment, Options, Scenario, takes_a_host};
use kernel::id::OperationId;
use serde::Serialize;

use crate::stage::Stage;
use crate::teller::answered;

const CANARY: &str = "-----BEGIN Kestrel0f-----\n\
    Kestrel1f \"quoted\" <&>' é/\\ $HOME `x`\n\
    Kestrel2f+second=line&of%it\n\
    {\"Kestrel3f\": [\"json\", 1]}\n\
    -----END Kestrel4f-----\n";

const PLAYBOOK: &str = r#"
- hosts: all
  gather_facts: false
  vars: {secret: "{{ lookup('file', lookup('env', 'PLATFORM_SECRETS') + '/canary', rstrip=false) }}"}
  tasks:
    - debug: {msg: "{{ secret }} {{ secret | b64encode }} {{ ('x' + secret) | b64encode }} {{ ('xy' + secret) | b64encode }}"}
    - debug: {msg: "{{ secret | urlencode }} {{ secret | to_json }} {{ secret | to_json | to_json }}"}
    - debug: {msg: "{{ item }}"}
      loop: "{{ secret.splitlines() + [secret, secret | b64encode] }}"
    - command: cat
      args: {stdin: "{{ secret }}"}
    - command: base64
      args: {stdin: "{{ secret }}"}
    - set_fact: {kept: "{{ {'inner': secret} }}"}
    - debug: {var: kept}
    - fail: {msg: "it was {{ secret }}"}
      ignore_errors: true
"#;

fn scenario() -> Scenario {
    let head = "name: main\ntitle: Print a secret in every way\ndescription: Nothing of it may be seen anywhere.\n";
    let nodes = r#"nodes:
  - id: play
    title: Print it from a playbook
    kind: job
    job:
      type: ansible
      targets: host
      parameters: {playbook: site.yml, verbosity: 4}
      secrets: [{secret_ref: "vault://ssh/hosts", name: ssh_key}, {secret_ref: "vault://app/canary", name: canary}]
      timeout_seconds: 120
      idempotent: false
  - id: print
    title: Print it from a script
    kind: job
    needs: [play]
    job:
      type: ssh
      targets: host
      parameters:
        script: |
          s=$(cat)
          printf '%s\n' "$s"
          printf '%s\n' "$s" >&2
          printf '%s\n' "$s" | base64
          printf '%s' "$s" | base64 -w0
          echo
          printf '%s\n' "$s" | while IFS= read -r line; do printf '<%s>\n' "$line"; done
          printf '%s' "$s" | head -c 40; sleep 1; printf '%s\n' "$s" | tail -c +41
        checks:
          - {name: seen, type: command_check, capability: site.marked, command: cat $HOME/secrets/canary, expect: {exit_code: 0}}
      output: {evidence: [seen]}
      secrets:
        - {secret_ref: "vault://ssh/hosts", name: ssh_key}
        - {secret_ref: "vault://app/canary", as: stdin, name: in}
        - {secret_ref: "vault://app/canary", name: canary}
      timeout_seconds: 60
      idempotent: false
  - id: keep
    title: Try to keep it in an artifact
    kind: job
    needs: [print]
    job:
      type: ssh
      targets: host
      parameters: {script: cat > "$PLATFORM_ARTIFACTS/kept.txt"}
      output: {artifacts: [kept.txt]}
      secrets:
        - {secret_ref: "vault://ssh/hosts", name: ssh_key}
        - {secret_ref: "vault://app/canary", as: stdin, name: in}
      timeout_seconds: 60
      idempotent: false
"#;
    let template = format!("{head}{}{nodes}", takes_a_host("exclusive"));
    Scenario::with_content("canary", &template, &[("site.yml", PLAYBOOK)])
}

/// What base64 shows of a value wherever it begins within the encoded text.
fn in_base64(value: &str) -> impl Iterator<Item = String> + '_ {
    (0..3_usize).map(move |before| {
        let whole = STANDARD.encode([&b"xy"[..before], value.as_bytes()].concat());
        let (first, last) = ((before * 8).div_ceil(6), (before + value.len()) * 8 / 6);
        whole[first..last].to_owned()
    })
}

fn percent(value: &str) -> String {
    let kept = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(byte);
    let encoded = value.bytes().map(|byte| match byte {
        byte if kept(&byte) => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    });
    encoded.collect()
}

/// Everything that would give it away. Each line has a word of its own, which most forms leave readable.
fn traces() -> Vec<String> {
    let lines: Vec<&str> = CANARY.lines().collect();
    let words = (0..lines.len()).map(|line| format!("Kestrel{line}f"));
    let mut traces: BTreeSet<String> = words.collect();
    traces.insert("kestrel".to_owned());
    for text in lines.iter().copied().chain([CANARY]) {
        traces.extend(in_base64(text));
        // Whatever follows in the same line or the wrapped text: a part is enough to be told.
        traces.extend(in_base64(&text.chars().take(24).collect::<String>()));
        traces.extend([percent(text), percent(text).replace("%20", "+")]);
        let json = serde_json::to_string(text).expect("a text");
        traces.insert(json.trim_matches('"').to_owned());
        let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
        traces.insert(hex(text));
    }
    traces.into_iter().filter(|trace| trace.len() >= 7).collect()
}

struct Search {
    traces: Vec<String>,
    searched: usize,
    found: Vec<String>,
}

impl Search {
    fn new() -> Self {
        Self {
            traces: traces(),
            searched: 0,
            found: Vec::new(),
        }
    }

    fn look(&mut self, place: &str, bytes: &[u8]) {
        self.searched += bytes.len();
        let text = String::from_utf8_lossy(bytes);
        for trace in &self.traces {
            if let Some(at) = text.find(trace.as_str()) {
                let before: Vec<char> = text[..at].chars().rev().take(160).collect();
                let before: String = before.into_iter().rev().collect();
                self.found.push(format!("{place}: {trace:?} after {before:?}"));
            }
        }
    }

    fn look_at(&mut self, place: &str, value: &impl Serialize) {
        self.look(place, &serde_json::to_vec(value).expect("JSON"));
    }
}

/// Looks at every process again and again until told to stop; what it found, and how often ansible was seen.
fn watch_processes(stop: Arc<AtomicBool>) -> std::thread::JoinHandle<(Search, usize)> {
    std::thread::spawn(move || {
        let (mut search, mut ansible) = (Search::new(), 0);
        while !stop.load(Ordering::Relaxed) {
            for process in fs::read_dir("/proc").expect("processes").flatten() {
                for part in ["cmdline", "environ"] {
                    // A process that has ended meanwhile, or is another account's, has nothing to show.
                    let Ok(bytes) = fs::read(process.path().join(part)) else {
                        continue;
                    };
                    let text = String::from_utf8_lossy(&bytes);
                    ansible += usize::from(part == "cmdline" && text.contains("ansible-playbook"));
                    search.look(&format!("{part} of {}", process.path().display()), &bytes);
                }
            }
        }
        (search, ansible)
    })
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let kind = entry.file_type().expect("a kind");
        if kind.is_dir() {
            files.extend(files_below(&entry.path()));
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    files
}

async fn look_into_databases(search: &mut Search, deployment: &Deployment) {
    let tables = "SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname) FROM pg_class c \
                  JOIN pg_namespace n ON n.oid = c.relnamespace \
                  WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1";
    for database in DATABASES {
        let tables = deployment.rows(database, tables).await;
        assert!(tables.len() > 5, "{database} has tables");
        for table in tables.into_iter().flatten().flatten() {
            // Bytes as text where they are text.
            let all = format!("SET bytea_output = 'escape'; SELECT t::text FROM {table} AS t");
            for row in deployment.rows(database, &all).await {
                search.look(&format!("{database} {table}"), row.concat_text().as_bytes());
            }
        }
    }
}

trait ConcatText {
    fn concat_text(&self) -> String;
}

impl ConcatText for Vec<Option<String>> {
    fn concat_text(&self) -> String {
        self.iter().flatten().cloned().collect()
    }
}

/// Everything that the services tell of the operation. Says what the jobs printed.
async fn look_at_answers(search: &mut Search, stage: &Stage, id: OperationId) -> String {
    let Stage { teller, .. } = stage;
    let mut printed = String::new();
    search.look_at("operation", &teller.operation(id).await);
    let events = ListEventsQuery {
        limit: Some(1000),
        ..Default::default()
    };
    search.look_at(
        "events",
        &answered("events", || teller.control.events(id, &events)).await,
    );
    let runs = ListNodeRunsQuery::default();
    search.look_at(
        "node runs",
        &answered("runs", || teller.control.node_runs(id, &runs)).await,
    );
    let audit = PageQuery::default();
    search.look_at("audit", &answered("audit", || teller.control.audit_facts(&audit)).await);
    search.look("proof", &answered("proof", || teller.control.proof(id)).await);
    let query = execution_plane_api::AttemptListQuery {
        operation_id: Some(id),
        ..Default::default()
    };
    let attempts = answered("attempts", || teller.execution.attempts(&query)).await;
    for attempt in attempts.items.iter().map(|attempt| attempt.attempt_id) {
        search.look_at(
            "attempt",
            &answered("attempt", || teller.execution.attempt(attempt)).await,
        );
        let output = answered("output", || teller.execution.whole_output(attempt)).await;
        search.look("output", &output);
        printed.push_str(&String::from_utf8_lossy(&output));
        let all = execution_plane_api::ArtifactListQuery::default();
        for artifact in answered("artifacts", || teller.execution.artifacts(attempt, &all))
            .await
            .items
        {
            let name = artifact.name.expect("an artifact of an attempt has a name");
            let bytes = answered("artifact", || teller.execution.artifact(attempt, &name)).await;
            assert!(String::from_utf8_lossy(&bytes).contains("******"), "{name} is masked");
            search.look(&name, &bytes);
        }
    }
    printed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn field_note_47_a_canary_that_goes_through_all_services_is_found_nowhere() {
    let stage = Stage::up(&Options::default()).await;
    {
        let outside = tempfile::tempdir().expect("a temporary directory");
        let source = outside.path().join("canary");
        fs::write(&source, CANARY).expect("own file");
        let (source, data) = (
            source.display().to_string(),
            stage.deployment.data().display().to_string(),
        );
        stage.deployment.platform(&[
            "secret",
            "put",
            "vault://app/canary",
            "--from",
            &source,
            "--data",
            &data,
        ]);
    }
    stage.teller.publish(&scenario()).await;
    let stop = Arc::new(AtomicBool::new(false));
    let watching = watch_processes(stop.clone());
    let id = stage.teller.start("canary", "canary").await;
    let operation = stage.teller.settled(id).await;
    stop.store(true, Ordering::Relaxed);
    let (processes, ansible) = watching.join().expect("no panic");
    let mut search = Search::new();
    let printed = look_at_answers(&mut search, &stage, id).await;
    let ended = stage.teller.nodes_in(id, NodeRunState::Succeeded).await;
    assert_eq!(ended, ["play", "print"], "{operation:#?}\n{printed}");
    let refused = stage.teller.nodes_in(id, NodeRunState::Failed).await;
    assert_eq!(refused, ["keep"], "an artifact with a secret in it is not stored");
    assert!(
        printed.matches("******").count() > 30,
        "it was printed and masked:\n{printed}"
    );
    assert!(ansible > 0, "the processes were looked at while ansible ran");
    look_into_databases(&mut search, &stage.deployment).await;
    stage.deployment.stop().await;
    let files = files_below(stage.deployment.path());
    assert!(
        files.iter().any(|file| file.ends_with("control-plane.log")),
        "logs are files here"
    );
    for file in files {
        search.look(&file.display().to_string(), &fs::read(&file).unwrap_or_default());
    }
    assert!(search.searched > 1_000_000, "there was something to look at");
    let found = [processes.found, search.found].concat();
    assert!(
        found.is_empty(),
        "{} hits: {:#?}",
        found.len(),
        found.iter().take(20).collect::<Vec<_>>()
    );
}

#[test]
fn the_search_finds_every_form_that_it_looks_for() {
    let json = serde_json::to_string(CANARY).expect("a text");
    for shown in [
        CANARY.to_owned(),
        CANARY.lines().nth(2).expect("a line").to_owned(),
        json.clone(),
        serde_json::to_string(&json).expect("a text"),
        STANDARD.encode(CANARY),
        STANDARD.encode(format!("key={CANARY}")),
        STANDARD.encode(format!("ab{}", CANARY.lines().nth(3).expect("a line"))),
        percent(CANARY),
        CANARY.to_lowercase(),
    ] {
        let mut search = Search::new();
        search.look("here", format!("<<{shown}>>").as_bytes());
        assert!(!search.found.is_empty(), "{shown}");
    }
}
