//! One operation in a small world: a store, an execution-plane and a catalog that do as the test says.
//! Every step checks what must always hold.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, Duration, Utc};
use contracts::{
    ArtifactRef, ArtifactStorage, EvidenceRef, EvidenceResult, EvidenceType, ExecutionResult, ExecutionStatus,
    ExitCategory, ExitReason, ExitSummary, JobSpec, JobStarted, ProducedBy, ResourceUpdateCommand, Sensitivity,
};
use control_plane_operation::row::NodeRunRow;
use control_plane_operation::{
    BindingFound, Change, Command, CommandActor, CommandAnswer, CommandKind, CommandOutcome, Decision, Effect,
    EffectKind, Event, ExpressionError, Expressions, GateId, GateState, IdSource, Input, InterventionId, NewOperation,
    NodeOutputs, NodeState, OperationState, OperationStatus, PlanIndex, Refusal, UpdateOutcome, ValidatedBinding,
    create, decide,
};
use kernel::id::{AttemptId, OperationId, OrganizationId};
use serde_json::Value;
use uuid::Uuid;

use crate::invariants;
use crate::plans::{CAPABILITY, pin, uid};
use crate::store::Store;

/// Ids in a row.
#[derive(Clone, Default)]
pub struct Ids(pub u128);

impl IdSource for Ids {
    fn next_id(&mut self) -> Uuid {
        self.0 += 1;
        Uuid::from_u128(self.0)
    }

    fn jitter(&mut self) -> u32 {
        u32::try_from(self.0 * 37 % 1_000).unwrap()
    }
}

/// Expressions of tests: JSON literals, `NODE.FIELD.FIELD`, `item.key` and `X==Y`.
pub struct Words;

impl Expressions for Words {
    fn evaluate(&self, expression: &str, outputs: &dyn NodeOutputs) -> Result<Value, ExpressionError> {
        if let Some((left, right)) = expression.split_once("==") {
            let equal = self.evaluate(left, outputs)? == self.evaluate(right, outputs)?;
            return Ok(Value::Bool(equal));
        }
        if let Ok(literal) = serde_json::from_str(expression) {
            return Ok(literal);
        }
        let (first, rest) = expression.split_once('.').unwrap_or((expression, ""));
        let unknown = || ExpressionError(format!("{first} is not known here"));
        let root = match first {
            "item" => outputs.item().ok_or_else(unknown)?,
            "parameters" => Value::Object(outputs.parameters().clone()),
            node => outputs.output(node).ok_or_else(unknown)?,
        };
        let pointer = if rest.is_empty() {
            String::new()
        } else {
            format!("/{}", rest.replace('.', "/"))
        };
        let value = root.pointer(&pointer).cloned();
        value.ok_or_else(|| ExpressionError(format!("{expression} has no value")))
    }
}

pub fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
}

#[derive(Clone)]
pub struct World {
    pub state: OperationState,
    pub store: Store,
    pub plans: BTreeMap<u32, Arc<PlanIndex>>,
    pub events: Vec<Event>,
    /// Effects not carried out, in order.
    pub effects: Vec<Effect>,
    /// Attempts that were ever handed out, by id.
    pub specs: BTreeMap<AttemptId, JobSpec>,
    pub now: DateTime<Utc>,
    pub ids: Ids,
    pub commands: u128,
    pub decisions: usize,
    pub changes: usize,
    /// Nodes behind each gate, per revision: the slow and plain computation.
    pub covered: BTreeMap<u32, invariants::Covered>,
    /// Only in worlds that are counted and not checked after each step: what stands in for the state
    /// while it is being decided on.
    pub idle: Option<Box<OperationState>>,
}

fn order_of(plan: Arc<PlanIndex>) -> NewOperation {
    NewOperation {
        id: OperationId(Uuid::from_u128(0x0b)),
        organization_id: OrganizationId(Uuid::from_u128(0x06)),
        requester: REQUESTER.into(),
        plan,
        wait_for_claims: true,
    }
}

