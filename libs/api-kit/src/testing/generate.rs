//! Holds a live server against its OpenAPI document by requests that schemathesis makes from the document:
//! right ones, and ones that are wrong in one part.
//!
//! The walker tries the rules that we know of; this finds answers that nobody thought of. No request may
//! have a 500, a status or media type that the document does not declare, or a body of another shape; and
//! what the document forbids must be refused. The seed and the number of examples are fixed, so that the
//! requests depend on the document alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::process::Command;
use utoipa::openapi::OpenApi;

use super::Walk;
use super::document::{self, Operation};

/// A reference that leads nowhere would leave a part of the document untried; so would a token without the role.
///
/// Not checked: that a request is refused without a token or a header (the walker does; here the token is put in
/// again), and that each right request succeeds (the document cannot say which versions or states are right).
const CONFIG: &str = r#"hooks = "hooks.py"
warnings = { fail-on = ["unresolvable_reference", "unmatched_filter", "missing_auth"] }

[checks]
missing_required_header = { enabled = false }
ignored_auth = { enabled = false }
positive_data_acceptance = { enabled = false }

"#;
const MIXED: &str = "checks = { negative_data_rejection = { enabled = false } }";
const HOOKS: &str = include_str!("schemathesis.py");
/// Requests made for an operation beyond those that cover its document systematically.
const EXAMPLES: u32 = 10;
const SEED: u32 = 20_261;
/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generated {
    /// Whether every answer was as the document says.
    pub holds: bool,
    /// What schemathesis says, with each failure and how to send the request again.
    pub report: String,
}

impl Walk {
    /// Sends requests made from `document`. The walk's objects, bodies and tokens let them get to where the
    /// work is done.
    ///
    /// # Panics
    /// When schemathesis is not there, or cannot be run.
    pub async fn generate(self, document: &OpenApi) -> Generated {
        let document = serde_json::to_value(document).expect("an OpenAPI document is JSON");
        let directory = tempfile::tempdir().expect("a directory for the requests");
        let at = |name: &str| directory.path().join(name);
        write(&at("openapi.json"), &document.to_string());
        write(&at("known.json"), &self.known(&document).to_string());
        write(&at("hooks.py"), HOOKS);
        write(&at("schemathesis.toml"), &self.config(&document));
        let mut command = Command::new(program());
        command
            .args(["--config-file", "schemathesis.toml", "run", "openapi.json"])
            .args(["--url", &self.base_url])
            .args(["--phases", "coverage,fuzzing"])
            .args(["--max-examples", &EXAMPLES.to_string(), "--seed", &SEED.to_string()])
            .args(["--generation-database", "none", "--continue-on-failure"])
            .args(["--request-timeout", "20", "--workers", "1", "--no-color"])
            .args(self.not_generated.keys().flat_map(|name| ["--exclude-name", name]))
            .env("PLATFORM_API_KNOWN", at("known.json"))
            .env("PYTHONPATH", directory.path())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("NO_PROXY", "*")
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let output = command.output().await.expect("schemathesis can be run");
        let mut report = String::from_utf8_lossy(&output.stdout).into_owned();
        report.push_str(&String::from_utf8_lossy(&output.stderr));
        Generated {
            holds: output.status.success(),
            report,
        }
    }

    fn config(&self, document: &Value) -> String {
        let operations = document::operations(document);
        // Bytes have no schema that they could break.
        let takes_bytes = |operation: &&Operation| !operation.media_types.is_empty() && !operation.takes_json();
        let raw = operations.iter().filter(takes_bytes).map(Operation::name);
        let mixed: BTreeSet<String> = self.mixed.keys().cloned().chain(raw).collect();
        let mut config = CONFIG.to_owned();
        for name in mixed {
            let name = json!(name);
            config.push_str(&format!("[[operations]]\ninclude-name = {name}\n{MIXED}\n"));
        }
        config
    }

    /// What the hooks read.
    fn known(&self, document: &Value) -> Value {
        let operations: BTreeMap<String, Value> = document::operations(document)
            .iter()
            .filter(|operation| !operation.is_public)
            .map(|operation| (operation.name(), self.known_of(operation)))
            .collect();
        json!({"operations": operations, "values": self.values})
    }

    fn known_of(&self, operation: &Operation) -> Value {
        let name = operation.name();
        let token = match &self.runner {
            Some(token) if operation.roles == [identity::Role::Runner] => token.clone(),
            _ => self.token(&operation.roles),
        };
        let path = self
            .objects
            .get(&operation.template)
            .or(self.leased.get(&operation.template));
        json!({
            "token": token,
            "path": path.map(|path| operation.parameters_of(path)),
            "body": self.bodies.get(&name),
            "bytes": self.archives.get(&name).map(|bytes| STANDARD.encode(bytes)),
        })
    }
}

fn write(file: &Path, text: &str) {
    std::fs::write(file, text).expect("the directory can be written");
}

/// schemathesis: by `PLATFORM_SCHEMATHESIS`, in the set-up's cache, or in PATH.
fn program() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache")));
    let named = std::env::var_os("PLATFORM_SCHEMATHESIS").map(PathBuf::from);
    let cached = cache.map(|cache| cache.join("platform-core/schemathesis/bin/schemathesis"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    named
        .into_iter()
        .chain(cached)
        .chain(std::env::split_paths(&path).map(|place| place.join("schemathesis")))
        .find(|file| file.exists())
        .expect("schemathesis is needed for this test: set PLATFORM_SCHEMATHESIS to it, or run make test")
}
