//! Arbitrary valid values of every contract.

use chrono::{DateTime, TimeZone, Utc};
use contracts::*;
use kernel::id::{AttemptId, CommandId, OperationId, OrganizationId, ResourceUid};
use kernel::{DottedName, ResourceId, Sha256Digest};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value};
use uuid::Uuid;

fn uuid() -> impl Strategy<Value = Uuid> {
    any::<u128>().prop_map(Uuid::from_u128)
}
fn operation() -> impl Strategy<Value = OperationId> {
    uuid().prop_map(OperationId)
}
fn attempt() -> impl Strategy<Value = AttemptId> {
    uuid().prop_map(AttemptId)
}
fn uid() -> impl Strategy<Value = ResourceUid> {
    uuid().prop_map(ResourceUid)
}
fn time() -> impl Strategy<Value = DateTime<Utc>> {
    (0_i64..4_000_000_000, 0_u32..1_000_000)
        .prop_map(|(s, micros)| Utc.timestamp_opt(s, micros * 1000).single().expect("in range"))
}
fn name() -> impl Strategy<Value = DottedName> {
    "[a-z][a-z0-9_]{0,6}([.][a-z][a-z0-9_]{0,6}){0,2}".prop_map(|t| t.parse().expect("a dotted name"))
}
fn resource_id() -> impl Strategy<Value = ResourceId> {
    "[a-z]{1,6}/[a-z0-9]{1,8}".prop_map(|t| t.parse().expect("a resource id"))
}
fn digest() -> impl Strategy<Value = Sha256Digest> {
    any::<[u8; 32]>().prop_map(Sha256Digest::from_bytes)
}
fn text() -> impl Strategy<Value = String> {
    "[ -~äжλ☃]{0,20}"
}
fn object() -> impl Strategy<Value = Map<String, Value>> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        text().prop_map(Value::from)
    ];
    let value = leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map("[a-z]{1,5}", inner, 0..4).prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    });
    btree_map("[a-z_]{1,8}", value, 0..4).prop_map(|m| m.into_iter().collect())
}

pub fn artifact_ref() -> impl Strategy<Value = ArtifactRef> {
    let storage = select(vec![
        ArtifactStorage::S3,
        ArtifactStorage::Vault,
        ArtifactStorage::InlineMetadata,
    ]);
    let sensitivity = select(vec![Sensitivity::Public, Sensitivity::Internal, Sensitivity::Secret]);
    let kinds = select(ArtifactRef::BUILT_IN_TYPES.to_vec()).prop_map(str::to_owned);
    let artifact_type = prop_oneof![kinds, "[a-z]{1,9}[.][a-z]{1,9}"];
    let optional = (
        option::of(text()),
        option::of(digest()),
        option::of(0_u64..1 << 50),
        option::of(text()),
    );
    (
        uuid(),
        artifact_type,
        storage,
        text(),
        sensitivity,
        operation(),
        text(),
        optional,
    )
        .prop_map(
            |(
                id,
                artifact_type,
                storage,
                uri,
                sensitivity,
                operation_id,
                plan_node_id,
                (name, sha256, size_bytes, media_type),
            )| {
                let produced_by = ProducedBy {
                    operation_id,
                    plan_node_id,
                };
                ArtifactRef {
                    id,
                    artifact_type,
                    storage,
                    uri,
                    sensitivity,
                    produced_by,
                    name,
                    sha256,
                    size_bytes,
                    media_type,
                }
            },
        )
}

pub fn evidence_ref() -> impl Strategy<Value = EvidenceRef> {
    let kind = select(vec![
        EvidenceType::CommandCheck,
        EvidenceType::ApiCheck,
        EvidenceType::MetricCheck,
        EvidenceType::LogCheck,
        EvidenceType::HumanVerification,
    ]);
    let result = select(vec![
        EvidenceResult::Passed,
        EvidenceResult::Failed,
        EvidenceResult::Inconclusive,
    ]);
    let optional = (
        option::of(text()),
        option::of(resource_id()),
        option::of(attempt()),
        option::of(digest()),
    );
    (uuid(), kind, name(), result, text(), time(), optional).prop_map(
        |(id, evidence_type, capability, result, source_ref, observed_at, (name, resource_id, attempt_id, sha256))| {
            EvidenceRef {
                id,
                evidence_type,
                capability,
                result,
                source_ref,
                observed_at,
                name,
                resource_id,
                attempt_id,
                sha256,
            }
        },
    )
}

