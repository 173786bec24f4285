//! Jobs: everything that becomes a JobSpec.

use std::collections::BTreeMap;

use contracts::{Isolation, JobType, OutputContract, SecretDelivery};
use serde_json::Value;

use super::action::names;
use super::node::{Here, slots};
use super::scope::{NodeReferences, check_dynamic};
use super::{one_or_more, texts};
use crate::dynamic::Dynamic;
use crate::fault::{FaultCode, suggestion};
use crate::job_types;
use crate::reader::{Fields, Placed, dynamic, map, text};
use crate::secrets;
use crate::template::{JobTemplate, SecretTemplate, Targets};
use crate::yaml::{Content, Node};

const MAX_TIMEOUT: u32 = 7 * 24 * 3600;
/// The pool of a job that names no runner: every runner is in it unless it was set up otherwise.
const DEFAULT_RUNNER: &str = "default";
/// The policy of a job that names none.
pub(crate) const DEFAULT_RETRY: &str = "retry/default";

pub(super) fn read(node: &Node, here: &Here<'_>, references: &mut NodeReferences) -> Option<JobTemplate> {
    let faults = here.faults;
    let mut fields = Fields::open(node, "job", faults)?;
    fields.required("type");
    let job_type = job_type(&mut fields);
    let runner = fields.text("runner").map(|t| t.value);
    let grades = [
        ("process", Isolation::Process),
        ("sandbox", Isolation::Sandbox),
        ("container", Isolation::Container),
    ];
    let isolation = fields.choice("isolation", &grades).unwrap_or(Isolation::Sandbox);
    let runner_labels = labels(&mut fields);
    let targets = targets(&mut fields, here, job_type);
    let parameters_node = fields.required("parameters");
    let parameters = parameters_node.map(|node| parameters(node, job_type, here, references));
    let capabilities = names(fields.list("capabilities"), "capabilities", here);
    let artifacts = fields
        .list("artifacts")
        .iter()
        .map(|node| checked(node, here, references))
        .collect();
    let secrets = fields
        .list("secrets")
        .iter()
        .filter_map(|node| secret(node, here))
        .collect();
    let output_contract = fields
        .node("output")
        .and_then(|node| output(node, here))
        .unwrap_or_default();
    let timeout_seconds = fields.integer("timeout_seconds", 1, MAX_TIMEOUT).unwrap_or(600);
    let retry = retry(&mut fields, here);
    let allowed_commands_ref = fields.text("allowed_commands").map(|t| t.value);
    let idempotent = fields.boolean("idempotent");
    let mutating = fields.boolean("mutating");
    let with_content = fields.boolean("content");
    fields.finish();
    let (job_type, parameters) = (job_type?, parameters?);
    check_contract(&output_contract, &parameters, node, here);
    let verifies = job_type == JobType::Verification;
    let with_content = with_content.unwrap_or_else(|| uses_content(job_type, &parameters));
    check_content(&parameters, with_content, parameters_node?, here);
    Some(JobTemplate {
        job_type,
        runner: runner.unwrap_or_else(|| DEFAULT_RUNNER.to_owned()),
        isolation,
        runner_labels,
        targets: targets?,
        parameters,
        capabilities,
        artifacts,
        secrets,
        output_contract,
        timeout_seconds,
        retry,
        allowed_commands_ref,
        idempotent: idempotent.unwrap_or(verifies),
        mutating: mutating.unwrap_or(!verifies),
        with_content,
    })
}

fn job_type(fields: &mut Fields<'_, '_>) -> Option<JobType> {
    let found = fields.text("type")?;
    let Some(job_type) = JobType::ALL.into_iter().find(|kind| kind.as_str() == found.value) else {
        fields.faults().add(
            found.at,
            FaultCode::InvalidValue,
            format!("there is no job type `{}`", found.value),
            suggestion(&found.value, JobType::ALL.iter().map(|kind| kind.as_str())),
        );
        return None;
    };
    if !job_types::is_available(job_type) {
        fields.faults().add(
            found.at,
            FaultCode::JobTypeUnavailable,
            format!("{} jobs are not available yet", found.value),
            "use ansible, ssh or verification",
        );
        return None;
    }
    Some(job_type)
}

