//! Claims within a turn: queue, grant, refuse, let go, and tell those who wait.

use std::collections::BTreeSet;

use control_plane_operation::row::ClaimsState;
use control_plane_operation::{Change, ClaimRequestId, Input};
use kernel::id::OperationId;
use uuid::Uuid;

use super::{EngineError, Turn};
use crate::store::claim;
use crate::store::inbox::Told;

impl Turn<'_> {
    /// Carries out every wish about claims until no decision makes another.
    pub(super) async fn settle_claims(&mut self) -> Result<(), EngineError> {
        loop {
            let work = std::mem::take(&mut self.claim_work);
            let rechecks = std::mem::take(&mut self.rechecks);
            if work.is_empty() && rechecks.is_empty() {
                return Ok(());
            }
            let waiting: Vec<(OperationId, ClaimRequestId)> = rechecks
                .into_iter()
                .filter_map(|id| self.wanted(id).map(|request| (id, request)))
                .collect();
            self.lock_resources(&work, &waiting).await?;
            for (id, change) in work {
                self.carry_out(id, change).await?;
            }
            for (id, request) in waiting {
                self.consider(id, request, true).await?;
            }
        }
    }

    fn wanted(&self, id: OperationId) -> Option<ClaimRequestId> {
        match self.state(id)?.operation().progress.claims {
            ClaimsState::Wanted { request, .. } => Some(request),
            _ => None,
        }
    }

    async fn lock_resources(
        &self,
        work: &[(OperationId, Change)],
        waiting: &[(OperationId, ClaimRequestId)],
    ) -> Result<(), EngineError> {
        let mut uids = BTreeSet::new();
        let mut requests: Vec<Uuid> = waiting.iter().map(|(_, request)| request.0).collect();
        for (_, change) in work {
            match change {
                Change::ClaimsWanted { claims, .. } => uids.extend(claims.iter().map(|claim| claim.uid)),
                Change::ClaimsReleased { request } => requests.push(request.0),
                _ => {}
            }
        }
        if !requests.is_empty() {
            uids.extend(claim::resources_of(&self.tx, &requests).await?);
        }
        Ok(claim::lock(&self.tx, &uids).await?)
    }

    async fn carry_out(&mut self, id: OperationId, change: Change) -> Result<(), EngineError> {
        match change {
            Change::ClaimsWanted { request, claims, wait } => {
                let Some((run, now)) = self.state(id).map(|state| state.operation().run).zip(self.now(id)) else {
                    return Ok(());
                };
                claim::queue(&self.tx, self.organization, id, run, request, &claims, now).await?;
                self.consider(id, request, wait).await
            }
            Change::ClaimsReleased { request } => self.release(request).await,
            _ => Ok(()),
        }
    }

    /// Grants a queued request when nobody stands in its way, and tells its operation.
    async fn consider(&mut self, id: OperationId, request: ClaimRequestId, wait: bool) -> Result<(), EngineError> {
        let Some(now) = self.now(id) else { return Ok(()) };
        let blockers = claim::blockers(&self.tx, request).await?;
        let input = if blockers.is_empty() {
            claim::grant(&self.tx, request, now).await?;
            Input::ClaimsGranted { request }
        } else if wait {
            Input::ClaimsWaiting { request, blockers }
        } else {
            self.release(request).await?;
            Input::ClaimsRefused { request, blockers }
        };
        self.tell(id, vec![input]);
        Ok(())
    }

    async fn release(&mut self, request: ClaimRequestId) -> Result<(), EngineError> {
        for waiter in claim::release(&self.tx, &[request.0]).await? {
            if self.seats.contains_key(&waiter) {
                self.rechecks.insert(waiter);
            } else if self.woken.insert(waiter) {
                self.writes.told.push((waiter, Told::ClaimsMoved));
            }
        }
        Ok(())
    }
}
