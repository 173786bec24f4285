use std::fmt::Write as _;
use std::path::Path;

use control_plane_proof::{Verified, verify};
use identity::PublicKey;
use serde_json::json;

use crate::args::ProofCommand;
use crate::error::CliError;
use crate::exit::Exit;
use crate::platform::Platform;
use crate::printer::Printer;
use crate::render::plural;

pub async fn run(
    what: &ProofCommand,
    connect: impl Fn() -> Result<Platform, CliError>,
    printer: Printer,
) -> Result<Exit, CliError> {
    match what {
        ProofCommand::Export { operation, file } => {
            let id = super::intervene::operation_id(operation)?;
            let document = connect()?.control.proof(id).await?;
            std::fs::write(file, &document)
                .map_err(|error| CliError::usage(format!("{} cannot be written: {error}", file.display())))?;
            printer.value(
                &json!({"operation_id": id, "file": file, "bytes": document.len()}),
                || {
                    format!(
                        "proof of operation {id} written to {} ({} bytes)",
                        file.display(),
                        document.len()
                    )
                },
            );
            Ok(Exit::Success)
        }
        ProofCommand::Verify { file, key } => {
            let key = public_key(key)?;
            let document = std::fs::read(file)
                .map_err(|error| CliError::usage(format!("{} cannot be read: {error}", file.display())))?;
            match verify(&document, &key.to_bytes()) {
                Ok(verified) => {
                    printer.value(&as_json(&verified), || text(&verified));
                    Ok(Exit::Success)
                }
                Err(fault) => Err(CliError::new(Exit::Untrue, format!("the proof does not hold: {fault}"))
                    .hint("get it again with 'platform proof export', and the key from whom you trust")),
            }
        }
    }
}

/// A key given as text, or in a file.
fn public_key(text: &str) -> Result<PublicKey, CliError> {
    let path = Path::new(text);
    let content = if path.is_file() {
        std::fs::read_to_string(path)
            .map_err(|error| CliError::usage(format!("--key: {} cannot be read: {error}", path.display())))?
    } else {
        text.to_owned()
    };
    content.trim().parse().map_err(|error: identity::KeyError| {
        CliError::usage(format!("--key: {error}"))
            .hint("'platform up' writes the platform's public proof key to DATA/proof.pub")
    })
}

fn as_json(verified: &Verified) -> serde_json::Value {
    let approvals: Vec<_> = verified
        .approvals
        .iter()
        .map(|(gate, by, at)| json!({"gate": gate, "decided_by": by, "at": at}))
        .collect();
    let capabilities: Vec<_> = verified
        .capabilities
        .iter()
        .map(|c| json!({"resource_id": c.resource_id, "capability": c.capability, "version": c.version, "sources": c.sources}))
        .collect();
    json!({
        "holds": true, "operation_id": verified.operation_id, "requester": verified.requester, "plans": verified.plans,
        "runs": verified.runs,
        "approvals": approvals, "attempts": verified.attempts, "evidence": verified.evidence, "capabilities": capabilities,
    })
}

fn text(verified: &Verified) -> String {
    let mut out = format!(
        "✔ the proof of operation {} holds\n  asked for by   {}\n",
        verified.operation_id, verified.requester
    );
    for (revision, digest) in &verified.plans {
        let _ = writeln!(out, "  plan {revision}         {digest}");
    }
    for (number, by) in verified.runs.iter().filter(|(number, _)| **number > 1) {
        let _ = writeln!(out, "  run {number}          opened by {by}");
    }
    for (gate, by, at) in &verified.approvals {
        let _ = writeln!(
            out,
            "  approved       gate {gate}, by {by} at {}",
            at.format("%Y-%m-%d %H:%M:%S UTC")
        );
    }
    let _ = writeln!(
        out,
        "  rests on       {}, {}",
        plural(verified.attempts, "attempt"),
        plural(verified.evidence, "check")
    );
    for proven in &verified.capabilities {
        let sources = plural(proven.sources.len(), "source");
        let _ = writeln!(
            out,
            "  proven         {} on {} at version {}, {sources}",
            proven.capability, proven.resource_id, proven.version
        );
    }
    out.truncate(out.trim_end().len());
    out
}