pub const REQUESTER: &str = "rita";

impl World {
    pub fn new(plan: Arc<PlanIndex>) -> Self {
        Self::with(plan, None)
    }

    /// A world in which steps are counted and not checked.
    pub fn counted(plan: Arc<PlanIndex>) -> Self {
        let idle = create(order_of(crate::plans::plan(0).index()), at(0)).state;
        Self::with(plan, Some(Box::new(idle)))
    }

    fn with(plan: Arc<PlanIndex>, idle: Option<Box<OperationState>>) -> Self {
        let decision = create(order_of(Arc::clone(&plan)), at(0));
        let mut world = Self {
            state: decision.state.clone(),
            store: Store::default(),
            covered: BTreeMap::from([(1, invariants::Covered::of(&plan))]),
            plans: BTreeMap::from([(1, plan)]),
            events: Vec::new(),
            effects: Vec::new(),
            specs: BTreeMap::new(),
            now: at(0),
            ids: Ids(0x1000),
            commands: 0xc000_0000,
            decisions: 0,
            changes: 0,
            idle,
        };
        world.commit(decision);
        world
    }

    /// One decision over `inputs`, committed and checked.
    pub fn tell(&mut self, inputs: &[Input]) -> Vec<CommandOutcome> {
        // Deciding consumes the state; only checking looks at the earlier one again.
        let state = match &self.idle {
            None => self.state.clone(),
            Some(idle) => core::mem::replace(&mut self.state, idle.as_ref().clone()),
        };
        let decision = self.decide(state, inputs);
        if self.idle.is_none() {
            let restored = self.restored();
            let mut ids = self.ids.clone();
            let again = decide(restored, inputs, self.now, &mut ids, &Words);
            invariants::same(&decision, &again);
        }
        self.ids.0 += 1_000_000;
        let outcomes = decision.command_outcomes.clone();
        match self.clone_if_checked() {
            Some(before) => {
                self.commit(decision.clone());
                invariants::after_step(&before, self, inputs, &decision);
            }
            None => self.commit(decision),
        }
        outcomes
    }

    fn clone_if_checked(&self) -> Option<Store> {
        self.idle.is_none().then(|| self.store.clone())
    }

    fn decide(&self, state: OperationState, inputs: &[Input]) -> Decision {
        decide(state, inputs, self.now, &mut self.ids.clone(), &Words)
    }

    fn commit(&mut self, decision: Decision) {
        self.decisions += 1;
        self.changes += decision.changes.len();
        for change in &decision.changes {
            self.store.apply(change);
            if let Change::PlanRevised { revision, .. } = change {
                let plan = Arc::clone(decision.state.plan());
                self.covered.insert(*revision, invariants::Covered::of(&plan));
                self.plans.insert(*revision, plan);
            }
        }
        for effect in &decision.effects {
            if let EffectKind::SubmitAttempt { spec } = &effect.kind {
                let again = self.specs.insert(spec.attempt_id, (**spec).clone());
                assert!(again.is_none(), "an attempt is handed out once");
            }
        }
        self.events.extend(decision.events);
        self.effects.extend(decision.effects);
        self.state = decision.state;
    }

    /// The state as a fresh process would load it.
    pub fn restored(&self) -> OperationState {
        let rows = self.store.rows();
        let text = serde_json::to_string(&rows).unwrap();
        let rows: control_plane_operation::row::Rows = serde_json::from_str(&text).unwrap();
        let plan = Arc::clone(&self.plans[&rows.operation.plan_revision]);
        OperationState::restore(rows, plan).unwrap()
    }

    pub fn crash(&mut self) {
        self.state = self.restored();
    }

    pub fn status(&self) -> OperationStatus {
        self.state.operation().status
    }

    pub fn node(&self, id: &str) -> &NodeRunRow {
        self.state.node_run(id).unwrap_or_else(|| panic!("no node {id}"))
    }

