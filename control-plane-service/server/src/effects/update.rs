//! Telling the catalog what became true.

use std::collections::BTreeMap;
use std::sync::Arc;

use contracts::ResourceUpdateCommand;
use control_plane_operation::{Input, UpdateOutcome};
use kernel::Sha256Digest;
use resource_catalog_api::{Outcome, UpdateOutcome as Answer, ValidationItem, ValidationRequest};

use super::answer::{in_words, refusal};
use super::validate::pin_for;
use super::{PerformError, Performer, Report};
use crate::engine::Engine;
use crate::points;
use crate::store::effect::OwnedEffect;

impl Performer {
    pub(super) async fn update(
        &self,
        engine: &Arc<Engine>,
        owned: &OwnedEffect,
        command: &ResourceUpdateCommand,
    ) -> Result<Report, PerformError> {
        points::hit("control_plane.update.before_call");
        let answer = self.catalog(owned.organization).update_resource(command).await;
        points::hit("control_plane.update.after_call");
        let outcome = match answer {
            Ok(answer) => self.outcome(engine, owned, command, answer).await,
            Err(error) => UpdateOutcome::Rejected {
                detail: in_words(&refusal("resource-catalog", error)?),
            },
        };
        Ok(Report::Tell(Input::UpdateOutcome {
            command_id: command.command_id,
            outcome,
        }))
    }

    async fn outcome(
        &self,
        engine: &Arc<Engine>,
        owned: &OwnedEffect,
        command: &ResourceUpdateCommand,
        answer: Answer,
    ) -> UpdateOutcome {
        match (answer.settled(), answer.conflict) {
            (Outcome::Applied | Outcome::Replayed, _) => {
                let version = answer.version.unwrap_or(command.expected_version + 1);
                let pins = self.pins_after(engine, owned, command, version).await;
                UpdateOutcome::Applied {
                    version,
                    pins: pins.unwrap_or_default(),
                }
            }
            (Outcome::Conflict, Some(conflict)) => UpdateOutcome::Conflict {
                current_version: conflict.current_version,
                overlaps: conflict.overlaps,
                differing: conflict.differs.iter().map(|differs| differs.pointer.clone()).collect(),
                other_incarnation: conflict.other_incarnation,
            },
            (Outcome::Conflict, None) => UpdateOutcome::Rejected {
                detail: "the catalog has another version and does not say which".to_owned(),
            },
            (Outcome::Rejected, _) => UpdateOutcome::Rejected {
                detail: answer
                    .errors
                    .iter()
                    .map(|error| format!("{}: {}", error.pointer, error.detail))
                    .collect::<Vec<_>>()
                    .join("; "),
            },
        }
    }

    /// The pins after our own update, while the resource is still exactly as it left it. Not knowing them
    /// is no fault: the next validation then goes by the version.
    async fn pins_after(
        &self,
        engine: &Arc<Engine>,
        owned: &OwnedEffect,
        command: &ResourceUpdateCommand,
        version: i64,
    ) -> Option<BTreeMap<String, Sha256Digest>> {
        let plan = engine.plan_of(owned.organization, owned.operation).await.ok()?;
        let item = ValidationItem {
            uid: command.uid,
            expected_version: Some(version),
            ..ValidationItem::exists(command.resource_id.clone())
        };
        let request = ValidationRequest {
            operation_id: Some(owned.operation),
            set_finalizers: false,
            resources: vec![item],
        };
        let answer = self.catalog(owned.organization).validate(&request).await.ok()?;
        let current = answer
            .resources
            .into_iter()
            .next()
            .filter(|result| result.valid)?
            .current?;
        let slots = plan.document().plan().slots.iter();
        let binding = slots.filter(|slot| slot.resources.iter().any(|bound| bound.uid == current.uid));
        Some(
            binding
                .map(|slot| (slot.slot.clone(), pin_for(slot, &current)))
                .collect(),
        )
    }
}
