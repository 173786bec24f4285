//! Up to ten times of what can be sustained, for a while: what is not done is refused clearly, what was accepted
//! is done, and afterwards all is as before.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use client_kit::ClientError;
use control_plane_api::{CreateOperation, OperationState};
use e2e::{MARKS, Options, Scenario, takes_a_host};
use execution_plane_api::CommandPolicyBody;
use kernel::id::OperationId;
use resource_catalog_api::ApplyCapabilityDefinition;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::stage::Stage;
use crate::stories::Story;
use crate::teller::{answered, plan_of};

/// How long the sustainable rate is measured, and how long it is overdone.
const MEASURED: Duration = Duration::from_secs(3);
const OVERDONE: Duration = Duration::from_secs(15);
const TIMES: f64 = 10.0;
/// Clients that wait for each answer before they ask again.
const SUSTAINED: usize = 4;
/// Most requests of a kind under way: half as many again as a service works on at once.
const AT_ONCE: usize = 400;

/// An operation that has nothing to run: what is to be overloaded is the platform, not the host.
fn nothing_to_do() -> Scenario {
    let head = "name: main\ntitle: Look at whether there is something to do\ndescription: There never is.\n";
    let nodes = MARKS.replace("    job:\n", "    when: parameters.mark == ''\n    job:\n");
    Scenario::new("nothing-to-do", &format!("{head}{}{nodes}", takes_a_host("shared")))
}

/// Something to ask for; each goes to another service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Operation,
    Definition,
    Policy,
}

const KINDS: [Kind; 3] = [Kind::Operation, Kind::Definition, Kind::Policy];

/// Asks once; the operation, if it is one.
async fn ask(stage: &Stage, kind: Kind, number: usize) -> Result<Option<OperationId>, ClientError> {
    let teller = &stage.teller;
    match kind {
        Kind::Operation => {
            let mark = format!("o{number}");
            let create = CreateOperation {
                plan_id: None,
                expected_digest: None,
                plan: Some(plan_of("nothing-to-do", &mark)),
                on_overlap: Default::default(),
                reason: mark.clone(),
                labels: Default::default(),
            };
            let created = teller.control.create_operation(&create, &mark).await?;
            Ok(Some(created.summary.id))
        }
        Kind::Definition => {
            let definition = ApplyCapabilityDefinition {
                parent: None,
                description: String::new(),
                attribute_schema: None,
            };
            let name = format!("load.d{number}").parse().expect("a name");
            teller
                .catalog
                .apply_capability_definition(&name, &definition, None)
                .await?;
            Ok(None)
        }
        Kind::Policy => {
            let body = CommandPolicyBody::default();
            teller
                .execution
                .put_command_policy(&format!("load-{number}"), None, &body)
                .await?;
            Ok(None)
        }
    }
}

/// What came of many requests.
#[derive(Debug, Default)]
struct Answers {
    accepted: BTreeMap<Kind, Vec<usize>>,
    operations: Vec<OperationId>,
    refused: BTreeMap<String, usize>,
}

impl Answers {
    /// Every answer is a yes or a clear refusal that says when to come back.
    fn take(&mut self, kind: Kind, number: usize, answer: Result<Option<OperationId>, ClientError>) {
        match answer {
            Ok(operation) => {
                self.accepted.entry(kind).or_default().push(number);
                self.operations.extend(operation);
            }
            Err(error) => {
                let problem = error
                    .problem()
                    .unwrap_or_else(|| panic!("{kind:?} {number}: {error:?}"));
                assert!(matches!(problem.status, 429 | 503), "{kind:?} {number}: {problem}");
                assert!(problem.retry_after_seconds.is_some(), "{kind:?} {number}: {problem:?}");
                *self.refused.entry(format!("{kind:?} {}", problem.code)).or_default() += 1;
            }
        }
    }
}

/// How many a second of each kind are answered when nobody asks before he has his answer.
async fn sustainable(stage: &Arc<Stage>, answers: &mut Answers, numbers: &Arc<AtomicUsize>) -> BTreeMap<Kind, f64> {
    let until = Instant::now() + MEASURED;
    let mut clients = JoinSet::new();
    for kind in KINDS.into_iter().flat_map(|kind| [kind; SUSTAINED]) {
        let (stage, numbers) = (stage.clone(), numbers.clone());
        clients.spawn(async move {
            let mut told = Vec::new();
            while Instant::now() < until {
                let number = numbers.fetch_add(1, Ordering::SeqCst);
                told.push((kind, number, ask(&stage, kind, number).await));
            }
            told
        });
    }
    for told in clients.join_all().await {
        for (kind, number, answer) in told {
            answers.take(kind, number, answer);
        }
    }
    assert!(answers.refused.is_empty(), "this much can be sustained: {answers:?}");
    let rate = |kind| answers.accepted[&kind].len() as f64 / MEASURED.as_secs_f64();
    KINDS.into_iter().map(|kind| (kind, rate(kind))).collect()
}

