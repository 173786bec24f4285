//! The model: random plans, and a world that answers in any order, twice, late, or not for a while, that
//! forgets everything but its rows, and in which people order about at random. After every step the
//! invariants hold; when the world answers at last, every run comes to an end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use contracts::{EvidenceResult, ExecutionResult, JobSpec, JobStarted};
use control_plane_operation::{
    CommandKind, Effect, EffectKind, GateId, Input, NodeState, OperationStatus, PlanIndex, Resolution, RetrySelection,
    UpdateOutcome,
};
use control_plane_plan::{GateClaims, NodeKind, OnFailure};
use kernel::Sha256Digest;
use kernel::id::AttemptId;
use proptest::prelude::*;

use crate::plans::{Plans, node, plan, retrying, uid, update};
use crate::world::{End, World, proof_of, validated};

/// One template node, drawn at random.
#[derive(Debug, Clone)]
struct Drawn {
    kind: u8,
    /// Which earlier nodes it needs, as bits.
    needs: u8,
    accept: u8,
    on_failure: u8,
    flags: u16,
}

fn drawn() -> impl Strategy<Value = Drawn> {
    (any::<u8>(), any::<u8>(), any::<u8>(), any::<u8>(), any::<u16>()).prop_map(
        |(kind, needs, accept, on_failure, flags)| Drawn {
            kind,
            needs,
            accept,
            on_failure,
            flags,
        },
    )
}

const ACCEPTS: [&str; 5] = [
    "succeeded",
    "succeeded|skipped",
    "succeeded|failed|skipped|timed_out|cancelled|lost",
    "failed|lost|timed_out",
    "succeeded",
];

impl Drawn {
    fn flag(&self, bit: u16) -> bool {
        self.flags & (1 << bit) != 0
    }

    fn policy(&self) -> OnFailure {
        match self.on_failure % 4 {
            0 | 1 => OnFailure::Fail,
            2 => OnFailure::Continue,
            _ => OnFailure::Hold,
        }
    }

    fn when(&self, needed: Option<&str>) -> Option<String> {
        match (self.flags >> 12, needed) {
            (0, _) => Some("false".into()),
            (1, _) => Some("nowhere.to.be.found".into()),
            (2 | 3, Some(needed)) => Some(format!("{needed}.status==\"succeeded\"")),
            _ => None,
        }
    }

    fn job(&self, job: &mut control_plane_plan::Job) {
        job.idempotent = self.flag(0);
        job.mutating = !self.flag(1);
        if self.flag(2) {
            job.retry = retrying(3);
        }
        if self.flag(3) {
            job.output_contract.evidence = vec!["up".into()];
        }
    }

    fn gate(&self, gate: &mut control_plane_plan::Gate) {
        gate.expires_after_seconds = self.flag(0).then_some(120);
        gate.claims = if self.flag(1) {
            GateClaims::Release
        } else {
            GateClaims::Hold
        };
    }
}

fn build(drawn: &[Drawn]) -> Plans {
    let mut plans = plan(3);
    let mut names: Vec<(String, bool)> = Vec::new();
    let mut lanes = 0;
    for (ix, one) in drawn.iter().enumerate() {
        let id = format!("n{ix}");
        let chosen = names.iter().enumerate().filter(|(ix, _)| one.needs & (1 << ix) != 0);
        let accept = ACCEPTS[usize::from(one.accept) % ACCEPTS.len()];
        let needs: Vec<String> = chosen.map(|(_, (name, _))| format!("{name}:{accept}")).collect();
        let needed = needs.first().and_then(|need| need.split(':').next()).map(str::to_owned);
        let needs: Vec<&str> = needs.iter().map(String::as_str).collect();
        let is_fan_out = matches!(one.kind % 10, 7..);
        plans = match one.kind % 10 {
            0..=3 => plans.job(&id, &needs).job_with(|job| one.job(job)),
            4 | 5 => plans.gate(&id, &needs).gate_with(|gate| one.gate(gate)),
            6 => {
                let mut action = update(
                    1 + u128::from(one.kind) % 3,
                    &[names.last().map_or("n0", |n| n.0.as_str())],
                );
                if one.flag(5) {
                    action.changes.provided_capabilities = None;
                }
                plans.add(node(&id, &needs, NodeKind::ResourceUpdate(action)))
            }
            _ => fan_out(plans, one, &id, &needs, &names, &mut lanes),
        };
        let edit = |node: &mut control_plane_plan::PlanNode| {
            node.on_failure = one.policy();
            node.when = one.when(needed.as_deref());
            node.skipped = one.flag(10) && one.flag(11);
            node.destructive = one.flag(6) && one.flag(7) && matches!(node.action, NodeKind::Job(_));
        };
        plans = if is_fan_out {
            plans.items_with(&id, edit)
        } else {
            plans.with(edit)
        };
        names.push((id, is_fan_out));
    }
    plans
}

