use client_kit::ClientError;
use execution_plane_api::CommandPolicyBody;
use kernel::{DottedName, ResourceId};
use serde::de::DeserializeOwned;
use serde_json::json;
use serde_path_to_error::{Path, Segment, Track};

use crate::args::Apply;
use crate::error::{CliError, Fault};
use crate::exit::Exit;
use crate::manifest::{self, Kind, Manifest};
use crate::platform::{Platform, of_problem};
use crate::printer::Printer;
use crate::render::plural;

/// What applying one document did.
enum Done {
    Created,
    Changed,
    Unchanged,
}

impl Done {
    const fn word(&self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Unchanged => "unchanged",
        }
    }

    const fn of(status: u16, before: Option<i64>, after: Option<i64>) -> Self {
        match (status, before, after) {
            (201, ..) => Self::Created,
            (_, Some(before), Some(after)) if before == after => Self::Unchanged,
            (_, None, _) => Self::Created,
            _ => Self::Changed,
        }
    }
}

pub async fn run(apply: &Apply, platform: &Platform, printer: Printer) -> Result<Exit, CliError> {
    let manifests = manifest::read_all(&apply.file)?;
    if apply.at_version.is_some() && manifests.len() != 1 {
        let found = plural(manifests.len(), "document");
        return Err(
            CliError::usage(format!("--at-version is for a single document; here are {found}"))
                .hint("apply them one by one"),
        );
    }
    let mut failed: Option<CliError> = None;
    let mut outcomes = Vec::new();
    for manifest in &manifests {
        match one(manifest, apply.at_version, platform).await {
            Ok(done) => {
                printer.say(format!("{} {} {}", manifest.kind.word(), manifest.name, done.word()));
                outcomes.push(json!({"kind": manifest.kind.word(), "name": manifest.name, "outcome": done.word()}));
            }
            Err(error) if error.exit == Exit::Unreachable => return Err(error),
            Err(error) => failed = Some(merge(failed, manifest, error)),
        }
    }
    if let Some(error) = failed {
        let done = plural(outcomes.len(), "document");
        let error = CliError {
            message: format!("{} ({done} applied)", error.message),
            ..error
        };
        return Err(error.in_order());
    }
    if printer.is_json() {
        printer.value(&outcomes, String::new);
    }
    Ok(Exit::Success)
}

/// Every refused document, each fault at its line.
fn merge(earlier: Option<CliError>, manifest: &Manifest, error: CliError) -> CliError {
    let said = if error.exit == Exit::Usage {
        "these files describe what cannot be"
    } else {
        "the platform refused what these files describe"
    };
    let mut all = earlier.unwrap_or_else(|| CliError::new(error.exit, said));
    if error.faults.is_empty() {
        all.faults.push(Fault {
            place: manifest.place_of(""),
            problem: format!("{}: {}", manifest.name, error.message),
        });
    }
    for fault in error.faults {
        let problem = format!("{}: {}", manifest.name, fault.problem);
        all.faults.push(Fault {
            place: manifest.place_of(&fault.place),
            problem,
        });
    }
    all.hint = all.hint.or(error.hint);
    all.code = all.code.or(error.code);
    all
}

async fn one(manifest: &Manifest, version: Option<i64>, platform: &Platform) -> Result<Done, CliError> {
    let catalog = &platform.catalog;
    match manifest.kind {
        Kind::ResourceType => {
            let name: DottedName = name(manifest)?;
            let before = absent(catalog.resource_type(&name).await)?.map(|found| found.version);
            let answer = catalog.apply_resource_type(&name, &body(manifest)?, version).await?;
            Ok(Done::of(answer.status, before, Some(answer.body.version)))
        }
        Kind::CapabilityDefinition => {
            let name: DottedName = name(manifest)?;
            let before = absent(catalog.capability_definition(&name).await)?.map(|found| found.version);
            let answer = catalog
                .apply_capability_definition(&name, &body(manifest)?, version)
                .await?;
            Ok(Done::of(answer.status, before, Some(answer.body.version)))
        }
        Kind::Resource => {
            let id: ResourceId = name(manifest)?;
            let before = absent(catalog.resource(&id).await)?.map(|found| found.version);
            let answer = catalog.apply_resource(&id, &body(manifest)?, version).await?;
            Ok(Done::of(answer.status, before, Some(answer.body.version)))
        }
        Kind::CommandPolicy => policy(manifest, version, platform).await,
    }
}

/// The next version of a command policy; what is so already makes none.
async fn policy(manifest: &Manifest, version: Option<i64>, platform: &Platform) -> Result<Done, CliError> {
    let wanted: CommandPolicyBody = body(manifest)?;
    let before = absent(platform.execution.command_policy(&manifest.name).await)?;
    let expected = match version {
        Some(version) => u64::try_from(version).ok(),
        None => before.as_ref().map(|policy| policy.version),
    };
    if before
        .as_ref()
        .is_some_and(|policy| policy.body == wanted && Some(policy.version) == expected)
    {
        return Ok(Done::Unchanged);
    }
    platform
        .execution
        .put_command_policy(&manifest.name, expected, &wanted)
        .await?;
    Ok(if before.is_some() { Done::Changed } else { Done::Created })
}

fn absent<T>(found: Result<T, ClientError>) -> Result<Option<T>, CliError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(ClientError::Problem(problem)) if problem.status == 404 => Ok(None),
        Err(ClientError::Problem(problem)) => Err(of_problem(&problem)),
        Err(error) => Err(error.into()),
    }
}

fn name<T: std::str::FromStr<Err: std::fmt::Display>>(manifest: &Manifest) -> Result<T, CliError> {
    manifest
        .name
        .parse()
        .map_err(|error: T::Err| CliError::usage("not a name").fault("", error.to_string()))
}

/// The document's spec as the API's own body; unknown fields and values of a wrong kind are refused here,
/// with their line.
fn body<T: DeserializeOwned>(manifest: &Manifest) -> Result<T, CliError> {
    let mut unknown = Vec::new();
    let mut track = Track::new();
    let reader = serde_path_to_error::Deserializer::new(&manifest.spec, &mut track);
    let parsed = serde_ignored::deserialize(reader, |path| unknown.push(path.to_string()));
    let mut error = CliError::usage("not a valid document");
    for path in unknown {
        error = error.fault(format!("/{}", path.replace('.', "/")), "unknown field");
    }
    match parsed {
        Ok(parsed) if error.faults.is_empty() => Ok(parsed),
        Ok(_) => Err(error),
        Err(fault) => Err(error.fault(pointer(&track.path()), fault.to_string())),
    }
}

/// A place in a value as a JSON Pointer.
fn pointer(path: &Path) -> String {
    let parts = path.iter().filter_map(|segment| match segment {
        Segment::Map { key } | Segment::Enum { variant: key } => Some(key.replace('~', "~0").replace('/', "~1")),
        Segment::Seq { index } => Some(index.to_string()),
        Segment::Unknown => None,
    });
    parts.map(|part| format!("/{part}")).collect()
}
