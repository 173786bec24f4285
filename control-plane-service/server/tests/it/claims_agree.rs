//! Two ways to say who is granted what: the domain's `settle`, which is easy to be sure of, and the statements
//! that work on rows under locks. Whatever is asked for and let go, in however many organizations, both come to
//! the same holders, the same queue and the same blockers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use control_plane_operation::claims::{ClaimRequest, Verdict, conflict, settle};
use control_plane_operation::row::ClaimsState;
use control_plane_operation::{
    ClaimRequestId, Command, CommandActor, CommandKind, Input, InterventionId, OperationStatus,
};
use control_plane_plan::{Claim, ClaimMode, Plan, PlanDocument};
use control_plane_ports::{DurableRuntime, OperationDriver, RuntimeStatus, Wakeups};
use control_plane_server::engine::{Engine, NewOperationRequest};
use control_plane_server::{CelExpressions, DATABASE, MIGRATOR};
use database::testing::TestDatabase;
use database::{Database, ServiceRole};
use kernel::id::{OperationId, OrganizationId, PlanId, ResourceUid};
use proptest::prelude::*;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::plans::{Building, plan, uid};

/// Only notes who is to be asked.
#[derive(Default)]
struct Notes(Mutex<BTreeSet<OperationId>>);

#[async_trait]
impl DurableRuntime for Notes {
    fn notify(&self, operation: OperationId) {
        self.0.lock().unwrap().insert(operation);
    }

    async fn run(&self, _: Arc<dyn OperationDriver>, _: Arc<dyn Wakeups>, _: CancellationToken) {}

    fn status(&self) -> RuntimeStatus {
        unreachable!("nobody looks at it here")
    }
}

#[derive(Debug, Clone)]
enum Step {
    /// An operation of that organization wants these hosts in these modes, and waits for them or not.
    Ask {
        organization: usize,
        wanted: BTreeMap<u128, ClaimMode>,
        wait: bool,
    },
    /// The operation at that place among the living ends.
    End(prop::sample::Index),
    /// It is asked again although nothing happened.
    Ping(prop::sample::Index),
}

fn step() -> impl Strategy<Value = Step> {
    let mode = prop_oneof![
        Just(ClaimMode::Exclusive),
        Just(ClaimMode::Shared),
        Just(ClaimMode::Read),
    ];
    let wanted = prop::collection::btree_map(1..5_u128, mode, 1..4);
    prop_oneof![
        4 => (0..3_usize, wanted, prop::bool::weighted(0.85))
            .prop_map(|(organization, wanted, wait)| Step::Ask { organization, wanted, wait }),
        3 => any::<prop::sample::Index>().prop_map(Step::End),
        1 => any::<prop::sample::Index>().prop_map(Step::Ping),
    ]
}

fn claiming(wanted: &BTreeMap<u128, ClaimMode>) -> Plan {
    let hosts: Vec<u128> = wanted.keys().copied().collect();
    let mut plan = plan(&hosts).job("check", &[]);
    for claim in &mut plan.claims {
        let host = hosts.iter().find(|host| uid(**host) == claim.uid).unwrap();
        claim.mode = wanted[host];
    }
    plan
}

/// What the domain says, one queue for each organization.
#[derive(Default)]
struct Model {
    queues: Vec<Vec<ClaimRequest>>,
    clock: i64,
}

impl Model {
    fn tick(&mut self) -> DateTime<Utc> {
        self.clock += 1;
        DateTime::UNIX_EPOCH + TimeDelta::seconds(self.clock)
    }

    fn settle(&mut self, organization: usize) -> BTreeMap<OperationId, Verdict> {
        let now = self.tick();
        let queue = &mut self.queues[organization];
        let mut said = BTreeMap::new();
        for (request, verdict) in settle(queue) {
            let of = queue.iter_mut().find(|of| of.request == request).unwrap();
            if verdict == Verdict::Granted {
                of.granted_at = Some(now);
            }
            said.insert(of.operation_id, verdict);
        }
        assert_eq!(conflict(queue), None);
        said
    }

    /// Whether the operation stands in the queue, or holds, afterwards.
    fn ask(&mut self, organization: usize, operation: OperationId, claims: Vec<Claim>, wait: bool) -> bool {
        let since = self.tick();
        self.queues[organization].push(ClaimRequest {
            request: ClaimRequestId(operation.0),
            operation_id: operation,
            since,
            granted_at: None,
            claims,
        });
        let waits = matches!(self.settle(organization)[&operation], Verdict::Waits(_));
        let refused = waits && !wait;
        if refused {
            self.end(organization, operation);
        }
        !refused
    }

    fn end(&mut self, organization: usize, operation: OperationId) {
        self.queues[organization].retain(|request| request.operation_id != operation);
        self.settle(organization);
    }
}

type Line = (ResourceUid, OperationId, String);

struct Rig {
    /// Gone with the rig.
    _database: TestDatabase,
    superuser: Database,
    engine: Arc<Engine>,
    notes: Arc<Notes>,
    organizations: Vec<OrganizationId>,
    living: Vec<(usize, OperationId)>,
    model: Model,
}

impl Rig {
    async fn new() -> Self {
        let database = TestDatabase::create(DATABASE, &MIGRATOR).await;
        let notes = Arc::new(Notes::default());
        let worker = database.open(ServiceRole::Worker);
        let engine = Engine::new(
            database.open(ServiceRole::Api),
            worker,
            Arc::new(CelExpressions),
            notes.clone(),
            outbox::Signal::default(),
        );
        let organizations: Vec<OrganizationId> = (0..3).map(|_| OrganizationId::new_v7()).collect();
        Self {
            superuser: database.open_superuser(),
            _database: database,
            engine,
            notes,
            model: Model {
                queues: vec![Vec::new(); organizations.len()],
                clock: 0,
            },
            organizations,
            living: Vec::new(),
        }
    }