fn fan_out(plans: Plans, one: &Drawn, id: &str, needs: &[&str], names: &[(String, bool)], lanes: &mut u32) -> Plans {
    let hosts = u128::from(one.flags >> 8) % 3 + 1;
    let lane = one.flag(4).then(|| {
        *lanes += 1;
        format!("lane{lanes}")
    });
    let before = names.last().filter(|(name, is_fan_out)| {
        let same_items = plans
            .plan
            .nodes
            .iter()
            .filter(|n| n.template_node == *name && n.item.is_some())
            .count();
        *is_fan_out && one.flag(5) && same_items as u128 >= hosts
    });
    let each = before.map(|(name, _)| name.as_str());
    let plans = plans
        .fan_out(id, hosts, needs, lane.as_deref(), each)
        .items_with(id, |node| {
            if let NodeKind::Job(job) = &mut node.action {
                one.job(job);
            }
        });
    match lane {
        Some(lane) => plans.lane(&lane, u32::from(one.needs) % 2 + 1, u32::from(one.accept) % 2),
        None => plans,
    }
}

/// execution-plane, a catalog and people, all at the mercy of a row of numbers.
struct Fate {
    world: World,
    plans: Plans,
    choices: Vec<u32>,
    at: usize,
    inbox: Vec<Input>,
    told: Vec<Input>,
    done: Vec<Effect>,
    attempts: BTreeMap<AttemptId, Job>,
    /// From the moment on at which everything is to come to an end.
    kind: bool,
}

#[derive(Clone)]
struct Job {
    spec: JobSpec,
    started: bool,
    cancelled: bool,
    result: Option<ExecutionResult>,
}

impl Fate {
    fn new(plans: Plans, index: Arc<PlanIndex>, choices: Vec<u32>) -> Self {
        Self {
            world: World::new(index),
            plans,
            choices,
            at: 0,
            inbox: vec![Input::Started],
            told: Vec::new(),
            done: Vec::new(),
            attempts: BTreeMap::new(),
            kind: false,
        }
    }

    fn choose(&mut self, among: usize) -> usize {
        self.at += 1;
        let choice = self.choices[self.at % self.choices.len()] as usize;
        (choice / (1 + self.at % 7)) % among.max(1)
    }

    fn step(&mut self) {
        match self.choose(100) {
            0..30 => self.carry_out(),
            30..48 => self.work(),
            48..66 => self.deliver(),
            66..72 => self.repeat(),
            72..77 => self.crash(),
            77..83 => self.pass_time(),
            _ => self.order(),
        }
    }

    fn carry_out(&mut self) {
        if self.world.effects.is_empty() {
            return self.deliver();
        }
        let ix = self.choose(self.world.effects.len());
        let effect = self.world.effects.remove(ix);
        // What concerns one attempt is carried out in order.
        let first = self.world.effects[..ix]
            .iter()
            .position(|earlier| attempt_of(earlier) == attempt_of(&effect));
        if let (Some(first), true) = (first, attempt_of(&effect).is_some()) {
            let earlier = core::mem::replace(&mut self.world.effects[first], effect);
            self.perform(&earlier);
            self.done.push(earlier);
        } else {
            self.perform(&effect);
            self.done.push(effect);
        }
    }