pub fn execution_result() -> impl Strategy<Value = ExecutionResult> {
    use ExecutionStatus as S;
    use ExitCategory as C;
    let status = select(vec![S::Succeeded, S::Failed, S::Cancelled, S::TimedOut]);
    let category = select(vec![
        C::Success,
        C::ValidationError,
        C::InfrastructureError,
        C::PolicyError,
        C::Unknown,
    ]);
    let summary = (any::<i32>(), category, text()).prop_map(|(code, category, message)| ExitSummary {
        code,
        category,
        message,
    });
    let log =
        (uuid(), text(), digest(), 0_u64..1 << 50, 0_u64..1 << 40).prop_map(|(id, uri, sha256, size_bytes, lines)| {
            LogRef {
                id,
                uri,
                sha256,
                size_bytes,
                lines,
            }
        });
    let optional = (
        option::of(select(vec![JobStarted::Yes, JobStarted::No, JobStarted::Unknown])),
        option::of(select(vec![
            ExitReason::Person,
            ExitReason::Timeout,
            ExitReason::LostRunner,
            ExitReason::Policy,
            ExitReason::Limit,
        ])),
        option::of(object()),
    );
    let lists = (vec(artifact_ref(), 0..3), vec(evidence_ref(), 0..3), vec(log, 0..3));
    (
        operation(),
        text(),
        attempt(),
        status,
        option::of(time()),
        time(),
        summary,
        lists,
        optional,
    )
        .prop_map(
            |(
                operation_id,
                plan_node_id,
                attempt_id,
                status,
                started_at,
                finished_at,
                exit_summary,
                lists,
                optional,
            )| {
                let (artifacts, evidence, raw_logs) = lists;
                let (job_started, reason, outputs) = optional;
                ExecutionResult {
                    operation_id,
                    plan_node_id,
                    attempt_id,
                    status,
                    started_at,
                    finished_at,
                    exit_summary,
                    artifacts,
                    evidence,
                    raw_logs,
                    job_started,
                    reason,
                    outputs,
                }
            },
        )
}

pub fn resource_update_command() -> impl Strategy<Value = ResourceUpdateCommand> {
    let capabilities =
        (vec(name(), 0..3), vec(name(), 0..2), object()).prop_map(|(add, remove, attributes)| ProvidedCapabilities {
            add,
            remove,
            attributes,
        });
    let changes = (
        option::of(select(LifecycleStatus::ALL.to_vec())),
        option::of(select(HealthStatus::ALL.to_vec())),
        option::of(object().prop_map(Value::Object)),
        option::of(capabilities),
    )
        .prop_map(
            |(lifecycle_status, health_status, observed_state_patch, provided_capabilities)| Changes {
                lifecycle_status,
                health_status,
                observed_state_patch,
                provided_capabilities,
            },
        );
    let ids = (uuid().prop_map(CommandId), operation(), resource_id());
    (
        ids,
        0_i64..1 << 50,
        changes,
        vec(evidence_ref(), 0..3),
        option::of(uid()),
        option::of(text()),
    )
        .prop_map(
            |((command_id, operation_id, resource_id), expected_version, changes, evidence, uid, traceparent)| {
                ResourceUpdateCommand {
                    command_id,
                    operation_id,
                    resource_id,
                    expected_version,
                    changes,
                    evidence,
                    uid,
                    traceparent,
                }
            },
        )
}