    pub fn node_state(&self, id: &str) -> NodeState {
        self.node(id).state
    }

    pub fn pass(&mut self, seconds: i64) {
        self.now += Duration::seconds(seconds);
    }

    // ---- commands

    pub fn command(&mut self, subject: &str, roles: &[&str], kind: CommandKind) -> Command {
        self.commands += 1;
        Command {
            id: InterventionId(Uuid::from_u128(self.commands)),
            actor: CommandActor {
                subject: subject.into(),
                roles: roles.iter().map(|role| (*role).to_owned()).collect(),
            },
            kind,
            expected_revision: None,
            reason: Some("because".into()),
        }
    }

    pub fn order(&mut self, kind: CommandKind) -> CommandAnswer {
        let command = self.command("oscar", &["operator", "approver"], kind);
        self.tell(&[Input::Command(Box::new(command))]).remove(0).answer
    }

    pub fn accept(&mut self, kind: CommandKind) -> OperationStatus {
        match self.order(kind.clone()) {
            CommandAnswer::Accepted { status, .. } => status,
            CommandAnswer::Refused(refusal) => panic!("{kind:?} was refused: {refusal:?}"),
        }
    }

    pub fn refused(&mut self, kind: CommandKind) -> Refusal {
        match self.order(kind.clone()) {
            CommandAnswer::Refused(refusal) => refusal,
            CommandAnswer::Accepted { .. } => panic!("{kind:?} was accepted"),
        }
    }

    pub fn open_gate(&self, node: &str) -> GateId {
        let mut open = self
            .state
            .gates()
            .filter(|gate| gate.node == node && gate.state == GateState::Open);
        open.next().unwrap_or_else(|| panic!("{node} is not open")).id
    }

    pub fn approval(&self, node: &str) -> CommandKind {
        let gate = self.open_gate(node);
        CommandKind::ApproveGate {
            gate,
            digest: self.store.gates[&gate].digest,
        }
    }

    pub fn approve(&mut self, node: &str) {
        let approval = self.approval(node);
        self.accept(approval);
    }

    // ---- the world's answers

    /// Starts the operation and answers up to the point where its nodes move.
    pub fn begin(&mut self) {
        self.tell(&[Input::Started]);
        self.grant();
        self.validate();
    }

    pub fn grant(&mut self) {
        if let Some((request, granted @ false)) = &mut self.store.claims {
            *granted = true;
            let request = *request;
            self.tell(&[Input::ClaimsGranted { request }]);
        }
    }

    /// Takes the effects out that fit.
    pub fn take(&mut self, wanted: impl Fn(&EffectKind) -> bool) -> Vec<Effect> {
        let (taken, left) = self.effects.drain(..).partition(|effect| wanted(&effect.kind));
        self.effects = left;
        taken
    }

    pub fn validate(&mut self) {
        for effect in self.take(|kind| matches!(kind, EffectKind::ValidateBindings { .. })) {
            let input = validated(&effect, &BTreeSet::new());
            self.tell(&[input]);
        }
    }

    /// The attempt of `node` that waits to be, or is being, run.
    pub fn attempt(&self, node: &str) -> AttemptId {
        let row = self.node(node);
        assert!(
            row.state.is_live() || row.state == NodeState::Unresolved,
            "{node} is {}",
            row.state
        );
        row.attempt.unwrap()
    }

    pub fn finish(&mut self, node: &str, end: &End) {
        let result = self.result(node, end);
        self.tell(&[Input::AttemptResult(Box::new(result))]);
    }

    pub fn succeed(&mut self, node: &str) {
        self.finish(node, &End::Success);
    }

    pub fn fail(&mut self, node: &str) {
        self.finish(node, &End::Failure);
    }

    pub fn result(&self, node: &str, end: &End) -> ExecutionResult {
        end.of(&self.specs[&self.attempt(node)], self.now)
    }

