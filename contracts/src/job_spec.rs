use core::fmt;
use core::str::FromStr;

use kernel::id::{AttemptId, OperationId, OrganizationId, ResourceUid};
use kernel::{DottedName, ResourceId, Sha256Digest};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// What kind of job a runner executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobType {
    Ansible,
    Kubernetes,
    Helm,
    Opentofu,
    Ssh,
    Verification,
}

impl JobType {
    /// All six.
    pub const ALL: [Self; 6] = [
        Self::Ansible,
        Self::Kubernetes,
        Self::Helm,
        Self::Opentofu,
        Self::Ssh,
        Self::Verification,
    ];

    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ansible => "ansible",
            Self::Kubernetes => "kubernetes",
            Self::Helm => "helm",
            Self::Opentofu => "opentofu",
            Self::Ssh => "ssh",
            Self::Verification => "verification",
        }
    }
}

/// The least grade of isolation that a job accepts, weakest first. What is used is recorded, never
/// weaker than asked; what a runner cannot give is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    Process,
    Sandbox,
    Container,
}

/// Which runner a job asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunnerRequest {
    pub name: String,
    pub isolation: Isolation,
    /// Labels that the runner must have.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub labels: std::collections::BTreeMap<String, String>,
}

/// One resource that a job acts on. execution-plane may not ask the catalog, so what a job needs to
/// reach it travels along.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TargetResource {
    pub resource_id: ResourceId,
    pub resource_type: DottedName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<ResourceUid>,
    /// Address, port, user, host keys: what the resource's `connection` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub connection: Option<Map<String, Value>>,
}

/// What a job acts on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Target {
    pub resources: Vec<TargetResource>,
    pub environment: String,
}

/// An artifact of an earlier node, named by URI and resolved within the operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArtifactInput {
    pub artifact_ref: String,
}

/// How a secret reaches the job. Never by argv; by environment only where a tool has no other way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SecretDelivery {
    #[default]
    File,
    Agent,
    Stdin,
    Env,
}

/// `vault://mount/path[#field]`; the field defaults to `value`. A reference, never a value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SecretRef {
    pub mount: String,
    pub path: String,
    pub field: Option<String>,
}

kernel::string_schema!(
    SecretRef,
    "A reference to a secret: vault://MOUNT/PATH[#FIELD], the field defaults to value.",
    "^vault://[^/#]+/[^#]+(#.+)?$",
    2048,
    "vault://ssh/prod-worker#private_key"
);

/// The text is not a secret reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a secret reference looks like vault://MOUNT/PATH or vault://MOUNT/PATH#FIELD")]
pub struct SecretRefError;

impl SecretRef {
    /// The field that is read: the one named, else `value`.
    #[must_use]
    pub fn field(&self) -> &str {
        self.field.as_deref().unwrap_or("value")
    }
}

impl FromStr for SecretRef {
    type Err = SecretRefError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let rest = text.strip_prefix("vault://").ok_or(SecretRefError)?;
        let (location, field) = match rest.split_once('#') {
            Some((location, field)) => (location, Some(field.to_owned())),
            None => (rest, None),
        };
        let (mount, path) = location.split_once('/').ok_or(SecretRefError)?;
        let segment = |s: &str| {
            !s.is_empty()
                && s != "."
                && s != ".."
                && s.bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        };
        let good = segment(mount) && path.split('/').all(segment) && field.as_deref().is_none_or(segment);
        if good {
            Ok(Self {
                mount: mount.to_owned(),
                path: path.to_owned(),
                field,
            })
        } else {
            Err(SecretRefError)
        }
    }
}

impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "vault://{}/{}", self.mount, self.path)?;
        self.field.as_ref().map_or(Ok(()), |field| write!(f, "#{field}"))
    }
}

impl Serialize for SecretRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SecretRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// A secret that the runner resolves at start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SecretInput {
    pub secret_ref: SecretRef,
    #[serde(default, rename = "as", skip_serializing_if = "Option::is_none")]
    pub delivery: Option<SecretDelivery>,
    /// The file or variable name that the job sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// What a job is given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Inputs {
    #[serde(default)]
    #[schema(value_type = Object)]
    pub parameters: Map<String, Value>,
    #[serde(default)]
    pub capabilities: Vec<DottedName>,
    #[serde(default)]
    pub artifacts: Vec<ArtifactInput>,
    #[serde(default)]
    pub secrets: Vec<SecretInput>,
}

/// What a job must yield for its node to count as succeeded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutputContract {
    #[serde(default)]
    pub capabilities: Vec<DottedName>,
    #[serde(default)]
    pub artifacts: Vec<String>,
    #[serde(default)]
    pub evidence: Vec<String>,
}

/// Limits and policies of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Controls {
    pub timeout_seconds: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_policy_ref: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_commands_ref: Option<String>,
}

/// The scenario that a job comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScenarioRef {
    pub name: String,
    pub version: String,
}

/// A digest-pinned bundle with the playbook, chart, module or script: a tar archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ContentRef {
    pub sha256: Sha256Digest,
}

/// JobSpec: what control-plane hands to execution-plane. Everything a job needs is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobSpec {
    pub operation_id: OperationId,
    pub plan_node_id: String,
    /// Chosen by control-plane; the idempotency key of the submission.
    pub attempt_id: AttemptId,
    pub job_type: JobType,
    pub runner: RunnerRequest,
    pub target: Target,
    pub inputs: Inputs,
    pub output_contract: OutputContract,
    pub controls: Controls,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organization_id: Option<OrganizationId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<ScenarioRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<ContentRef>,
}