fn labels(fields: &mut Fields<'_, '_>) -> BTreeMap<String, String> {
    let faults = fields.faults();
    fields
        .map("runner_labels")
        .iter()
        .filter_map(|(key, node)| Some((key.name.clone(), text(node, "runner_labels", faults)?.value)))
        .collect()
}

/// `item`, `none`, a slot or a list of slots; `item` unless said otherwise.
fn targets(fields: &mut Fields<'_, '_>, here: &Here<'_>, job_type: Option<JobType>) -> Option<Targets> {
    let faults = here.faults;
    let missing = |at, message: &str, remedy: &str| faults.add(at, FaultCode::MissingField, message, remedy);
    let Some(node) = fields.node("targets") else {
        if here.slot_of_item().is_some() || here.faulty_for_each {
            return Some(Targets::Item);
        }
        missing(
            fields.at,
            "it is not said whom the job acts on",
            "add `targets` with a slot, or `for_each` over one",
        );
        return None;
    };
    match &node.content {
        Content::Text(word) if word == "item" => {
            if here.slot_of_item().is_none() && !here.faulty_for_each {
                missing(
                    node.at,
                    "there is no item that is a resource",
                    "add `for_each` over a slot",
                );
            }
            Some(Targets::Item)
        }
        Content::Text(word) if word == "none" => {
            if job_type.is_some_and(|kind| kind != JobType::Verification) {
                missing(node.at, "only a verification job may act on nothing", "name a slot");
            }
            Some(Targets::Nothing)
        }
        Content::List(items) => Some(Targets::Slots(slots(items, "targets", here.known, faults))),
        _ => {
            let named = one_or_more(node, "targets", faults);
            let known = named.into_iter().filter(|slot| here.known.slot(slot, faults).is_some());
            Some(Targets::Slots(known.map(|slot| slot.value).collect()))
        }
    }
}

fn checked(node: &Node, here: &Here<'_>, references: &mut NodeReferences) -> Dynamic {
    let value = dynamic(node, here.faults);
    for read in check_dynamic(&value, node.at, here.place(), here.known, here.faults) {
        references.0.push((here.id.to_owned(), read, node.at));
    }
    value
}

fn parameters(node: &Node, job_type: Option<JobType>, here: &Here<'_>, references: &mut NodeReferences) -> Dynamic {
    map(node, "parameters", here.faults);
    let value = checked(node, here, references);
    if let Some(job_type) = job_type {
        for fault in job_types::faults_of(job_type, &value) {
            here.faults.add(
                node.place_of(&fault.pointer),
                FaultCode::JobParameters,
                format!("{} parameters{}: {}", job_type.as_str(), fault.pointer, fault.detail),
                "see the job type's parameters",
            );
        }
    }
    for pointer in secrets::places_in(&node.to_json()) {
        let given = node.to_json();
        let interpolated = given
            .pointer(&pointer)
            .and_then(Value::as_str)
            .is_some_and(|t| t.contains("${"));
        if !interpolated {
            here.faults.add(
                node.place_of(&pointer),
                FaultCode::SecretValue,
                format!("`{}` holds a secret's value", pointer.trim_start_matches('/')),
                "take a reference: `secrets: [{secret_ref: vault://MOUNT/PATH}]`",
            );
        }
    }
    value
}

fn secret(node: &Node, here: &Here<'_>) -> Option<SecretTemplate> {
    let faults = here.faults;
    let mut fields = Fields::open(node, "secret", faults)?;
    fields.required("secret_ref");
    let secret_ref = fields.dynamic("secret_ref");
    let deliveries = [
        ("file", SecretDelivery::File),
        ("agent", SecretDelivery::Agent),
        ("stdin", SecretDelivery::Stdin),
        ("env", SecretDelivery::Env),
    ];
    let delivery = fields.choice("as", &deliveries);
    let name = fields.text("name").map(|t| t.value);
    fields.finish();
    let secret_ref = secret_ref?;
    check_dynamic(&secret_ref.value, secret_ref.at, here.place(), here.known, faults);
    if secret_ref
        .value
        .expressions()
        .iter()
        .any(|e| e.reads(crate::dynamic::NODES))
    {
        faults.add(
            secret_ref.at,
            FaultCode::BadExpression,
            "a secret reference cannot depend on earlier nodes",
            "write the reference, or take it from a parameter",
        );
    }
    if let Dynamic::Fixed(value) = &secret_ref.value {
        let is_reference = value
            .as_str()
            .is_some_and(|t| t.parse::<contracts::SecretRef>().is_ok());
        if !is_reference {
            faults.add(
                secret_ref.at,
                FaultCode::SecretValue,
                "this is no secret reference",
                "write vault://MOUNT/PATH or vault://MOUNT/PATH#FIELD",
            );
        }
    }
    Some(SecretTemplate {
        secret_ref: secret_ref.value,
        delivery,
        name,
    })
}