    async fn carry_out(&mut self, step: Step) {
        match step {
            Step::Ask {
                organization,
                wanted,
                wait,
            } => self.ask(organization, claiming(&wanted), wait).await,
            Step::End(which) if !self.living.is_empty() => {
                let (organization, operation) = self.living.remove(which.index(self.living.len()));
                self.model.end(organization, operation);
                self.turn(organization, operation, Some(CommandKind::Cancel)).await;
            }
            Step::Ping(which) if !self.living.is_empty() => {
                let (organization, operation) = self.living[which.index(self.living.len())];
                self.turn(organization, operation, None).await;
            }
            Step::End(_) | Step::Ping(_) => {}
        }
        self.ask_those_who_were_told().await;
        for organization in 0..self.organizations.len() {
            self.agree(organization).await;
        }
    }

    async fn ask(&mut self, organization: usize, plan: Plan, wait: bool) {
        let id = OperationId::new_v7();
        let new = NewOperationRequest {
            id,
            requester: "person:ada".into(),
            plan_id: PlanId::new_v7(),
            document: PlanDocument::seal(plan.clone()).unwrap(),
            wait_for_claims: wait,
            reason: String::new(),
            labels: BTreeMap::new(),
        };
        let mut turn = self
            .engine
            .turn_for_new(self.organizations[organization], id)
            .await
            .unwrap();
        turn.create(new).await.unwrap().unwrap();
        turn.commit().await.unwrap();
        if self.model.ask(organization, id, plan.claims, wait) {
            self.living.push((organization, id));
        }
    }

    async fn turn(&self, organization: usize, operation: OperationId, kind: Option<CommandKind>) {
        let mut turn = self
            .engine
            .turn(self.organizations[organization], operation)
            .await
            .unwrap();
        if let Some(kind) = kind {
            let command = Command {
                id: InterventionId(Uuid::now_v7()),
                actor: CommandActor {
                    subject: "person:ada".into(),
                    roles: vec!["operator".to_owned()],
                },
                kind,
                expected_revision: None,
                reason: None,
            };
            turn.tell(operation, vec![Input::Command(Box::new(command))]);
        }
        turn.commit().await.unwrap();
    }

    /// What the durable runtime does with its notices.
    async fn ask_those_who_were_told(&self) {
        loop {
            let told = std::mem::take(&mut *self.notes.0.lock().unwrap());
            if told.is_empty() {
                return;
            }
            for operation in told {
                let of = self.living.iter().find(|(_, living)| *living == operation);
                if let Some((organization, _)) = of {
                    self.turn(*organization, operation, None).await;
                }
            }
        }
    }

    /// Holders by resource, and who waits for which resource in which order.
    async fn rows(&self, organization: usize) -> (BTreeSet<Line>, Vec<OperationId>) {
        let client = self.superuser.hot().get().await.unwrap();
        let sql = "SELECT uid, operation_id, mode, held FROM claims WHERE organization_id = $1 ORDER BY ticket, uid";
        let rows = client.query(sql, &[&self.organizations[organization].0]).await.unwrap();
        let (mut held, mut waiting) = (BTreeSet::new(), Vec::new());
        for row in &rows {
            let operation = OperationId(row.get(1));
            if row.get(3) {
                held.insert((ResourceUid(row.get(0)), operation, row.get(2)));
            } else if waiting.last() != Some(&operation) {
                waiting.push(operation);
            }
        }
        (held, waiting)
    }

    async fn agree(&mut self, organization: usize) {
        let said = self.model.settle(organization);
        let queue = &self.model.queues[organization];
        let word = |mode| serde_json::to_value(mode).unwrap().as_str().unwrap().to_owned();
        let granted = queue.iter().filter(|request| request.granted_at.is_some());
        let lines = |request: &ClaimRequest| -> Vec<Line> {
            let claims = request.claims.iter();
            claims
                .map(|claim| (claim.uid, request.operation_id, word(claim.mode)))
                .collect()
        };
        let held: BTreeSet<Line> = granted.flat_map(lines).collect();
        let waiting = queue.iter().filter(|request| request.granted_at.is_none());
        let waiting: Vec<OperationId> = waiting.map(|request| request.operation_id).collect();
        assert_eq!(self.rows(organization).await, (held, waiting));
        for (operation, verdict) in said {
            self.told_the_same(organization, operation, &verdict).await;
        }
    }

    /// The waiting operation knows everybody who stands in its way, and nobody else.
    async fn told_the_same(&self, organization: usize, operation: OperationId, verdict: &Verdict) {
        let turn = self
            .engine
            .turn(self.organizations[organization], operation)
            .await
            .unwrap();
        let state = turn.state(operation).unwrap().operation();
        let (Verdict::Waits(said), ClaimsState::Wanted { blockers, .. }) = (verdict, &state.progress.claims) else {
            panic!("{verdict:?}, but {:?}", state.progress.claims);
        };
        assert_eq!(state.status, OperationStatus::WaitingClaim);
        let who = |blocker: &control_plane_operation::Blocker| (blocker.uid, blocker.operation_id, blocker.mode);
        let said: BTreeSet<_> = said.iter().map(who).collect();
        let told: BTreeSet<_> = blockers.iter().map(who).collect();
        assert_eq!(told, said);
        turn.abandon();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, max_shrink_iters: 40, ..ProptestConfig::default() })]

    #[test]
    fn rows_and_domain_grant_the_same_claims_in_the_same_order(steps in prop::collection::vec(step(), 5..30)) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let mut rig = Rig::new().await;
            for step in steps {
                rig.carry_out(step).await;
            }
        });
    }
}