    /// Idempotent by the effect's id, as every carrying out has to be.
    fn perform(&mut self, effect: &Effect) {
        match &effect.kind {
            EffectKind::SubmitAttempt { spec } => {
                let attempt_id = spec.attempt_id;
                let job = Job {
                    spec: (**spec).clone(),
                    started: false,
                    cancelled: false,
                    result: None,
                };
                self.attempts.entry(attempt_id).or_insert(job);
                self.inbox.push(Input::AttemptAccepted { attempt_id });
            }
            EffectKind::CancelAttempt { attempt_id, .. } => {
                if let Some(job) = self.attempts.get_mut(attempt_id) {
                    job.cancelled = true;
                }
            }
            EffectKind::ValidateBindings { .. } => {
                let answer = match self.choose(12) {
                    0 if !self.kind => Input::CatalogUnreachable {
                        request: effect.id,
                        detail: "down".into(),
                    },
                    1 if !self.kind => validated(effect, &BTreeSet::from([2])),
                    _ => validated(effect, &BTreeSet::new()),
                };
                self.inbox.push(answer);
            }
            EffectKind::SendResourceUpdate { command } => {
                let version = command.expected_version + 1;
                let conflict = |overlaps| UpdateOutcome::Conflict {
                    current_version: version,
                    overlaps,
                    differing: vec!["/health".into()],
                    other_incarnation: false,
                };
                let outcome = match self.choose(8) {
                    0 if !self.kind => conflict(false),
                    1 if !self.kind => conflict(true),
                    2 if !self.kind => UpdateOutcome::Rejected { detail: "no".into() },
                    _ => UpdateOutcome::Applied {
                        version,
                        pins: BTreeMap::new(),
                    },
                };
                self.inbox.push(Input::UpdateOutcome {
                    command_id: command.command_id,
                    outcome,
                });
            }
            EffectKind::ReleaseFinalizers => {}
        }
    }

    /// Something happens to one of the jobs.
    fn work(&mut self) {
        let open: Vec<AttemptId> = self
            .attempts
            .iter()
            .filter(|(_, job)| job.result.is_none())
            .map(|(id, _)| *id)
            .collect();
        if open.is_empty() {
            return self.carry_out();
        }
        let id = open[self.choose(open.len())];
        let end = self.choose(16);
        let now = self.world.now;
        let job = self.attempts.get_mut(&id).unwrap();
        if !job.started && !job.cancelled && end < 8 {
            job.started = true;
            return self.inbox.push(Input::AttemptStarted {
                attempt_id: id,
                at: now,
                runner: None,
            });
        }
        if !job.started && end == 9 {
            job.result = Some(End::Failure.of(&job.spec, now));
            return self.inbox.push(Input::AttemptRefused {
                attempt_id: id,
                category: contracts::ExitCategory::PolicyError,
                detail: "refused".into(),
            });
        }
        let end = match (job.started, job.cancelled, end) {
            (false, true, _) => End::Cancelled,
            (false, false, _) => End::Lost(JobStarted::No),
            (true, true, 0..6) => End::Cancelled,
            (_, _, 0..9) => End::Success,
            (_, _, 9) => End::Failure,
            (_, _, 10) => End::FailureProven,
            (_, _, 11) => End::Unproven(EvidenceResult::Failed),
            (_, _, 12) => End::Lost(JobStarted::Yes),
            (_, _, 13) => End::Lost(JobStarted::Unknown),
            (_, _, 14) => End::TimedOut,
            _ => End::Cancelled,
        };
        let result = end.of(&job.spec, now);
        job.result = Some(result.clone());
        self.inbox.push(Input::AttemptResult(Box::new(result)));
    }

