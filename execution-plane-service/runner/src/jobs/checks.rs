//! The checks of a job: repeated until they pass or their time is over, each look at each place one
//! finding, with the source that it was judged by.

use std::time::Duration;

use chrono::{DateTime, Utc};
use contracts::{EvidenceResult, EvidenceType};
use execution_plane_domain::job::{Check, CheckKind};
use futures::StreamExt;
use kernel::{DottedName, ResourceId};
use tokio::time::Instant;

use super::api_probe;
use super::context::JobContext;
use super::probes::{self, Sight};
use crate::ssh::Access;

/// Looks at once.
const PARALLEL: usize = 32;

/// What one check found at one place.
#[derive(Debug, Clone)]
pub(crate) struct Finding {
    pub(crate) name: String,
    pub(crate) evidence_type: EvidenceType,
    pub(crate) capability: DottedName,
    pub(crate) resource: Option<ResourceId>,
    pub(crate) result: EvidenceResult,
    pub(crate) message: String,
    pub(crate) observed_at: DateTime<Utc>,
    /// Masked.
    pub(crate) source: Vec<u8>,
    /// The source is the JobSpec itself: the check compared two of its values.
    pub(crate) from_job_spec: Option<usize>,
}

impl Finding {
    /// In one line, for people.
    pub(crate) fn told(&self) -> String {
        let place = self.resource.as_ref().map(|id| format!(" on {id}")).unwrap_or_default();
        let verdict = match self.result {
            EvidenceResult::Passed => "passed",
            EvidenceResult::Failed => "failed",
            EvidenceResult::Inconclusive => "is inconclusive",
        };
        format!("check {}{place} {verdict}: {}", self.name, self.message)
    }
}

/// Evaluates all `checks`.
pub(crate) async fn evaluate(context: &JobContext, checks: &[Check]) -> Vec<Finding> {
    // A check that needs a target without usable connection data is inconclusive by itself.
    let access = Access::of(&context.spec, false).unwrap_or_else(|_| Access::none());
    let looks: Vec<_> = checks
        .iter()
        .enumerate()
        .flat_map(|(index, check)| {
            probes::places(&access, check.target())
                .into_iter()
                .map(move |place| (index, check, place))
        })
        .collect();
    let looks: Vec<_> = looks
        .into_iter()
        .map(|(index, check, place)| repeated(context, &access, index, check, place))
        .collect();
    futures::stream::iter(looks).buffered(PARALLEL).collect().await
}

async fn repeated(
    context: &JobContext,
    access: &Access,
    index: usize,
    check: &Check,
    place: Option<ResourceId>,
) -> Finding {
    let until = Instant::now() + Duration::from_secs(check.retry_until_seconds.into());
    let interval = Duration::from_secs(check.interval_seconds.into());
    loop {
        let sight = look(context, access, check, place.as_ref()).await;
        let done = sight.result == EvidenceResult::Passed || Instant::now() + interval > until;
        if done || context.stop.cause().is_some() {
            return finding(context, index, check, place, sight);
        }
        tokio::select! {
            () = tokio::time::sleep(interval) => {}
            _ = context.stop.asked() => return finding(context, index, check, place, sight),
        }
    }
}

async fn look(context: &JobContext, access: &Access, check: &Check, place: Option<&ResourceId>) -> Sight {
    match &check.kind {
        CheckKind::Value(value) => probes::value(value),
        CheckKind::Api(api) => api_probe::api(context, api).await,
        CheckKind::Command(command) => probes::command(context, access, command, place).await,
        CheckKind::Log(log) => probes::log(context, access, log, place).await,
    }
}

fn finding(context: &JobContext, index: usize, check: &Check, place: Option<ResourceId>, sight: Sight) -> Finding {
    let masks = context.secrets.masks();
    Finding {
        name: check.name.clone(),
        evidence_type: check.evidence_type(),
        capability: check.capability.clone(),
        resource: place.or_else(|| check.resource_id.clone()),
        result: sight.result,
        message: masks.mask_text(&sight.message),
        observed_at: Utc::now(),
        source: masks.mask(&sight.source),
        from_job_spec: matches!(check.kind, CheckKind::Value(_)).then_some(index),
    }
}
