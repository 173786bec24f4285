//! Making a plan: the pack, the candidates, the pure planner, and the advice around it.

use std::sync::Arc;

use api_kit::{FieldError, Problem, database_problem, internal_problem};
use control_plane_api::PlanRequest;
use control_plane_plan::{Advice, BlastRadius, ClaimMode, Freshness, Plan, PlanDocument, ScenarioPin, SlotExplanation};
use control_plane_planning::{
    Planned, PlanningError, Request, SlotSelection, Snapshot, blast_radius, estimate, plan, replan, selections,
};
use control_plane_scenario::{Pack, Template};
use kernel::id::OrganizationId;
use serde_json::{Map, Value};
use sqlx::PgConnection;

use super::history;
use super::problem::{of_planning, of_read};
use crate::packs::library::Library;
use crate::projection::read::{self, Completeness, MOST};

/// A plan with its advice, or only the advice.
pub struct Made {
    pub scenario: ScenarioPin,
    pub document: Option<PlanDocument>,
    pub advice: Advice,
}

/// Longest name of an environment.
const MAX_ENVIRONMENT: usize = 63;

/// Plans what is asked for, from what is stored here alone.
///
/// # Errors
/// 404 for a pack or template that is not there, 422 for parameters or values that lead to no plan. An
/// unsatisfiable requirement is no error.
pub async fn make(
    connection: &mut PgConnection,
    library: &Library,
    organization: OrganizationId,
    request: &PlanRequest,
) -> Result<Made, Problem> {
    check_environment(&request.environment)?;
    let pack = library
        .load(connection, &request.pack, request.pack_version.as_deref())
        .await?;
    let template = template_of(&pack, &request.template)?;
    let scenario = pack.pin(template);
    let selected = selections(template, &request.environment, &request.parameters)
        .map_err(|error| of_planning(error, "/parameters"))?;
    let freshness = read::freshness(connection, organization)
        .await
        .map_err(|error| database_problem(&error.into()))?;
    let outcome = match attempt(connection, &pack, request, &selected, false).await? {
        (Err(PlanningError::Unsatisfiable(_)), Completeness::First) => {
            attempt(connection, &pack, request, &selected, true).await?
        }
        (Ok(planned), Completeness::First) if !filled(&planned.slots, &selected) => {
            attempt(connection, &pack, request, &selected, true).await?
        }
        outcome => outcome,
    };
    if outcome.1 == Completeness::CutOff {
        let detail = format!("A slot has more than {MOST} candidates that could fit.");
        return Err(Problem::new(422, "too_many_candidates", "The choice is too wide")
            .detail(detail)
            .remedy("Narrow the requirement, by a selector for example."));
    }
    match outcome.0 {
        Ok(planned) => {
            let advice = advice(connection, planned.document.plan(), template, planned.slots, freshness).await?;
            Ok(Made {
                scenario,
                document: Some(planned.document),
                advice,
            })
        }
        Err(PlanningError::Unsatisfiable(slots)) => Ok(Made {
            scenario,
            document: None,
            advice: Advice {
                slots,
                freshness,
                blast_radius: BlastRadius::default(),
                risk: template.risk.clone(),
                estimate: None,
            },
        }),
        Err(error) => Err(of_planning(error, "/parameters")),
    }
}

/// The next revision of a plan: its bindings, some parameters changed.
///
/// # Errors
/// 422 when the parameters lead to no plan, 409 when a bound resource is gone.
pub async fn remake(
    connection: &mut PgConnection,
    library: &Library,
    organization: OrganizationId,
    base: &Plan,
    set: &Map<String, Value>,
) -> Result<Made, Problem> {
    let version = Some(base.scenario.pack_version.as_str());
    let pack = library.load(connection, &base.scenario.pack, version).await?;
    if pack.digest != base.scenario.pack_digest {
        return Err(Problem::conflict(
            "pack_changed",
            "The pack is not the one that the plan was made from.",
        ));
    }
    let template = template_of(&pack, &base.scenario.template)?;
    let uids: Vec<_> = base
        .slots
        .iter()
        .flat_map(|slot| &slot.resources)
        .map(|r| r.uid.as_uuid())
        .collect();
    let candidates = read::by_uid(connection, &uids).await.map_err(of_read)?;
    let freshness = read::freshness(connection, organization)
        .await
        .map_err(|error| database_problem(&error.into()))?;
    let document = replan(base, template, set, &candidates).map_err(|error| of_planning(error, "/set"))?;
    let advice = advice(connection, document.plan(), template, Vec::new(), freshness).await?;
    Ok(Made {
        scenario: base.scenario.clone(),
        document: Some(document),
        advice,
    })
}

