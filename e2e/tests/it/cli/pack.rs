//! A pack for the commands to be tried on: one template with a gate, one whose job never ends.

use std::path::{Path, PathBuf};

use super::person::Person;

const MANIFEST: &str = "name: tried\nversion: 1.0.0\ndescription: For tests of the commands.\n";

const GATED: &str = r#"name: gated
title: Look, ask, act
description: A job, a gate, two more jobs.
parameters:
  code:
    description: How the second job ends.
    schema: {type: integer, minimum: 0, maximum: 9}
    default: 0
requirements:
  host:
    resource_type: compute.node
    count: {min: 1, max: 1}
    capabilities: [os.linux]
    connection: true
    claim: exclusive
nodes:
  - id: look
    title: Look
    kind: job
    job:
      type: ssh
      targets: host
      parameters: {script: "echo looking; echo seen > $PLATFORM_ARTIFACTS/report"}
      secrets: [{secret_ref: "vault://ssh/hosts"}]
      output: {artifacts: [report]}
      timeout_seconds: 60
      idempotent: true
      mutating: false
  - id: ask
    title: May it act?
    kind: approval
    needs: [look]
    gate:
      role: approver
      requester_excluded: true
      expires_after_seconds: 3600
      message: Act with code ${parameters.code}?
  - id: act
    title: Act
    kind: job
    needs: [ask]
    job:
      type: ssh
      targets: host
      parameters: {script: "echo acting; exit ${parameters.code}"}
      secrets: [{secret_ref: "vault://ssh/hosts"}]
      timeout_seconds: 60
      idempotent: true
  - id: after
    title: Afterwards
    kind: job
    needs: [act]
    job:
      type: ssh
      targets: host
      parameters: {script: "echo afterwards"}
      secrets: [{secret_ref: "vault://ssh/hosts"}]
      timeout_seconds: 60
      idempotent: true
"#;

const ENDLESS: &str = r#"name: endless
title: Wait for ever
description: A job that ends only when it is ended.
requirements:
  host:
    resource_type: compute.node
    count: {min: 1, max: 1}
    capabilities: [os.linux]
    connection: true
    claim: exclusive
nodes:
  - id: wait
    title: Wait
    kind: job
    job:
      type: ssh
      targets: host
      parameters: {script: "echo waiting for ever; sleep 600"}
      secrets: [{secret_ref: "vault://ssh/hosts"}]
      timeout_seconds: 900
      idempotent: false
"#;

/// Writes the pack below `directory`.
pub fn write(directory: &Path) -> PathBuf {
    let pack = directory.join("tried");
    std::fs::create_dir_all(pack.join("templates")).expect("own directory");
    for (name, text) in [
        ("pack.yaml", MANIFEST),
        ("templates/gated.yaml", GATED),
        ("templates/endless.yaml", ENDLESS),
    ] {
        std::fs::write(pack.join(name), text).expect("own file");
    }
    pack
}

/// Checks and publishes it.
pub fn publish(directory: &Path, person: &Person) {
    let pack = write(directory).display().to_string();
    person
        .types(&["pack", "validate", &pack], 0)
        .tells(&["tried 1.0.0 is valid: 2 templates"]);
    let digest = person.reads(&["pack", "validate", &pack], 0)["digest"].clone();
    let pushed = person.reads(&["pack", "push", &pack], 0);
    assert_eq!(pushed["digest"], digest);
    person
        .types(&["pack", "push", &pack], 0)
        .tells(&["tried 1.0.0 was published before, unchanged"]);
}