fn output(node: &Node, here: &Here<'_>) -> Option<OutputContract> {
    let faults = here.faults;
    let mut fields = Fields::open(node, "output contract", faults)?;
    let plain = |nodes: &[Node], what| texts(nodes, what, faults).into_iter().map(|t| t.value).collect();
    let contract = OutputContract {
        capabilities: names(fields.list("capabilities"), "capabilities", here),
        artifacts: plain(fields.list("artifacts"), "artifacts"),
        evidence: plain(fields.list("evidence"), "evidence"),
    };
    fields.finish();
    Some(contract)
}

fn retry(fields: &mut Fields<'_, '_>, here: &Here<'_>) -> String {
    let found: Option<Placed<String>> = fields.text("retry");
    let Some(found) = found else {
        return DEFAULT_RETRY.to_owned();
    };
    let policies = here.known.around.retry_policies;
    if !policies.contains_key(&found.value) {
        here.faults.add(
            found.at,
            FaultCode::UnknownRetryPolicy,
            format!("there is no retry policy `{}`", found.value),
            suggestion(&found.value, policies.keys().map(String::as_str)),
        );
    }
    found.value
}

/// Evidence that the contract asks for must come from one of the job's checks, when those are fixed.
fn check_contract(contract: &OutputContract, parameters: &Dynamic, node: &Node, here: &Here<'_>) {
    let Some(checks) = job_types::names_of_checks(parameters) else {
        return;
    };
    for name in &contract.evidence {
        if !checks.contains(name) {
            here.faults.add(
                node.place_of("/output/evidence"),
                FaultCode::Unprovided,
                format!("no check of this job is called `{name}`"),
                suggestion(name, checks.iter().map(String::as_str)),
            );
        }
    }
}

fn content_paths(parameters: &Dynamic) -> Vec<(&'static str, &str)> {
    let find = |name: &'static str| match parameters {
        Dynamic::Fixed(value) => value.get(name).and_then(Value::as_str).map(|path| (name, path)),
        Dynamic::Map(fields) => match fields.get(name) {
            Some(Dynamic::Fixed(value)) => value.as_str().map(|path| (name, path)),
            _ => None,
        },
        _ => None,
    };
    ["playbook", "script_file"].into_iter().filter_map(find).collect()
}

fn uses_content(job_type: JobType, parameters: &Dynamic) -> bool {
    job_type == JobType::Ansible || content_paths(parameters).iter().any(|(name, _)| *name == "script_file")
}

fn check_content(parameters: &Dynamic, with_content: bool, node: &Node, here: &Here<'_>) {
    let around = here.known.around;
    let Some(directory) = &around.content else {
        if with_content {
            here.faults.add(
                node.at,
                FaultCode::MissingContent,
                "this job takes content along, and the pack has none",
                "add `content: content` to pack.yaml and put the files there",
            );
        }
        return;
    };
    for (name, path) in content_paths(parameters) {
        if !around.bundle.files().contains_key(&format!("{directory}{path}")) {
            let files = around
                .bundle
                .files()
                .keys()
                .filter_map(|file| file.strip_prefix(directory.as_str()));
            here.faults.add(
                node.place_of(&format!("/{name}")),
                FaultCode::MissingContent,
                format!("there is no file `{path}` in the pack's content"),
                suggestion(path, files.take(20)),
            );
        }
    }
}