fn check_environment(environment: &str) -> Result<(), Problem> {
    let good = !environment.is_empty()
        && environment.len() <= MAX_ENVIRONMENT
        && environment
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if good {
        return Ok(());
    }
    let detail = format!("lower-case letters, digits and '-', at most {MAX_ENVIRONMENT}");
    Err(Problem::invalid([FieldError::new("/environment", "invalid", detail)]))
}

fn template_of<'p>(pack: &'p Pack, name: &str) -> Result<&'p Template, Problem> {
    pack.templates.get(name).ok_or_else(|| {
        let there: Vec<&str> = pack.templates.keys().map(String::as_str).collect();
        Problem::not_found(format_args!("template {name} in {} {}", pack.name, pack.version))
            .remedy(format!("The pack has: {}.", there.join(", ")))
    })
}

type Outcome = (Result<Planned, PlanningError>, Completeness);

/// Matching costs CPU: it runs beside the async threads.
async fn attempt(
    connection: &mut PgConnection,
    pack: &Arc<Pack>,
    request: &PlanRequest,
    selected: &[SlotSelection],
    whole: bool,
) -> Result<Outcome, Problem> {
    let (snapshot, completeness) = read::snapshot(connection, selected, whole).await.map_err(of_read)?;
    let (pack, request) = (Arc::clone(pack), request.clone());
    let planned = tokio::task::spawn_blocking(move || planned(&pack, &request, &snapshot));
    let planned = planned.await.map_err(|error| internal_problem(&error))?;
    Ok((planned, completeness))
}

fn planned(pack: &Pack, request: &PlanRequest, snapshot: &Snapshot) -> Result<Planned, PlanningError> {
    let template = pack.templates.get(&request.template);
    let template = template.ok_or_else(|| PlanningError::Slot {
        slot: String::new(),
        problem: "the template is gone".to_owned(),
    })?;
    let request = Request {
        scenario: pack.pin(template),
        template,
        environment: &request.environment,
        parameters: &request.parameters,
    };
    plan(&request, snapshot)
}

/// Whether every slot of which only the first candidates were seen took as many as it ever would.
fn filled(slots: &[SlotExplanation], selected: &[SlotSelection]) -> bool {
    slots.iter().all(|slot| {
        let selection = selected.iter().find(|selection| selection.slot == slot.slot);
        let enough = selection.and_then(|selection| selection.enough);
        enough.is_none_or(|enough| slot.bound.len() >= enough as usize)
    })
}

async fn blast(connection: &mut PgConnection, plan: &Plan) -> Result<BlastRadius, Problem> {
    let changed = plan.claims.iter().filter(|claim| claim.mode != ClaimMode::Read);
    let changed: Vec<String> = changed.map(|claim| claim.resource_id.to_string()).collect();
    let (dependents, partial) = read::dependents(connection, &changed).await.map_err(of_read)?;
    Ok(blast_radius(plan, &dependents, partial))
}

/// What is told beside a plan.
async fn advice(
    connection: &mut PgConnection,
    plan: &Plan,
    template: &Template,
    slots: Vec<SlotExplanation>,
    freshness: Freshness,
) -> Result<Advice, Problem> {
    let blast_radius = blast(connection, plan).await?;
    Ok(Advice {
        slots,
        freshness,
        blast_radius,
        risk: template.risk.clone(),
        estimate: None,
    })
}

/// Adds how long it will take. For who looks before it is begun: who begins it at once does not wait for that.
///
/// # Errors
/// The database failed.
pub async fn foretell(connection: &mut PgConnection, made: &mut Made) -> Result<(), Problem> {
    if let Some(document) = &made.document {
        let history = history::samples(connection, document.plan()).await;
        let history = history.map_err(|error| database_problem(&error.into()))?;
        made.advice.estimate = estimate(document.plan(), &history);
    }
    Ok(())
}
