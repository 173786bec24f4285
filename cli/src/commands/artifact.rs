use kernel::Sha256Digest;
use serde_json::json;

use super::find;
use crate::args::Artifact;
use crate::error::CliError;
use crate::exit::Exit;
use crate::platform::Platform;
use crate::printer::Printer;
use crate::render::size;

pub async fn run(what: &Artifact, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let attempt = find::attempt_id(&what.attempt)?;
    let known = find::artifacts(attempt, platform).await?;
    let found = known
        .iter()
        .find(|artifact| artifact.name.as_deref() == Some(&what.name));
    let Some(artifact) = found else {
        return Err(CliError::new(
            Exit::NotFound,
            format!("attempt {attempt} has no artifact {:?}", what.name),
        )
        .hint(format!("'platform get artifacts {attempt}' lists those that it has")));
    };
    let bytes = platform.execution.artifact(attempt, &what.name).await?;
    let digest = Sha256Digest::of(&bytes);
    if artifact.sha256.is_some_and(|told| told != digest) {
        return Err(CliError::new(
            Exit::Untrue,
            format!("what came has digest {digest}, not the one that was told; nothing was written"),
        )
        .hint("fetch it again"));
    }
    let Some(file) = &what.file else {
        printer.raw(&bytes);
        return Ok(Exit::Success);
    };
    std::fs::write(file, &bytes)
        .map_err(|error| CliError::usage(format!("{} cannot be written: {error}", file.display())))?;
    printer.value(&json!({"artifact": artifact, "file": file}), || {
        format!(
            "{} written to {} ({}), sha256 {digest}",
            what.name,
            file.display(),
            size(bytes.len() as u64)
        )
    });
    Ok(Exit::Success)
}
