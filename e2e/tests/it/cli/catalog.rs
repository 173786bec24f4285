//! Commands about what there is and who runs jobs: nothing of them starts an operation.

use std::path::Path;

use e2e::Deployment;
use serde_json::json;

use super::person::Person;

const FILES: &str = "kind: Resource
name: rack/north
spec:
  resource_type: topology.rack
  environment: test
  labels: {row: '7'}
  lifecycle_status: running
---
kind: CommandPolicy
name: only-looking
spec:
  allow:
    - argv: [uname, '...']
  paths: ['/usr/bin/*']
  forbid_shell: true
";

/// Files, edges, capabilities: applied, looked at, taken away.
pub fn describes_what_there_is(directory: &Path, ada: &Person) {
    let file = directory.join("north.yaml");
    std::fs::write(&file, FILES).expect("own file");
    let file = file.display().to_string();
    ada.types(&["apply", "-f", &file], 0)
        .tells(&["Resource rack/north created", "CommandPolicy only-looking created"]);
    let again = ada.reads(&["apply", "-f", &file], 0);
    assert_eq!(
        again,
        json!([
            {"kind": "Resource", "name": "rack/north", "outcome": "unchanged"},
            {"kind": "CommandPolicy", "name": "only-looking", "outcome": "unchanged"},
        ])
    );
    ada.types(&["get", "command-policies", "only-looking"], 0).tells(&[
        "version 1",
        "uname ...",
        "/usr/bin/*",
        "shells        forbidden",
    ]);
    assert_eq!(
        ada.reads(&["get", "policy", "only-looking"], 0)["body"]["forbid_shell"],
        true
    );

    ada.types(&["edge", "add", "node/web-1", "part_of", "rack/north"], 0)
        .tells(&["edge node/web-1 part_of rack/north added"]);
    ada.types(&["edge", "add", "node/web-1", "part_of", "rack/north"], 0)
        .tells(&["was there already"]);
    ada.types(&["get", "edges", "node/web-1"], 0)
        .tells(&["node/web-1  part_of  rack/north"]);
    let after = ada.reads(&["edge", "remove", "node/web-1", "part_of", "rack/north"], 0);
    assert_eq!(after["edges"], json!([]));
    ada.types(&["get", "edges", "node/web-1"], 0)
        .tells(&["no edges from node/web-1"]);

    ada.types(
        &["observe", "node/web-1", "site.marked", "--source", "seen by a person"],
        0,
    )
    .tells(&["node/web-1 provides site.marked"]);
    let resource = ada.reads(&["describe", "resource", "node/web-1"], 0);
    assert_eq!(resource["provided_capabilities"].as_array().map(Vec::len), Some(2));
    ada.types(&["describe", "resource", "node/web-1"], 0).tells(&[
        "node/web-1  compute.node in test",
        "passed command_check seen by a person",
    ]);
    ada.types(&["withdraw", "node/web-1", "site.marked"], 0)
        .tells(&["node/web-1 no longer provides site.marked"]);
    ada.types(&["withdraw", "node/web-1", "site.marked"], 4)
        .tells(&["does not provide site.marked", "hint:"]);
}

