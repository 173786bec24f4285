//! Claims on resources, across operations: who is granted what, who waits for whom.
//!
//! Invariants: no two operations hold one resource in conflicting modes; an operation is granted all of
//! its claims or none; nobody overtakes an earlier waiting operation that wants the same resource in a
//! conflicting way. Since nobody waits while holding a part, and those who wait stand in one total
//! order, there is no deadlock. What is held is derived from live operations, never counted.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};
use control_plane_plan::{Claim, ClaimMode};
use kernel::id::{OperationId, ResourceUid};

use crate::{Blocker, ClaimRequestId};

/// One operation's wish for claims, granted or waiting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRequest {
    pub request: ClaimRequestId,
    pub operation_id: OperationId,
    /// When it was made; the queue is ordered by this, then by request.
    pub since: DateTime<Utc>,
    /// When it was granted, if it was.
    pub granted_at: Option<DateTime<Utc>>,
    pub claims: Vec<Claim>,
}

impl ClaimRequest {
    fn order(&self) -> (DateTime<Utc>, ClaimRequestId) {
        (self.since, self.request)
    }

    fn conflict<'a>(&'a self, other: &'a Self) -> Option<&'a Claim> {
        let theirs: HashMap<ResourceUid, ClaimMode> = other.claims.iter().map(|c| (c.uid, c.mode)).collect();
        let clashes = |mine: &&Claim| theirs.get(&mine.uid).is_some_and(|mode| mode.conflicts_with(mine.mode));
        self.claims.iter().find(clashes)
    }
}

/// What each waiting request comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Granted,
    /// In the order of the resources; per resource first who holds, then who waits ahead.
    Waits(Vec<Blocker>),
}

/// Who of the waiting is granted now, in queue order. `requests` are all live requests that touch the
/// resources in question, granted and waiting, in any order.
#[must_use]
pub fn settle(requests: &[ClaimRequest]) -> Vec<(ClaimRequestId, Verdict)> {
    let mut holders: BTreeMap<ResourceUid, Vec<Blocker>> = BTreeMap::new();
    for request in requests {
        if let Some(granted_at) = request.granted_at {
            stand(&mut holders, request, granted_at, true);
        }
    }
    let mut waiting: Vec<&ClaimRequest> = requests.iter().filter(|r| r.granted_at.is_none()).collect();
    waiting.sort_by_key(|request| request.order());
    let mut verdicts = Vec::with_capacity(waiting.len());
    for request in waiting {
        let blockers = in_the_way(&holders, request);
        let granted = blockers.is_empty();
        stand(&mut holders, request, request.since, granted);
        let verdict = if granted {
            Verdict::Granted
        } else {
            Verdict::Waits(blockers)
        };
        verdicts.push((request.request, verdict));
    }
    verdicts
}

fn stand(holders: &mut BTreeMap<ResourceUid, Vec<Blocker>>, request: &ClaimRequest, since: DateTime<Utc>, holds: bool) {
    for claim in &request.claims {
        holders.entry(claim.uid).or_default().push(Blocker {
            uid: claim.uid,
            resource_id: claim.resource_id.clone(),
            operation_id: request.operation_id,
            mode: claim.mode,
            since,
            holds,
        });
    }
}

fn in_the_way(holders: &BTreeMap<ResourceUid, Vec<Blocker>>, request: &ClaimRequest) -> Vec<Blocker> {
    let mut blockers = Vec::new();
    for claim in &request.claims {
        let standing = holders.get(&claim.uid).into_iter().flatten();
        let in_the_way = standing
            .filter(|other| other.operation_id != request.operation_id && other.mode.conflicts_with(claim.mode));
        blockers.extend(in_the_way.cloned());
    }
    blockers
}

/// The first resource that two granted requests hold in conflicting modes. `None` is the invariant.
#[must_use]
pub fn conflict(requests: &[ClaimRequest]) -> Option<(OperationId, OperationId, ResourceUid)> {
    let granted: Vec<&ClaimRequest> = requests.iter().filter(|r| r.granted_at.is_some()).collect();
    granted.iter().enumerate().find_map(|(ix, first)| {
        let clash = granted[ix + 1..].iter().find_map(|second| {
            let claim = first
                .conflict(second)
                .filter(|_| first.operation_id != second.operation_id)?;
            Some((second.operation_id, claim.uid))
        })?;
        Some((first.operation_id, clash.0, clash.1))
    })
}