    /// Answers the resource updates that are under way as applied.
    pub fn apply_updates(&mut self) -> Vec<ResourceUpdateCommand> {
        let mut commands = Vec::new();
        for effect in self.take(|kind| matches!(kind, EffectKind::SendResourceUpdate { .. })) {
            let EffectKind::SendResourceUpdate { command } = effect.kind else {
                continue;
            };
            self.tell(&[Input::UpdateOutcome {
                command_id: command.command_id,
                outcome: UpdateOutcome::Applied {
                    version: command.expected_version + 1,
                    pins: BTreeMap::new(),
                },
            }]);
            commands.push(*command);
        }
        commands
    }

    /// Node ids that were handed to execution-plane, in order, since the last call.
    pub fn submitted(&mut self) -> Vec<String> {
        let effects = self.take(|kind| matches!(kind, EffectKind::SubmitAttempt { .. }));
        let spec = |effect: Effect| match effect.kind {
            EffectKind::SubmitAttempt { spec } => Some(spec.plan_node_id.clone()),
            _ => None,
        };
        effects.into_iter().filter_map(spec).collect()
    }

    /// Answers everything well until nothing is left to answer.
    pub fn go_on(&mut self) {
        for _ in 0..10_000 {
            self.grant();
            self.validate();
            self.apply_updates();
            let live = self
                .state
                .node_runs()
                .find(|row| row.state.is_live() && row.attempt.is_some());
            match live.map(|row| row.node.clone()) {
                Some(node) => self.succeed(&node),
                None if self.store.claims.is_none_or(|(_, granted)| granted) => return,
                None => {}
            }
        }
        panic!("it does not come to rest");
    }
}

/// The catalog's answer: all as planned, but for hosts that moved.
pub fn validated(effect: &Effect, moved: &BTreeSet<u128>) -> Input {
    let EffectKind::ValidateBindings { resources } = &effect.kind else {
        panic!("{effect:?} asks for no validation")
    };
    let found = |host: u128| BindingFound::Present {
        pin: if moved.contains(&host) {
            pin(host + 1_000)
        } else {
            pin(host)
        },
        version: 7,
        connection: Some(serde_json::Map::from_iter([("port".to_owned(), Value::from(22))])),
        differing: moved.iter().map(|_| "labels".to_owned()).collect(),
    };
    let bindings = resources.iter().map(|resource| ValidatedBinding {
        slot: resource.slot.clone(),
        uid: resource.uid,
        found: found(resource.uid.as_uuid().as_u128() - uid(0).as_uuid().as_u128()),
    });
    Input::BindingsValidated {
        request: effect.id,
        bindings: bindings.collect(),
    }
}

/// How an attempt ends.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// With everything that its contract asks for.
    Success,
    /// Exit code 0, but this evidence says otherwise.
    Unproven(EvidenceResult),
    /// Exit code 0 and nothing to show.
    Empty,
    /// Exit code 1, nothing to show.
    Failure,
    /// Exit code 1, but all evidence passed.
    FailureProven,
    Lost(JobStarted),
    Cancelled,
    TimedOut,
    EndedBy(ExitReason),
    /// Ended by a person, and the runner does not know whether its processes on the targets were.
    StillRunning,
    /// Ran on so many targets.
    RanOn(u64),
}

