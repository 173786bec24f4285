//! Reading a whole operation back from its rows.

use std::sync::Arc;

use control_plane_operation::row::Rows;
use control_plane_operation::{OperationState, PlanIndex};
use control_plane_plan::PlanDocument;
use database::OrgTransaction;
use kernel::id::{OperationId, OrganizationId};

use super::effect::OwnedEffect;
use super::{
    StoreError, attempt, binding, effect, gate, intervention, node_run, operation, plan_revision, resource_update, run,
};

/// An operation as its rows tell it, with its effects that are not done.
pub struct Loaded {
    pub state: OperationState,
    pub effects: Vec<OwnedEffect>,
}

/// Loads an operation of the organization. `None`: there is none.
pub async fn load(
    tx: &OrgTransaction,
    organization: OrganizationId,
    id: OperationId,
) -> Result<Option<Loaded>, StoreError> {
    let Some(operation) = operation::find(tx, id).await? else {
        return Ok(None);
    };
    let plan = plan(tx, id, operation.plan_revision).await?;
    let (runs, node_runs, attempts, gates, updates, bindings, commands, effects) = futures::try_join!(
        run::of(tx, id),
        node_run::latest_of(tx, id),
        attempt::of(tx, id),
        gate::of(tx, id),
        resource_update::of(tx, id),
        binding::of(tx, id),
        intervention::of(tx, id),
        effect::of(tx, organization, id),
    )?;
    let rows = Rows {
        operation,
        runs,
        node_runs,
        attempts,
        gates,
        updates,
        bindings,
        commands,
    };
    let state =
        OperationState::restore(rows, plan).map_err(|error| StoreError::corrupt("operation")(Box::new(error)))?;
    Ok(Some(Loaded { state, effects }))
}

/// All rows of an operation and all revisions of its plan, for its proof.
pub async fn proven(
    tx: &OrgTransaction,
    id: OperationId,
) -> Result<Option<(Rows, Vec<(u32, PlanDocument)>)>, StoreError> {
    let Some(operation) = operation::find(tx, id).await? else {
        return Ok(None);
    };
    let mut plans = Vec::new();
    for revision in 1..=operation.plan_revision {
        if let Some(document) = plan_revision::find(tx, id, revision).await? {
            plans.push((revision, document));
        }
    }
    let (runs, node_runs, attempts, gates, updates, bindings, commands) = futures::try_join!(
        run::of(tx, id),
        node_run::all_of(tx, id),
        attempt::of(tx, id),
        gate::of(tx, id),
        resource_update::of(tx, id),
        binding::of(tx, id),
        intervention::of(tx, id),
    )?;
    let rows = Rows {
        operation,
        runs,
        node_runs,
        attempts,
        gates,
        updates,
        bindings,
        commands,
    };
    Ok(Some((rows, plans)))
}

/// A revision of the operation's plan, ready for deciding.
pub async fn plan(tx: &OrgTransaction, id: OperationId, revision: u32) -> Result<Arc<PlanIndex>, StoreError> {
    let document = plan_revision::find(tx, id, revision)
        .await?
        .ok_or_else(|| StoreError::corrupt("operation")(format!("it has no plan revision {revision}").into()))?;
    PlanIndex::new(document, revision)
        .map(Arc::new)
        .map_err(|error| StoreError::corrupt("plan")(Box::new(error)))
}
