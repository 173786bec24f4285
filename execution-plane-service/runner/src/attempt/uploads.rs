//! Artifacts and sources of evidence, put on disk under the report until the service has them.

use std::path::Path;

use contracts::{EvidenceRef, ExitCategory, JobSpec, Sensitivity};
use kernel::{Sha256Digest, canonical_digest};
use uuid::Uuid;

use super::report::Upload;
use crate::jobs::checks::Finding;
use crate::output::MaskSet;
use crate::state::Home;

/// Why a declared artifact is not delivered.
pub(super) struct ArtifactFault {
    pub(super) category: ExitCategory,
    pub(super) message: String,
}

/// Evidence from `findings`; sources that are not in the JobSpec itself are to be uploaded.
pub(super) fn evidence(
    spec: &JobSpec,
    findings: &[Finding],
    home: &Home,
    uploads: &mut Vec<Upload>,
) -> std::io::Result<Vec<EvidenceRef>> {
    let mut all = Vec::with_capacity(findings.len());
    for (index, finding) in findings.iter().enumerate() {
        let (source_ref, sha256) = match finding.from_job_spec {
            Some(check) => job_spec_source(spec, check),
            None => {
                let upload = source(finding, index, home)?;
                let sha256 = upload.sha256;
                uploads.push(upload);
                (String::new(), Some(sha256))
            }
        };
        all.push(EvidenceRef {
            id: Uuid::now_v7(),
            evidence_type: finding.evidence_type,
            capability: finding.capability.clone(),
            result: finding.result,
            source_ref,
            observed_at: finding.observed_at,
            name: Some(finding.name.clone()),
            resource_id: finding.resource.clone(),
            attempt_id: Some(spec.attempt_id),
            sha256,
        });
    }
    Ok(all)
}

/// A comparison of two values of the JobSpec has the JobSpec as its source, and the digest of its
/// canonical form; so the quickest check needs no upload.
fn job_spec_source(spec: &JobSpec, check: usize) -> (String, Option<Sha256Digest>) {
    let source = format!("job-spec://{}/inputs/parameters/checks/{check}", spec.attempt_id);
    let value = spec
        .inputs
        .parameters
        .get("checks")
        .and_then(|checks| checks.get(check));
    (source, value.and_then(|value| canonical_digest(value).ok()))
}

fn source(finding: &Finding, index: usize, home: &Home) -> std::io::Result<Upload> {
    let file = home.directory("sources")?.join(index.to_string());
    std::fs::write(&file, &finding.source)?;
    let place = finding
        .resource
        .as_ref()
        .map(|id| format!(".{}", id.as_str().replace('/', "-")));
    Ok(Upload {
        name: format!("check.{}{}.txt", plain(&finding.name), place.unwrap_or_default()),
        artifact_type: "check_source".to_owned(),
        sensitivity: Sensitivity::Internal,
        media_type: Some("text/plain; charset=utf-8".to_owned()),
        sha256: Sha256Digest::of(&finding.source),
        file,
        evidence: Some(index),
    })
}

fn plain(name: &str) -> String {
    let keep = |c: char| {
        if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') {
            c
        } else {
            '-'
        }
    };
    name.chars().map(keep).collect()
}

/// The name that is secret by its type.
const ADMIN_KUBECONFIG: &str = "kubeconfig.admin";

/// An output contract declares artifacts by name alone, and the name is the type: so it also tells how
/// sensitive one is. Nothing that a job says makes an artifact less sensitive than its type.
fn sensitivity_of(name: &str) -> Sensitivity {
    match name {
        ADMIN_KUBECONFIG => Sensitivity::Secret,
        _ => Sensitivity::Internal,
    }
}

/// The declared artifact `name` from the directory where the job left it.
pub(super) fn artifact(name: &str, directory: &Path, limit: u64, masks: &MaskSet) -> Result<Upload, ArtifactFault> {
    let fault = |category, message: String| ArtifactFault { category, message };
    let invalid = |message: String| fault(ExitCategory::ValidationError, message);
    if name.is_empty() || name.contains('/') || name.starts_with('.') {
        return Err(invalid(format!("{name:?} is no name of an artifact")));
    }
    let file = directory.join(name);
    // A link could lead to any file that the runner may read.
    let metadata = match std::fs::symlink_metadata(&file) {
        Ok(metadata) if metadata.is_file() => metadata,
        Ok(_) => return Err(invalid(format!("the artifact {name} is no plain file"))),
        Err(_) => return Err(invalid(format!("the artifact {name} was declared and not produced"))),
    };
    if metadata.len() > limit {
        return Err(invalid(format!(
            "the artifact {name} has {} bytes; the limit is {limit}",
            metadata.len()
        )));
    }
    let bytes = std::fs::read(&file).map_err(|error| {
        fault(
            ExitCategory::InfrastructureError,
            format!("the artifact {name}: {error}"),
        )
    })?;
    let sensitivity = sensitivity_of(name);
    if sensitivity != Sensitivity::Secret && masks.finds_in(&bytes) {
        let message = format!("the artifact {name} holds one of the job's secrets; it is not stored");
        return Err(fault(ExitCategory::PolicyError, message));
    }
    Ok(Upload {
        name: name.to_owned(),
        artifact_type: name.to_owned(),
        sensitivity,
        media_type: None,
        sha256: Sha256Digest::of(&bytes),
        file,
        evidence: None,
    })
}

#[cfg(test)]
mod tests {
    use execution_plane_ports::SecretValue;

    use super::*;

    fn declared(name: &str, content: &[u8], masks: &MaskSet) -> Result<Upload, ArtifactFault> {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(name), content).unwrap();
        artifact(name, directory.path(), 1024, masks)
    }

    #[test]
    fn an_artifacts_name_is_its_type_and_tells_how_sensitive_it_is() {
        let none = MaskSet::of([]);
        for (name, sensitivity) in [
            ("install_report", Sensitivity::Internal),
            ("rendered_manifest", Sensitivity::Internal),
            ("diagnostics_bundle", Sensitivity::Internal),
            ("anything-else.json", Sensitivity::Internal),
            ("kubeconfig.admin", Sensitivity::Secret),
            ("kubeconfig.admin.txt", Sensitivity::Internal),
        ] {
            let Ok(upload) = declared(name, b"content", &none) else {
                panic!("{name} is not taken");
            };
            assert_eq!((upload.artifact_type.as_str(), upload.sensitivity), (name, sensitivity));
            assert_eq!((upload.name.as_str(), upload.media_type), (name, None));
        }
    }

    #[test]
    fn what_is_not_secret_by_its_name_may_hold_no_secret_of_the_job() {
        let secret = SecretValue::from("correct horse battery");
        let masks = MaskSet::of([&secret]);
        let Err(fault) = declared("install_report", b"it is correct horse battery", &masks) else {
            panic!("it is taken");
        };
        assert_eq!(fault.category, ExitCategory::PolicyError);
        assert!(!fault.message.contains("horse"), "{}", fault.message);
        assert!(declared("kubeconfig.admin", b"it is correct horse battery", &masks).is_ok());
    }
}
