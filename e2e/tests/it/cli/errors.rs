//! What the commands say when they cannot do what was asked: what was wrong, where, and what to do.

use e2e::{Deployment, Options, Role};

use super::pack;
use super::person::Person;

const NOBODY: &str = "01a22d57-54bd-7360-80ca-5ae72009c1ce";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_error_says_what_was_wrong_where_and_what_to_do() {
    let deployment = Deployment::start(&Options::default()).await;
    let ada = Person::of(&deployment, "person:ada", &["operator", "admin", "viewer"]);
    pack::publish(deployment.path(), &ada);
    names_that_nothing_has(&ada);
    lines_that_mean_nothing(&ada);
    tokens_that_are_none(&deployment, &ada);
    files_with_faults(&deployment, &ada);
    edits_over_another(&deployment, &ada);
    a_service_that_is_away(&deployment, &ada).await;
    deployment.stop().await;
}

fn names_that_nothing_has(ada: &Person) {
    for (line, code) in [
        ("get resources node/nothing", 4),
        ("describe resource node/nothing", 4),
        ("get resource-types no.type", 4),
        ("get capabilities no.capability", 4),
        ("get packs nothing", 4),
        ("get packs tried@9.9.9", 4),
        ("get runners nobody", 4),
        ("describe runner nobody", 4),
        ("get projections nothing", 4),
        ("get policies nothing", 4),
        ("drain nobody", 4),
        ("rebuild nothing", 4),
        ("edge add node/nothing part_of rack/nothing", 4),
        ("withdraw node/nothing os.linux", 4),
        ("describe operation NOBODY", 4),
        ("describe plan NOBODY", 4),
        ("describe attempt NOBODY", 4),
        ("describe gate NOBODY", 4),
        ("watch NOBODY", 4),
        ("logs NOBODY", 4),
        ("approve NOBODY", 4),
        ("cancel NOBODY", 4),
        ("retry NOBODY", 4),
        ("proof export NOBODY -f /dev/null", 4),
        ("artifact NOBODY report", 4),
        ("plan nothing/main -e test", 4),
        ("plan tried/nothing -e test", 4),
    ] {
        let line = line.replace("NOBODY", NOBODY);
        let args: Vec<&str> = line.split_whitespace().collect();
        let said = ada.types(&args, code);
        assert!(said.err.starts_with("error: "), "{line}: {}", said.err);
        assert!(said.out.is_empty(), "{line}: {}", said.out);
        let error = ada.reads(&args, code)["error"].clone();
        assert_eq!(error["exit_code"], code, "{line}");
        assert!(error["message"].as_str().is_some_and(|text| !text.is_empty()), "{line}");
    }
}

fn lines_that_mean_nothing(ada: &Person) {
    for (line, part) in [
        ("get nonsense", "kinds: resources"),
        ("get gates", "platform get gates OPERATION"),
        ("get runners -e test", "--environment"),
        ("get attempts -l a=b", "--selector"),
        ("get projections --limit 1", "--limit"),
        ("get operations --state gone", "--state"),
        ("describe nonsense x", "one of: resource"),
        ("describe plan x", "hint:"),
        ("describe attempt x", "hint:"),
        ("watch x", "'platform get operations' lists them"),
        ("logs x", "hint:"),
        ("plan tried -e test", "PACK/TEMPLATE"),
        ("plan tried/gated -e test -p code", "there is no NAME= in it"),
        ("edge add node/a beside node/b", "hosted_on"),
        ("get resources web-1", "web-1"),
        ("token mint person:eve --role king", "king"),
        ("approve 01a22d57-54bd-7360-80ca-5ae72009c1ce --gate", "--gate"),
    ] {
        let args: Vec<&str> = line.split_whitespace().collect();
        ada.types(&args, 2).tells(&[part]);
    }
    ada.types(&["plan", "tried/gated", "-e", "test", "-p", "code=many"], 3)
        .tells(&["code"]);
}

fn tokens_that_are_none(deployment: &Deployment, ada: &Person) {
    let stranger = Person::with_token(deployment, "not.a.token");
    stranger
        .types(&["get", "resources"], 6)
        .tells(&["error: ", "platform token mint", "PLATFORM_TOKEN"]);
    let error = stranger.reads(&["get", "operations"], 6)["error"].clone();
    assert_eq!(error["code"], "token_invalid");
    let viewer = Person::of(deployment, "person:vera", &["viewer"]);
    viewer.types(&["get", "operations"], 0).tells(&["no operations"]);
    let file = deployment.path().join("not-mine.yaml");
    let text = "kind: Resource\nname: rack/a\nspec: {resource_type: topology.rack}\n";
    std::fs::write(&file, text).expect("own file");
    let pack = deployment.path().join("tried").display().to_string();
    let file = file.display().to_string();
    for args in [["pack", "push", &pack], ["apply", "-f", &file]] {
        viewer.types(&args, 6).tells(&["role", "platform token mint"]);
    }
    let lost = ada
        .command(&["get", "resources"])
        .env("PLATFORM_CONTEXT", "/nowhere/context.toml")
        .output()
        .expect("the program runs");
    let text = String::from_utf8_lossy(&lost.stderr).into_owned();
    assert_eq!(lost.status.code(), Some(2), "{text}");
    assert!(
        text.contains("/nowhere/context.toml") && text.contains("platform up"),
        "{text}"
    );
}