    /// Some of what was said arrives, in any order, in one decision.
    fn deliver(&mut self) {
        if let Some((request, false)) = self.world.store.claims {
            let known = self
                .inbox
                .iter()
                .chain(&self.told)
                .any(|input| is_grant(input, request));
            if !known {
                self.inbox.push(Input::ClaimsGranted { request });
            }
        }
        let mut inputs = Vec::new();
        for _ in 0..=self.choose(3) {
            if !self.inbox.is_empty() {
                let ix = self.choose(self.inbox.len());
                inputs.push(self.inbox.remove(ix));
            }
        }
        self.tell(inputs);
    }

    fn tell(&mut self, inputs: Vec<Input>) {
        for input in &inputs {
            if let (Input::ClaimsGranted { request }, Some((wanted, granted))) = (input, &mut self.world.store.claims) {
                *granted |= request == wanted;
            }
        }
        self.world.tell(&inputs);
        self.told.extend(inputs);
    }

    fn repeat(&mut self) {
        if !self.told.is_empty() {
            let ix = self.choose(self.told.len());
            let input = self.told[ix].clone();
            self.tell(vec![input]);
        }
    }

    /// Everything but rows is lost; effects that were carried out may be carried out again.
    fn crash(&mut self) {
        self.world.crash();
        if !self.done.is_empty() {
            let ix = self.choose(self.done.len());
            let effect = self.done[ix].clone();
            if !matches!(
                effect.kind,
                EffectKind::SendResourceUpdate { .. } | EffectKind::ValidateBindings { .. }
            ) {
                self.perform(&effect);
            }
        }
    }

    fn pass_time(&mut self) {
        match self.world.state.next_wakeup() {
            Some(at) if self.choose(2) == 0 => self.world.now = self.world.now.max(at),
            _ => self.world.pass(20),
        }
        self.tell(vec![Input::Timer]);
    }

    fn order(&mut self) {
        let node = format!("n{}", self.choose(8));
        let item = format!("{node}[web-{}]", self.choose(3) + 1);
        let named = if self.choose(2) == 0 { node } else { item };
        let gates: Vec<(GateId, Sha256Digest)> = self.world.state.gates().map(|gate| (gate.id, gate.digest)).collect();
        let kind = match self.choose(14) {
            0..=3 if !gates.is_empty() => {
                let (gate, digest) = gates[self.choose(gates.len())];
                match self.choose(4) {
                    0 => CommandKind::RejectGate { gate, digest },
                    1 => CommandKind::ApproveGate {
                        gate,
                        digest: Sha256Digest::of(b"another"),
                    },
                    _ => CommandKind::ApproveGate { gate, digest },
                }
            }
            4 => CommandKind::Pause,
            5 | 6 => CommandKind::Resume,
            7 => CommandKind::Cancel,
            8 => CommandKind::ForceCancel,
            9 => CommandKind::Skip { node: named },
            10 => self.resolution(named),
            11 => self.retry(RetrySelection::Nodes(vec![named])),
            _ => self.retry(RetrySelection::AllFailed),
        };
        let subject = ["anna", "oscar", crate::world::REQUESTER][self.choose(3)];
        let command = self.world.command(subject, &["operator", "approver"], kind);
        self.tell(vec![Input::Command(Box::new(command))]);
    }

    fn resolution(&mut self, node: String) -> CommandKind {
        let proof = proof_of("up", EvidenceResult::Passed, self.world.now);
        let resolution = match self.choose(2) {
            0 => Resolution::Succeeded { evidence: vec![proof] },
            _ => Resolution::Failed,
        };
        CommandKind::Resolve { node, resolution }
    }

    fn retry(&mut self, selection: RetrySelection) -> CommandKind {
        let next = self.world.state.operation().plan_revision + 1;
        let revised = self.choose(3) == 0;
        let revision = revised.then(|| self.plans.clone().parameter("revision", next).revision(next));
        CommandKind::Retry { selection, revision }
    }