/// Asks at ten times those rates, whether answers come or not, until so many are under way that a service would
/// run out of files rather than of patience; how many were asked.
async fn overdo(
    stage: &Arc<Stage>,
    rates: &BTreeMap<Kind, f64>,
    answers: &mut Answers,
    numbers: &Arc<AtomicUsize>,
) -> BTreeMap<Kind, f64> {
    let mut asked = JoinSet::new();
    let began = Instant::now();
    let places: BTreeMap<Kind, Arc<Semaphore>> = KINDS.map(|kind| (kind, Arc::new(Semaphore::new(AT_ONCE)))).into();
    let mut sent: BTreeMap<Kind, f64> = BTreeMap::new();
    while began.elapsed() < OVERDONE {
        for (kind, rate) in rates {
            let due = began.elapsed().as_secs_f64() * rate * TIMES;
            let sent = sent.entry(*kind).or_default();
            while *sent < due {
                let Ok(place) = places[kind].clone().try_acquire_owned() else {
                    break;
                };
                *sent += 1.0;
                let (stage, kind, number) = (stage.clone(), *kind, numbers.fetch_add(1, Ordering::SeqCst));
                asked.spawn(async move {
                    let answer = ask(&stage, kind, number).await;
                    drop(place);
                    (kind, number, answer)
                });
            }
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for (kind, number, answer) in asked.join_all().await {
        answers.take(kind, number, answer);
    }
    sent
}

/// Each request of the test holds a connection.
fn more_files() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised).expect("up to its own maximum");
}

/// What was accepted is there, once, and what was refused is not.
async fn are_kept(stage: &Stage, answers: &Answers) {
    for (kind, database, names, named) in [
        (
            Kind::Definition,
            "resource_catalog",
            "SELECT name FROM capability_definitions WHERE name LIKE 'load.d%'",
            "load.d",
        ),
        (
            Kind::Policy,
            "execution_plane",
            "SELECT name FROM command_policies WHERE name LIKE 'load-%'",
            "load-",
        ),
        (
            Kind::Operation,
            "control_plane",
            "SELECT reason FROM operations WHERE reason LIKE 'o%'",
            "o",
        ),
    ] {
        let rows = stage.deployment.rows(database, names).await;
        let number = |name: &str| name.strip_prefix(named)?.parse::<usize>().ok();
        let mut kept: Vec<usize> = rows.iter().filter_map(|row| number(row[0].as_deref()?)).collect();
        let mut accepted = answers.accepted[&kind].clone();
        kept.sort_unstable();
        accepted.sort_unstable();
        assert_eq!(kept, accepted, "{kind:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_than_can_be_sustained_is_refused_clearly_and_nothing_accepted_is_lost() {
    more_files();
    let options = Options {
        // Whether a starved machine renews in time is another question.
        lease_seconds: 60.0,
        ..Options::default()
    };
    let stage = Stage::up(&options).await;
    stage.teller.publish(&nothing_to_do()).await;
    let (mut answers, numbers) = (Answers::default(), Arc::new(AtomicUsize::new(0)));
    let rates = sustainable(&stage, &mut answers, &numbers).await;
    println!("sustainable a second: {rates:?}");
    let id = stage.teller.start("one-host", "meanwhile").await;
    let sent = overdo(&stage, &rates, &mut answers, &numbers).await;
    let accepted: BTreeMap<_, _> = answers.accepted.iter().map(|(kind, all)| (kind, all.len())).collect();
    println!(
        "asked: {sent:?}; accepted: {accepted:?}; refused: {:?}",
        answers.refused
    );
    assert!(
        !answers.refused.is_empty(),
        "there is a bound on what is worked on at once"
    );

    let operation = stage.teller.settled(id).await;
    assert_eq!(operation.summary.state, OperationState::Succeeded, "{operation:#?}");
    stage
        .promises_are_kept(&crate::stories::Promised::of(id), "meanwhile")
        .await;
    are_kept(&stage, &answers).await;
    for id in &answers.operations {
        let operation = stage.teller.settled(*id).await;
        assert_eq!(operation.summary.state, OperationState::Succeeded, "{operation:#?}");
    }
    stage.nothing_is_left_of(&operation, Story::Straight, "meanwhile").await;
    // As at the beginning: nothing is refused.
    let mut again = Answers::default();
    sustainable(&stage, &mut again, &numbers).await;
    for id in &again.operations {
        answered("operation", || stage.teller.control.operation(*id)).await;
    }
    let id = stage.teller.start("one-host", "afterwards").await;
    let operation = stage.teller.settled(id).await;
    assert_eq!(operation.summary.state, OperationState::Succeeded, "{operation:#?}");
    stage.catalog_is_whole().await;
    stage.deployment.stop().await;
}