fn files_with_faults(deployment: &Deployment, ada: &Person) {
    let directory = deployment.path().join("faults");
    std::fs::create_dir_all(&directory).expect("own directory");
    let write = |name: &str, text: &str| -> String {
        let path = directory.join(name);
        std::fs::write(&path, text).expect("own file");
        path.display().to_string()
    };
    let broken = write("broken.yaml", "kind: Resource\nname: [node/a\n");
    ada.types(&["apply", "-f", &broken], 2)
        .tells(&[&format!("{broken}:"), "this is not YAML"]);
    let unknown = write(
        "unknown.yaml",
        "kind: Resource\nname: node/a\nspec:\n  resource_type: compute.node\n  colour: red\n  labels:\n    a: 1\n",
    );
    ada.types(&["apply", "-f", &unknown], 2).tells(&[
        &format!("{unknown}:5:3"),
        "unknown field",
        &format!("{unknown}:7:5"),
    ]);
    let refused = write(
        "refused.yaml",
        "kind: Resource\nname: node/a\nspec:\n  resource_type: no.such.type\n",
    );
    ada.types(&["apply", "-f", &refused], 3).tells(&[
        &format!("{refused}:4:3"),
        "no.such.type",
        "(0 documents applied)",
    ]);
    ada.types(&["apply", "-f", "/nowhere.yaml"], 2)
        .tells(&["/nowhere.yaml: cannot be read"]);

    let pack = pack::write(&directory);
    let template = pack.join("templates/gated.yaml");
    let text = std::fs::read_to_string(&template).expect("own file");
    std::fs::write(&template, text.replace("kind: approval", "kind: aproval")).expect("own file");
    let line = 1 + text
        .lines()
        .position(|line| line.contains("kind: approval"))
        .expect("a gate");
    let shown = pack.display().to_string();
    for command in ["validate", "push"] {
        ada.types(&["pack", command, &shown], 2)
            .tells(&[&format!("{}:{line}:", template.display()), "aproval"]);
    }
    let config = write("runner.toml", "capacity = \"many\"\nnonsense = 1\n");
    ada.types(&["config", "check", "runner", "--config", &config], 2)
        .tells(&["capacity", "nonsense", "hint:"]);
    let evidence = write("evidence.json", "{");
    ada.types(
        &[
            "resolve",
            NOBODY,
            "a",
            "--outcome",
            "succeeded",
            "-m",
            "x",
            "--evidence",
            &evidence,
        ],
        2,
    )
    .tells(&[&evidence, "is no list of evidence"]);
}

/// A change by somebody else is not written over.
fn edits_over_another(deployment: &Deployment, ada: &Person) {
    let file = deployment.path().join("edited.yaml");
    let write = |row: &str| {
        let text = format!(
            "kind: Resource\nname: rack/edited\nspec:\n  resource_type: topology.rack\n  labels: {{row: '{row}'}}\n"
        );
        std::fs::write(&file, text).expect("own file");
    };
    let path = file.display().to_string();
    write("1");
    ada.types(&["apply", "-f", &path], 0).tells(&["created"]);
    write("2");
    ada.types(&["apply", "-f", &path, "--at-version", "1"], 0)
        .tells(&["changed"]);
    write("3");
    ada.types(&["apply", "-f", &path, "--at-version", "1"], 5)
        .tells(&["rack/edited", "version 2"]);
    let labels = ada.reads(&["get", "resources", "rack/edited"], 0)["labels"].clone();
    assert_eq!(labels, serde_json::json!({"row": "2"}));
    let two = deployment.path().join("faults").display().to_string();
    ada.types(&["apply", "-f", &two, "--at-version", "1"], 2);
}

async fn a_service_that_is_away(deployment: &Deployment, ada: &Person) {
    deployment.kill(Role::ControlPlane).await;
    let address = deployment.address(Role::ControlPlane).to_owned();
    for line in ["get operations", "plan tried/gated -e test", "cancel NOBODY"] {
        let line = line.replace("NOBODY", NOBODY);
        let args: Vec<&str> = line.split_whitespace().collect();
        ada.types(&args, 7)
            .tells(&[&address, "cannot be reached", "platform up"]);
    }
    let error = ada.reads(&["get", "packs"], 7)["error"].clone();
    assert_eq!(error["exit_code"], 7);
    ada.types(&["get", "resources"], 0);
    deployment.launch(Role::ControlPlane, &[]);
    deployment.wait_ready(Role::ControlPlane).await;
    ada.types(&["get", "operations"], 0);
}