impl End {
    pub fn of(&self, spec: &JobSpec, now: DateTime<Utc>) -> ExecutionResult {
        let (status, code, category, reason) = match self {
            Self::Success | Self::Unproven(_) | Self::Empty | Self::RanOn(_) => {
                (ExecutionStatus::Succeeded, 0, ExitCategory::Success, None)
            }
            Self::Failure | Self::FailureProven => (ExecutionStatus::Failed, 1, ExitCategory::Unknown, None),
            Self::Lost(_) => (
                ExecutionStatus::Failed,
                -1,
                ExitCategory::InfrastructureError,
                Some(ExitReason::LostRunner),
            ),
            Self::Cancelled => (
                ExecutionStatus::Cancelled,
                -1,
                ExitCategory::Unknown,
                Some(ExitReason::Person),
            ),
            Self::TimedOut => (
                ExecutionStatus::TimedOut,
                -1,
                ExitCategory::Unknown,
                Some(ExitReason::Timeout),
            ),
            Self::StillRunning => (
                ExecutionStatus::Failed,
                -1,
                ExitCategory::Unknown,
                Some(ExitReason::Person),
            ),
            Self::EndedBy(reason) => (ExecutionStatus::Failed, -1, ExitCategory::PolicyError, Some(*reason)),
        };
        let proof = match self {
            Self::Success | Self::FailureProven | Self::RanOn(_) => Some(EvidenceResult::Passed),
            Self::Unproven(result) => Some(*result),
            _ => None,
        };
        ExecutionResult {
            operation_id: spec.operation_id,
            plan_node_id: spec.plan_node_id.clone(),
            attempt_id: spec.attempt_id,
            status,
            started_at: (*self != Self::Lost(JobStarted::No)).then_some(now),
            finished_at: now,
            exit_summary: ExitSummary {
                code,
                category,
                message: format!("{} ended with {code}", spec.plan_node_id),
            },
            artifacts: if proof.is_some() { artifacts(spec) } else { Vec::new() },
            evidence: proof.map(|result| evidence(spec, result, now)).unwrap_or_default(),
            raw_logs: Vec::new(),
            job_started: match self {
                Self::Lost(started) => Some(*started),
                _ => None,
            },
            reason,
            outputs: Some(outputs(self, spec)),
        }
    }
}

fn outputs(end: &End, spec: &JobSpec) -> serde_json::Map<String, Value> {
    let mut outputs = serde_json::Map::new();
    outputs.insert("from".into(), Value::from(spec.plan_node_id.clone()));
    if let End::RanOn(targets) = end {
        outputs.insert("targets_executed".into(), Value::from(*targets));
    }
    if *end == End::StillRunning {
        outputs.insert("remote_processes".into(), "unknown".into());
    }
    outputs
}

fn artifacts(spec: &JobSpec) -> Vec<ArtifactRef> {
    let names = spec.output_contract.artifacts.iter();
    let artifact = |name: &String| ArtifactRef {
        id: Uuid::from_u128(1),
        artifact_type: "install_report".into(),
        storage: ArtifactStorage::S3,
        uri: format!("s3://artifacts/{}/{name}", spec.plan_node_id),
        sensitivity: Sensitivity::Internal,
        produced_by: ProducedBy {
            operation_id: spec.operation_id,
            plan_node_id: spec.plan_node_id.clone(),
        },
        name: Some(name.clone()),
        sha256: None,
        size_bytes: None,
        media_type: None,
    };
    names.map(artifact).collect()
}

pub fn evidence(spec: &JobSpec, result: EvidenceResult, now: DateTime<Utc>) -> Vec<EvidenceRef> {
    let about: Vec<Option<kernel::ResourceId>> = match spec.target.resources.as_slice() {
        [] => vec![None],
        targets => targets.iter().map(|target| Some(target.resource_id.clone())).collect(),
    };
    let mut all = Vec::new();
    for name in &spec.output_contract.evidence {
        for resource_id in &about {
            all.push(EvidenceRef {
                resource_id: resource_id.clone(),
                attempt_id: Some(spec.attempt_id),
                ..proof_of(name, result, now)
            });
        }
    }
    all
}

pub fn proof_of(name: &str, result: EvidenceResult, now: DateTime<Utc>) -> EvidenceRef {
    EvidenceRef {
        id: Uuid::from_u128(2),
        evidence_type: EvidenceType::CommandCheck,
        capability: CAPABILITY.parse().unwrap(),
        result,
        source_ref: "s3://logs/check".into(),
        observed_at: now,
        name: Some(name.into()),
        resource_id: None,
        attempt_id: None,
        sha256: None,
    }
}