/// Each kind, as a table with its headings and as JSON.
pub fn lists_every_kind(ada: &Person) {
    for (kind, heading) in [
        ("resources", "RESOURCE"),
        ("resource-types", "TYPE"),
        ("capabilities", "CAPABILITY"),
        ("packs", "PACK"),
        ("projections", "PROJECTION"),
        ("runners", "RUNNER"),
    ] {
        let table = ada.types(&["get", kind], 0);
        assert!(table.out.starts_with(heading), "{kind}:\n{}", table.out);
        assert!(
            table.out.lines().all(|line| line == line.trim_end()),
            "{kind}:\n{}",
            table.out
        );
        let items = ada.reads(&["get", kind], 0);
        let rows = table.out.lines().count() - 1;
        assert!(items.as_array().is_some_and(|all| all.len() >= rows), "{kind}");
    }
    ada.types(&["get", "resources", "node/web-1"], 0)
        .tells(&["compute.node"]);
    ada.types(&["get", "resources", "-l", "row=7"], 0)
        .tells(&["rack/north"])
        .keeps_to_itself("node/web-1");
    ada.types(&["get", "resources", "--capability", "os.linux"], 0)
        .tells(&["node/web-1"])
        .keeps_to_itself("rack/north");
    let cut = ada.types(&["get", "resource-types", "--limit", "2"], 0);
    assert_eq!(cut.out.lines().count(), 3, "{}", cut.out);
    cut.tells(&["these are the first 2; there are more"]);
    ada.types(&["get", "claims"], 0).tells(&["no claims"]);
    ada.types(&["get", "claims", "node/web-1"], 0)
        .tells(&["no claims on node/web-1"]);
    ada.types(&["get", "packs", "tried"], 0)
        .tells(&["tried", "1.0.0", "endless gated"]);
    ada.types(&["get", "projections", "catalog"], 0).tells(&["catalog"]);
    assert_eq!(ada.reads(&["get", "projections", "catalog"], 0)["parked"], json!([]));
}

/// The copy of the catalog, made anew.
pub fn rebuilds_the_copy(ada: &Person) {
    ada.types(&["rebuild", "catalog", "-m", "a test"], 0)
        .tells(&["is as the catalog was at revision"]);
    assert_eq!(ada.reads(&["rebuild"], 0)["rebuilding"], false);
}

/// Runners: looked at, given no more work, given work again.
pub fn drains_a_runner(ada: &Person) {
    let runner = ada.until(&["get", "runners"], |all| all[0]["status"] == "online");
    let name = runner[0]["name"].as_str().expect("a name");
    ada.types(&["drain", name], 0)
        .tells(&["is given no further work; it still has 0 attempts"]);
    assert_eq!(ada.reads(&["get", "runners", name], 0)["status"], "draining");
    ada.types(&["drain", name, "--end"], 0).tells(&["is given work again"]);
    ada.types(&["describe", "runner", name], 0)
        .tells(&[&format!("name: {name}"), "status: online"]);
}

/// What needs no platform: codes, configuration, tokens, secrets, names for tests.
pub fn works_alone(deployment: &Deployment, ada: &Person) {
    ada.types(&["exit-codes"], 0)
        .tells(&["CODE", "a service cannot be reached"]);
    assert!(
        ada.reads(&["exit-codes"], 0)
            .as_array()
            .is_some_and(|all| all.len() > 8)
    );
    for role in ["resource-catalog", "control-plane", "execution-plane", "runner"] {
        let file = deployment
            .data()
            .join(format!("config/{role}.toml"))
            .display()
            .to_string();
        ada.types(&["config", "check", role, "--config", &file], 0)
            .tells(&[&format!("is a usable configuration of {role}")]);
        assert_eq!(
            ada.reads(&["config", "check", role, "--config", &file], 0)["valid"],
            true
        );
    }
    let minted = ada.reads(&["token", "mint", "person:eve", "--role", "viewer", "--hours", "1"], 0);
    assert!(
        minted["token"]
            .as_str()
            .is_some_and(|token| token.matches('.').count() == 2)
    );
    let data = deployment.data().display().to_string();
    let secret = deployment.path().join("a-secret");
    std::fs::write(&secret, "not to be told").expect("own file");
    let secret = secret.display().to_string();
    ada.types(
        &["secret", "put", "vault://kept/one", "--from", &secret, "--data", &data],
        0,
    )
    .tells(&["stored vault://kept/one"])
    .keeps_to_itself("not to be told");
    ada.types(&["secret", "list", "--data", &data], 0)
        .tells(&["kept/one"])
        .keeps_to_itself("not to be told");
    ada.types(&["failpoints"], 0).tells(&["control_plane."]);
}
