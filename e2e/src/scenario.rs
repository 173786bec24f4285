//! Scenario packs that tests write themselves.

use control_plane_scenario::Bundle;

use crate::world::LOGIN_KEY;

/// A pack with one template.
pub struct Scenario {
    pub pack: String,
    pub template: String,
    archive: Vec<u8>,
}

impl Scenario {
    /// A pack `name` 1.0.0 whose only template is `template`, in YAML.
    #[must_use]
    pub fn new(name: &str, template: &str) -> Self {
        Self::with_content(name, template, &[])
    }

    /// The same with files of content.
    #[must_use]
    pub fn with_content(name: &str, template: &str, content: &[(&str, &str)]) -> Self {
        let mut bundle = Bundle::default();
        let declared = if content.is_empty() { "" } else { "content: content\n" };
        let manifest = format!("name: {name}\nversion: 1.0.0\ndescription: For tests.\n{declared}");
        for (path, text) in [("pack.yaml", manifest.as_str()), ("templates/main.yaml", template)] {
            bundle
                .insert(path.to_owned(), false, text.as_bytes().to_vec())
                .expect("a valid path");
        }
        for (path, text) in content {
            bundle
                .insert(format!("content/{path}"), false, text.as_bytes().to_vec())
                .expect("a valid path");
        }
        Self {
            pack: name.to_owned(),
            template: "main".to_owned(),
            archive: bundle.to_tar().expect("an archive"),
        }
    }

    /// The archive to publish.
    #[must_use]
    pub fn archive(&self) -> Vec<u8> {
        self.archive.clone()
    }
}

/// Of a template: one host as `host`, claimed in the way of `claim`, and a parameter `mark` that names a file on it.
#[must_use]
pub fn takes_a_host(claim: &str) -> String {
    format!(
        r#"parameters:
  mark:
    description: The file.
    schema: {{type: string, pattern: "^[a-z0-9-]+$"}}
requirements:
  host:
    resource_type: compute.node
    count: {{min: 1, max: 1}}
    capabilities: [os.linux]
    connection: true
    claim: {claim}
"#
    )
}

/// Of a template: a node that leaves a line in that file, each time that it runs.
pub const MARKS: &str = r#"nodes:
  - id: mark
    title: Mark it
    kind: job
    job:
      type: ssh
      targets: host
      parameters:
        script: echo "$PLATFORM_ATTEMPT" >> /srv/${parameters.mark}
      secrets: [{secret_ref: "vault://ssh/hosts"}]
      timeout_seconds: 120
      idempotent: false
"#;

/// One host: a check that changes nothing, a command that must run exactly once (it adds a line to a file on
/// the host), a check of that, and an update of the catalog that brings the evidence.
#[must_use]
pub fn one_host() -> Scenario {
    let host = takes_a_host("exclusive");
    Scenario::new(
        "one-host",
        &format!(
            r#"name: main
title: Mark a host once
description: Adds one line to a file on the host.
{host}nodes:
  - id: look
    title: Look at the host
    kind: job
    job:
      type: verification
      targets: host
      parameters:
        checks:
          - {{name: there, type: command_check, target: "*", capability: os.linux, command: "true", expect: {{exit_code: 0}}}}
      secrets: [{{secret_ref: "{LOGIN_KEY}"}}]
      output: {{evidence: [there]}}
      timeout_seconds: 60
      retry: retry/default
      idempotent: true
  - id: mark
    title: Mark it
    kind: job
    needs: [look]
    job:
      type: ssh
      targets: host
      parameters:
        script: echo "$PLATFORM_ATTEMPT" >> /srv/${{parameters.mark}}
      secrets: [{{secret_ref: "{LOGIN_KEY}"}}]
      timeout_seconds: 60
      idempotent: false
  - id: check
    title: Check the mark
    kind: job
    needs: [mark]
    job:
      type: verification
      targets: host
      parameters:
        checks:
          - {{name: marked, type: command_check, target: "*", capability: site.marked, command: "test -s /srv/${{parameters.mark}}", expect: {{exit_code: 0}}}}
      secrets: [{{secret_ref: "{LOGIN_KEY}"}}]
      output: {{capabilities: [site.marked], evidence: [marked]}}
      timeout_seconds: 60
      retry: retry/default
      idempotent: true
  - id: publish
    title: Tell the catalog
    kind: resource_update
    for_each: {{slot: host}}
    needs: [check]
    update:
      observed_state_patch: {{mark: "${{parameters.mark}}"}}
      capabilities: {{add: [site.marked]}}
      evidence_from: [check]
"#
        ),
    )
}
