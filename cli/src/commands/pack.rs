use std::path::Path;

use control_plane_scenario::{Bundle, Fault, Pack};

use crate::args::PackCommand;
use crate::error::CliError;
use crate::exit::Exit;
use crate::platform::Platform;
use crate::printer::Printer;
use crate::render::plural;

pub async fn run(
    what: &PackCommand,
    connect: impl Fn() -> Result<Platform, CliError>,
    printer: Printer,
) -> Result<Exit, CliError> {
    match what {
        PackCommand::Validate { directory } => {
            let (pack, _) = read(directory)?;
            let templates: Vec<&String> = pack.templates.keys().collect();
            let answer = serde_json::json!({
                "valid": true, "name": pack.name, "version": pack.version, "digest": pack.digest, "templates": templates,
            });
            printer.value(&answer, || {
                format!(
                    "{} {} is valid: {}\ndigest {}",
                    pack.name,
                    pack.version,
                    plural(templates.len(), "template"),
                    pack.digest
                )
            });
            Ok(Exit::Success)
        }
        PackCommand::Push { directory } => {
            let (pack, bundle) = read(directory)?;
            let archive = bundle
                .to_tar()
                .map_err(|error| CliError::new(Exit::Internal, error.to_string()))?;
            let answer = connect()?
                .control
                .push_pack(archive.into(), &pack.digest.to_hex())
                .await?;
            let view = &answer.body;
            printer.value(view, || {
                let word = if answer.status == 201 {
                    "published"
                } else {
                    "was published before, unchanged"
                };
                format!("{} {} {word}\ndigest {}", view.name, view.version, view.digest)
            });
            Ok(Exit::Success)
        }
    }
}

/// Reads and checks a pack directory.
///
/// # Errors
/// Every fault of the pack, with file, line and column.
pub fn read(directory: &Path) -> Result<(Pack, Bundle), CliError> {
    if !directory.is_dir() {
        return Err(CliError::usage(format!("{} is not a directory", directory.display()))
            .hint("name the directory that holds pack.yaml"));
    }
    let bundle = bundle(directory)?;
    match Pack::read(&bundle) {
        Ok(pack) => Ok((pack, bundle)),
        Err(faults) => Err(refused(directory, &faults)),
    }
}

fn refused(directory: &Path, faults: &[Fault]) -> CliError {
    let mut error = CliError::usage(format!("the pack is not valid: {}", plural(faults.len(), "fault")));
    for fault in faults {
        let file = directory.join(&fault.file);
        let place = format!("{}:{}:{}", file.display(), fault.at.line, fault.at.column);
        error = error.fault(place, format!("{} ({})", fault.message, fault.remedy));
    }
    error
}

fn bundle(directory: &Path) -> Result<Bundle, CliError> {
    let mut bundle = Bundle::default();
    for entry in walkdir::WalkDir::new(directory).sort_by_file_name() {
        let entry = entry.map_err(|error| CliError::usage(format!("the pack cannot be read: {error}")))?;
        let path = entry
            .path()
            .strip_prefix(directory)
            .unwrap_or(entry.path())
            .to_string_lossy()
            .into_owned();
        if entry.file_type().is_dir() {
            continue;
        }
        if !entry.file_type().is_file() {
            return Err(CliError::usage("a pack holds plain files only")
                .fault(entry.path().display().to_string(), "this is a link or a device"));
        }
        let unreadable =
            |error: std::io::Error| CliError::usage(format!("{} cannot be read: {error}", entry.path().display()));
        let bytes = std::fs::read(entry.path()).map_err(unreadable)?;
        let executable = {
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::metadata(entry.path())
                .map_err(unreadable)?
                .permissions()
                .mode()
                & 0o111
                != 0
        };
        bundle
            .insert(path, executable, bytes)
            .map_err(|error| CliError::usage(error.to_string()))?;
    }
    Ok(bundle)
}