pub fn projection_event() -> impl Strategy<Value = CatalogProjectionEvent> {
    use ProjectionEventType as T;
    let known = select(vec![
        T::ResourceUpdated,
        T::CapabilityProvided,
        T::ResourceHealthChanged,
        T::ResourceCreated,
        T::ResourceDeleted,
        T::CapabilityWithdrawn,
        T::RelationshipChanged,
    ]);
    let kind = prop_oneof![known, "[a-z]{3,9}[.]x[a-z]{3,9}".prop_map(T::Other)];
    let optional = (
        option::of(uid()),
        option::of(0_i64..1 << 50),
        option::of(0_i64..1 << 50),
        option::of(uuid().prop_map(CommandId)),
        option::of(text()),
    );
    (
        uuid(),
        kind,
        resource_id(),
        name(),
        uuid().prop_map(OrganizationId),
        1_i64..1 << 50,
        object(),
        time(),
        optional,
    )
        .prop_map(
            |(
                event_id,
                event_type,
                resource_id,
                resource_type,
                organization_id,
                version,
                payload,
                occurred_at,
                optional,
            )| {
                let (uid, prev_version, revision, command_id, traceparent) = optional;
                CatalogProjectionEvent {
                    event_id,
                    event_type,
                    resource_id,
                    resource_type,
                    organization_id,
                    version,
                    payload,
                    occurred_at,
                    uid,
                    prev_version,
                    revision,
                    command_id,
                    traceparent,
                }
            },
        )
}

fn secret() -> impl Strategy<Value = SecretInput> {
    use SecretDelivery as D;
    (
        "[a-z]{1,6}",
        "[a-z]{1,6}",
        option::of(select(vec![D::File, D::Agent, D::Stdin, D::Env])),
        option::of("[A-Z]{1,6}"),
    )
        .prop_map(|(mount, path, delivery, name)| SecretInput {
            secret_ref: SecretRef {
                mount,
                path,
                field: None,
            },
            delivery,
            name,
        })
}

pub fn job_spec() -> impl Strategy<Value = JobSpec> {
    let target = (resource_id(), name(), option::of(uid()), option::of(object())).prop_map(
        |(resource_id, resource_type, uid, connection)| TargetResource {
            resource_id,
            resource_type,
            uid,
            connection,
        },
    );
    let runner = (
        text(),
        select(vec![Isolation::Process, Isolation::Sandbox, Isolation::Container]),
        btree_map("[a-z]{1,4}", "[a-z]{1,4}", 0..3),
    )
        .prop_map(|(name, isolation, labels)| RunnerRequest {
            name,
            isolation,
            labels,
        });
    let artifacts = vec(
        "[a-z:/]{1,12}".prop_map(|artifact_ref| ArtifactInput { artifact_ref }),
        0..2,
    );
    let inputs = (object(), vec(name(), 0..3), artifacts, vec(secret(), 0..3)).prop_map(
        |(parameters, capabilities, artifacts, secrets)| Inputs {
            parameters,
            capabilities,
            artifacts,
            secrets,
        },
    );
    let contract =
        (vec(name(), 0..3), vec(text(), 0..3), vec(text(), 0..3)).prop_map(|(capabilities, artifacts, evidence)| {
            OutputContract {
                capabilities,
                artifacts,
                evidence,
            }
        });
    let controls = (any::<u32>(), option::of(text()), option::of(text())).prop_map(
        |(timeout_seconds, retry_policy_ref, allowed_commands_ref)| Controls {
            timeout_seconds,
            retry_policy_ref,
            allowed_commands_ref,
        },
    );
    let optional = (
        option::of(uuid().prop_map(OrganizationId)),
        option::of(text()),
        option::of((text(), text()).prop_map(|(name, version)| ScenarioRef { name, version })),
        option::of(digest().prop_map(|sha256| ContentRef { sha256 })),
    );
    let heads = (operation(), text(), attempt(), select(JobType::ALL.to_vec()));
    let target = (vec(target, 0..3), text()).prop_map(|(resources, environment)| Target { resources, environment });
    (heads, runner, target, inputs, contract, controls, optional).prop_map(
        |(
            (operation_id, plan_node_id, attempt_id, job_type),
            runner,
            target,
            inputs,
            output_contract,
            controls,
            optional,
        )| {
            let (organization_id, traceparent, scenario, content) = optional;
            JobSpec {
                operation_id,
                plan_node_id,
                attempt_id,
                job_type,
                runner,
                target,
                inputs,
                output_contract,
                controls,
                organization_id,
                traceparent,
                scenario,
                content,
            }
        },
    )
}