    /// From here on everything is answered, and people settle what waits for them.
    fn come_to_an_end(&mut self) {
        self.kind = true;
        for _ in 0..600 {
            if self.world.status().is_end() && self.inbox.is_empty() && self.world.effects.is_empty() {
                return;
            }
            while !self.world.effects.is_empty() {
                let effect = self.world.effects.remove(0);
                self.perform(&effect);
            }
            let open: Vec<AttemptId> = self
                .attempts
                .iter()
                .filter(|(_, job)| job.result.is_none())
                .map(|(id, _)| *id)
                .collect();
            for id in open {
                let now = self.world.now;
                let job = self.attempts.get_mut(&id).unwrap();
                let end = if job.cancelled { End::Cancelled } else { End::Success };
                let result = end.of(&job.spec, now);
                job.result = Some(result.clone());
                self.inbox.push(Input::AttemptResult(Box::new(result)));
            }
            if self.inbox.is_empty() && self.world.store.claims.is_none_or(|(_, granted)| granted) {
                self.settle_by_hand();
            }
            self.deliver();
        }
        panic!("the run does not come to an end: {:#?}", self.world.state.rows());
    }

    fn settle_by_hand(&mut self) {
        let rows: Vec<_> = self.world.state.node_runs().cloned().collect();
        let waiting = |row: &&control_plane_operation::NodeRunRow| {
            matches!(row.wait, Some(control_plane_operation::NodeWait::Intervention { .. }))
        };
        let kind = if self.world.status() == OperationStatus::Paused {
            CommandKind::Resume
        } else if let Some(row) = rows
            .iter()
            .find(|row| row.state == NodeState::Unresolved || waiting(row))
        {
            CommandKind::Resolve {
                node: row.node.clone(),
                resolution: Resolution::Failed,
            }
        } else if let Some(gate) = self.world.state.gates().find(|gate| gate.state.as_str() == "open") {
            CommandKind::ApproveGate {
                gate: gate.id,
                digest: gate.digest,
            }
        } else {
            if let Some(at) = self.world.state.next_wakeup() {
                self.world.now = self.world.now.max(at);
            }
            return self.tell(vec![Input::Timer]);
        };
        let command = self.world.command("gwen", &["operator", "approver"], kind);
        self.tell(vec![Input::Command(Box::new(command))]);
    }
}

fn attempt_of(effect: &Effect) -> Option<AttemptId> {
    match &effect.kind {
        EffectKind::SubmitAttempt { spec } => Some(spec.attempt_id),
        EffectKind::CancelAttempt { attempt_id, .. } => Some(*attempt_id),
        _ => None,
    }
}

fn is_grant(input: &Input, wanted: control_plane_operation::ClaimRequestId) -> bool {
    matches!(input, Input::ClaimsGranted { request } if *request == wanted)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PLATFORM_MODEL_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(150),
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_happens_the_invariants_hold_and_every_run_comes_to_an_end(
        drawn in proptest::collection::vec(drawn(), 1..8),
        choices in proptest::collection::vec(any::<u32>(), 30..160),
        steps in 0_usize..140,
    ) {
        let plans = build(&drawn);
        let document = control_plane_plan::PlanDocument::seal(plans.plan.clone()).unwrap();
        let Ok(index) = PlanIndex::new(document, 1) else {
            return Err(TestCaseError::reject("a lane that could not be walked"));
        };
        let mut fate = Fate::new(plans, Arc::new(index), choices);
        for _ in 0..steps {
            fate.step();
        }
        fate.come_to_an_end();
        if fate.world.status() == OperationStatus::Failed {
            let retry = fate.retry(RetrySelection::AllFailed);
            let command = fate.world.command("oscar", &["operator"], retry);
            fate.tell(vec![Input::Command(Box::new(command))]);
            fate.come_to_an_end();
        }
        prop_assert!(fate.world.status().is_end());
        let targets = [uid(1), uid(2), uid(3)];
        prop_assert!(fate.world.store.bindings.keys().all(|(uid, _)| targets.contains(uid)));
    }
}
