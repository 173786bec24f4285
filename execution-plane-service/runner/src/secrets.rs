//! Resolving a job's secrets and deciding how each reaches it.
//!
//! Invariants: a value is resolved once, at the start; it goes to files on memory, to standard input
//! or, only when the JobSpec says so, to the environment; never to an argument, a disk or an error.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use contracts::{ExitCategory, JobSpec, SecretDelivery, SecretInput, SecretRef};
use execution_plane_domain::secrets::SecretRules;
use execution_plane_ports::{FileContent, JobFile, SecretError, SecretStore, SecretValue};
use kernel::id::OrganizationId;

use crate::config::SecretRule;
use crate::output::MaskSet;
use crate::output::masker::{Unmaskable, maskable};

/// Where secret files are, below the job's directory.
pub(crate) const DIRECTORY: &str = "secrets";
/// The name of a file secret that is the key for logging in to targets.
const LOGIN_KEY: &str = "ssh_key";

/// An organization that no rule names.
const NOBODY: OrganizationId = OrganizationId(uuid::Uuid::nil());

/// Why a job's secrets are not to be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SecretsError {
    #[error("{reference} may not be named here: no rule of this runner allows it")]
    NotAllowed { reference: SecretRef },
    #[error("{0}")]
    Store(#[from] SecretError),
    #[error("{reference} cannot be used as a secret: {source}")]
    Unmaskable { reference: SecretRef, source: Unmaskable },
    #[error("{reference} needs another name: {detail}")]
    Name { reference: SecretRef, detail: &'static str },
}

impl SecretsError {
    pub(crate) const fn category(&self) -> ExitCategory {
        match self {
            Self::NotAllowed { .. } | Self::Store(SecretError::Forbidden { .. }) => ExitCategory::PolicyError,
            Self::Store(error) if error.is_transient() => ExitCategory::InfrastructureError,
            _ => ExitCategory::ValidationError,
        }
    }
}

struct Resolved {
    delivery: SecretDelivery,
    name: String,
    value: SecretValue,
}

/// The secrets of one attempt.
pub(crate) struct Secrets {
    items: Vec<Resolved>,
    masks: MaskSet,
}

impl Secrets {
    /// Resolves everything that `spec` names.
    pub(crate) async fn resolve(
        spec: &JobSpec,
        store: &dyn SecretStore,
        rules: &[SecretRule],
    ) -> Result<Self, SecretsError> {
        let mut items = Vec::new();
        let mut names = BTreeSet::new();
        for input in &spec.inputs.secrets {
            let item = resolve(input, spec.organization_id, store, rules).await?;
            if !names.insert(item.name.clone()) {
                let detail = "another secret of the job has it";
                return Err(SecretsError::Name {
                    reference: input.secret_ref.clone(),
                    detail,
                });
            }
            items.push(item);
        }
        let masks = MaskSet::of(items.iter().map(|item| &item.value));
        Ok(Self { items, masks })
    }

    pub(crate) const fn masks(&self) -> &MaskSet {
        &self.masks
    }

    /// The files that the job is given.
    pub(crate) fn files(&self) -> Vec<JobFile> {
        let file = |item: &Resolved| JobFile {
            path: format!("{DIRECTORY}/{}", item.name),
            content: FileContent::Secret(item.value.clone()),
            mode: 0o400,
        };
        self.items
            .iter()
            .filter(|item| item.delivery == SecretDelivery::File)
            .map(file)
            .collect()
    }

    /// Variables that the JobSpec asked for by `as: env`.
    pub(crate) fn environment(&self) -> BTreeMap<OsString, OsString> {
        let pair = |item: &Resolved| {
            (
                item.name.clone().into(),
                OsString::from_vec(item.value.expose().to_vec()),
            )
        };
        self.items
            .iter()
            .filter(|item| item.delivery == SecretDelivery::Env)
            .map(pair)
            .collect()
    }

    /// What the job reads from standard input.
    pub(crate) fn stdin(&self) -> Option<SecretValue> {
        self.items
            .iter()
            .find(|item| item.delivery == SecretDelivery::Stdin)
            .map(|item| item.value.clone())
    }

    /// Private keys that are given to an agent, and to nobody else.
    pub(crate) fn agent_keys(&self) -> Vec<SecretValue> {
        self.values(|item| item.delivery == SecretDelivery::Agent)
    }

    /// Private keys in files, for logging in to targets: the one called `ssh_key`; else the only secret
    /// there is.
    pub(crate) fn login_keys(&self) -> Vec<SecretValue> {
        let only = self.items.len() == 1;
        self.values(|item| item.delivery == SecretDelivery::File && (only || item.name == LOGIN_KEY))
    }

    fn values(&self, wanted: impl Fn(&Resolved) -> bool) -> Vec<SecretValue> {
        let chosen = self.items.iter().filter(|item| wanted(item));
        chosen.map(|item| item.value.clone()).collect()
    }
}

async fn resolve(
    input: &SecretInput,
    organization: Option<OrganizationId>,
    store: &dyn SecretStore,
    rules: &[SecretRule],
) -> Result<Resolved, SecretsError> {
    let reference = &input.secret_ref;
    if !allowed(reference, organization, rules) {
        return Err(SecretsError::NotAllowed {
            reference: reference.clone(),
        });
    }
    let delivery = input.delivery.unwrap_or_default();
    let name = input.name.clone().unwrap_or_else(|| default_name(reference));
    check_name(&name, delivery).map_err(|detail| SecretsError::Name {
        reference: reference.clone(),
        detail,
    })?;
    let value = store.resolve(reference).await?;
    maskable(&value).map_err(|source| SecretsError::Unmaskable {
        reference: reference.clone(),
        source,
    })?;
    if delivery == SecretDelivery::Env && value.expose().contains(&0) {
        let detail = "a value with NUL cannot be in the environment; deliver it as a file";
        return Err(SecretsError::Name {
            reference: reference.clone(),
            detail,
        });
    }
    Ok(Resolved { delivery, name, value })
}

fn allowed(reference: &SecretRef, organization: Option<OrganizationId>, rules: &[SecretRule]) -> bool {
    let listed = rules.iter().map(|rule| (rule.organization, rule.prefix.clone()));
    SecretRules::of(listed).allow(organization.unwrap_or(NOBODY), reference)
}

fn default_name(reference: &SecretRef) -> String {
    let last = reference.path.rsplit('/').next().unwrap_or_default();
    match &reference.field {
        Some(field) => format!("{last}.{field}"),
        None => last.to_owned(),
    }
}

fn check_name(name: &str, delivery: SecretDelivery) -> Result<(), &'static str> {
    let plain = |extra: &str| {
        name.bytes()
            .all(|b| b.is_ascii_alphanumeric() || extra.as_bytes().contains(&b))
    };
    match delivery {
        SecretDelivery::Env => {
            let good = plain("_") && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            if good && !name.starts_with("PLATFORM_") {
                Ok(())
            } else {
                Err("a variable is letters, digits and '_'")
            }
        }
        _ if !name.is_empty() && plain("._-") && !name.starts_with('.') && name.len() <= 128 => Ok(()),
        _ => Err("a file name is letters, digits, '.', '_' and '-'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_trait::async_trait;
    use serde_json::json;

    struct Fixed(&'static str);

    #[async_trait]
    impl SecretStore for Fixed {
        async fn resolve(&self, _: &SecretRef) -> Result<SecretValue, SecretError> {
            Ok(SecretValue::from(self.0))
        }
    }

    fn spec(secrets: serde_json::Value) -> JobSpec {
        serde_json::from_value(json!({
            "operation_id": uuid::Uuid::now_v7(), "plan_node_id": "n", "attempt_id": uuid::Uuid::now_v7(),
            "job_type": "ssh", "runner": {"name": "r", "isolation": "sandbox"},
            "target": {"resources": [], "environment": "demo"},
            "inputs": {"secrets": secrets}, "output_contract": {}, "controls": {"timeout_seconds": 5},
        }))
        .unwrap()
    }

    #[tokio::test]
    async fn field_note_48_a_common_value_is_refused_with_its_reference_and_never_its_text() {
        let spec = spec(json!([{"secret_ref": "vault://app/flag"}]));
        let error = Secrets::resolve(&spec, &Fixed("true"), &[]).await.err().unwrap();
        assert_eq!(error.category(), ExitCategory::ValidationError);
        let told = error.to_string();
        assert!(told.contains("vault://app/flag") && !told.contains("true"), "{told}");
    }

    #[tokio::test]
    async fn only_what_a_rule_allows_may_be_named() {
        let spec = spec(json!([{"secret_ref": "vault://app/team-b/key"}]));
        let rule = |prefix: &str| SecretRule {
            organization: None,
            prefix: prefix.to_owned(),
        };
        let resolve = async |rules: &[SecretRule]| Secrets::resolve(&spec, &Fixed("long-enough-value"), rules).await;
        assert!(resolve(&[rule("vault://app/team-b")]).await.is_ok());
        let refused = resolve(&[rule("vault://app/team"), rule("vault://other")])
            .await
            .err()
            .unwrap();
        assert_eq!(refused.category(), ExitCategory::PolicyError);
    }

    #[tokio::test]
    async fn the_only_secret_is_the_login_key_and_names_come_from_references() {
        let only = spec(json!([{"secret_ref": "vault://ssh/prod#private_key"}]));
        let secrets = Secrets::resolve(&only, &Fixed("long-enough-value"), &[]).await.unwrap();
        assert_eq!(secrets.login_keys().len(), 1);
        assert_eq!(secrets.files()[0].path, "secrets/prod.private_key");
        let two = spec(
            json!([{"secret_ref": "vault://ssh/a", "as": "agent"}, {"secret_ref": "vault://db/b", "as": "env", "name": "DB"}]),
        );
        let secrets = Secrets::resolve(&two, &Fixed("long-enough-value"), &[]).await.unwrap();
        assert_eq!(
            (
                secrets.agent_keys().len(),
                secrets.login_keys().len(),
                secrets.files().len(),
                secrets.environment().len()
            ),
            (1, 0, 0, 1)
        );
        let bad = spec(json!([{"secret_ref": "vault://ssh/a", "name": "../x"}]));
        assert!(Secrets::resolve(&bad, &Fixed("long-enough-value"), &[]).await.is_err());
    }
}
