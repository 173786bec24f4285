//! Commands on an operation: decided at once, in the transaction that also keeps the answer. So they are
//! taken when no runtime runs, and a repeat gets the first answer.

use api_kit::{Caller, Claim, IdempotentRequest, Problem, StoredResponse, Tell, database_problem, idempotency_hot};
use control_plane_operation::{Command, CommandActor, CommandAnswer, CommandKind, Input, InterventionId, Refusal};
use kernel::id::{OperationId, PlanId};
use serde::Serialize;
use uuid::Uuid;

use super::App;
use super::fault::{of_engine, refused};
use super::operations::create::finish;
use crate::engine::Turn;
use crate::points;

/// What a person asks of an operation.
pub struct Asked {
    pub kind: CommandKind,
    pub reason: String,
    pub expected_version: Option<i64>,
    /// The id of the plan that becomes the next revision.
    pub plan_id: Option<PlanId>,
}

/// A command on its way.
pub struct Commanding<'a> {
    pub app: &'a App,
    pub caller: &'a Caller,
    pub operation: OperationId,
    pub request: &'a IdempotentRequest,
}

impl<'a> Commanding<'a> {
    /// Begins: either a turn in which the command is to be decided, or the answer to an earlier one.
    pub async fn begin(&self) -> Result<Result<Turn<'a>, StoredResponse>, Problem> {
        let turn = self
            .app
            .engine
            .turn(self.caller.organization, self.operation)
            .await
            .map_err(of_engine)?;
        match idempotency_hot::claim(turn.transaction(), self.caller.organization, self.request).await? {
            Claim::Fresh => Ok(Ok(turn)),
            Claim::Replay(stored) => Ok(Err(stored)),
        }
    }

    /// Decides the command and keeps the answer that `view` makes of the changed operation.
    pub async fn carry_out<T: Serialize>(
        &self,
        mut turn: Turn<'a>,
        asked: Asked,
        view: impl AsyncFnOnce(&Turn<'_>) -> Result<(T, i64), Problem>,
    ) -> Result<StoredResponse, Problem> {
        let (word, reason) = (asked.kind.as_str(), asked.reason.clone());
        let answer = self.decide(&mut turn, asked);
        turn.write().await.map_err(of_engine)?;
        let refusal = answer.err().map(|(refusal, version)| refused(&refusal, version));
        let response = match &refusal {
            None => {
                let (body, version) = view(&turn).await?;
                StoredResponse::json(200, &body)?.version(version)
            }
            Some(problem) => StoredResponse::json(problem.status, problem)?,
        };
        self.record(&turn, word, &reason, refusal.as_ref()).await?;
        idempotency_hot::store(turn.transaction(), self.caller.organization, self.request, &response).await?;
        points::hit("control_plane.command.before_commit");
        finish(&self.app.engine, turn).await?;
        points::hit("control_plane.command.after_commit");
        self.caller.act.written();
        Ok(response)
    }

    fn decide(&self, turn: &mut Turn<'_>, asked: Asked) -> Result<(), (Refusal, i64)> {
        // The key names the command for ever, also when the kept answer is gone after a week.
        let name = format!(
            "{} {} {}",
            self.caller.subject,
            self.request.operation,
            self.request.key.as_str()
        );
        let id = InterventionId(Uuid::new_v5(&self.operation.0, name.as_bytes()));
        if let Some(plan_id) = asked.plan_id {
            turn.revision_ids.insert(self.operation, plan_id);
        }
        turn.command_body(id, self.request.digest);
        let command = Command {
            id,
            actor: CommandActor {
                subject: self.caller.subject.clone(),
                roles: self.caller.roles.iter().map(ToString::to_string).collect(),
            },
            kind: asked.kind,
            expected_revision: asked.expected_version.and_then(|version| u64::try_from(version).ok()),
            reason: Some(asked.reason).filter(|reason| !reason.is_empty()),
        };
        let outcomes = turn.tell(self.operation, vec![Input::Command(Box::new(command))]);
        let version = turn
            .state(self.operation)
            .map_or(0, |state| i64::try_from(state.operation().revision).unwrap_or(i64::MAX));
        match outcomes.into_iter().next().map(|outcome| outcome.answer) {
            Some(CommandAnswer::Refused(refusal)) => Err((refusal, version)),
            _ => Ok(()),
        }
    }

    async fn record(
        &self,
        turn: &Turn<'_>,
        word: &str,
        reason: &str,
        refusal: Option<&Problem>,
    ) -> Result<(), Problem> {
        let tell = match refusal {
            None => Tell::accepted(),
            Some(problem) => Tell::refused(problem.code.as_str()),
        };
        let subject = format!("operation/{}", self.operation);
        let tell = tell.on(subject).because(reason).with("command", word);
        let recorded = self.caller.act.record(turn.transaction(), tell).await;
        recorded.map_err(|error| database_problem(&error))
    }
}
