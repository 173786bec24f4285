//! Bringing a report to the service: uploads, output, then the end, each until it is accepted.
//!
//! The report is on disk before the first call, so an outage or a restart delays it and nothing more.

use std::sync::Arc;
use std::time::Duration;

use client_kit::{ClientError, Retries};
use contracts::ExitCategory;
use execution_plane_api::ArtifactUploadQuery;
use futures::StreamExt;
use tokio::task::JoinHandle;
use tokio_util::io::ReaderStream;
use tokio_util::sync::CancellationToken;

use super::active::Active;
use super::finish::finish;
use super::report::{Report, Upload};
use crate::output::OutputSink;
use crate::output::sender::{self, Sent};
use crate::runner::{Runner, is_not_ours};
use crate::standing::Standing;
use crate::state::Home;
use crate::stop::StopCause;

pub(super) const PATIENCE: Retries = Retries {
    tries: u32::MAX,
    first_pause: Duration::from_millis(100),
    longest_pause: Duration::from_secs(3),
};

/// Output on its way.
pub(crate) struct Sending {
    sink: OutputSink,
    complete: CancellationToken,
    task: JoinHandle<Sent>,
}

impl Sending {
    pub(crate) fn begin(runner: &Arc<Runner>, active: &Arc<Active>, sink: &OutputSink) -> Self {
        let complete = CancellationToken::new();
        let (runner, active) = (Runner::clone(runner), Arc::clone(active));
        let (own, done) = (sink.clone(), complete.clone());
        let task = tokio::spawn(async move { sender::send(runner, &active, own, done).await });
        Self {
            sink: sink.clone(),
            complete,
            task,
        }
    }

    /// Waits until all output is durable; its last sequence.
    async fn finish(self) -> (Sent, u64) {
        self.complete.cancel();
        let sent = self.task.await.unwrap_or(Sent::Not(Standing::Unsettled));
        (sent, self.sink.last_sequence())
    }
}

/// What became of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivered {
    /// The service has it, or it is not this runner's to tell: nothing of it need be kept.
    Settled,
    /// Neither is known, and this process will not learn it, or the service takes no report of it: the
    /// next start brings it again.
    Kept,
}

impl Delivered {
    pub(super) const fn of(standing: Standing) -> Self {
        match standing {
            Standing::Gone => Self::Settled,
            Standing::Ours | Standing::Unsettled => Self::Kept,
        }
    }
}

/// Delivers `report`, until the service has it or has said that the attempt is over or another's.
pub(crate) async fn deliver(
    runner: &Runner,
    active: &Active,
    home: &Home,
    mut report: Report,
    sending: Sending,
) -> Delivered {
    if let Err(error) = home.record_report(&report) {
        tracing::error!(attempt = %active.id, %error, "the report cannot be kept on disk; going on without");
    }
    if active.stop.cause() == Some(StopCause::LeaseGone) {
        let standing = runner.standing(active).await;
        if standing != Standing::Ours {
            sending.task.abort();
            return Delivered::of(standing);
        }
    }
    failpoints::hit("runner.result.recorded");
    if let Err(standing) = upload_all(runner, active, &mut report).await {
        sending.task.abort();
        return Delivered::of(standing);
    }
    match sending.finish().await {
        (Sent::All, last_output_sequence) => finish(runner, active, report, last_output_sequence).await,
        (Sent::Not(standing), _) => Delivered::of(standing),
    }
}

/// Delivers a report of an attempt that has no output.
pub(crate) async fn finish_only(runner: &Runner, active: &Active, report: Report) -> Delivered {
    finish(runner, active, report, 0).await
}

/// The attempt's standing, when it is not ours any more.
async fn upload_all(runner: &Runner, active: &Active, report: &mut Report) -> Result<(), Standing> {
    for upload in std::mem::take(&mut report.uploads) {
        match upload_one(runner, active, &upload).await? {
            Ok(uri) => {
                if let Some(evidence) = upload.evidence.and_then(|index| report.result.evidence.get_mut(index)) {
                    evidence.source_ref = uri;
                }
            }
            Err(error) => {
                tracing::warn!(attempt = %active.id, artifact = upload.name, %error, "an artifact was refused");
                let message = format!("the artifact {} could not be stored: {error}", upload.name);
                report.fail(ExitCategory::InfrastructureError, message);
                if let Some(index) = upload.evidence {
                    drop_evidence(report, index);
                }
            }
        }
    }
    report
        .result
        .evidence
        .retain(|evidence| !evidence.source_ref.is_empty());
    Ok(())
}

/// Evidence whose source nobody can read proves nothing.
fn drop_evidence(report: &mut Report, index: usize) {
    if let Some(evidence) = report.result.evidence.get_mut(index) {
        evidence.source_ref.clear();
    }
}

/// The artifact's URI or why it was refused; or the attempt's standing, when it is not ours any more.
async fn upload_one(
    runner: &Runner,
    active: &Active,
    upload: &Upload,
) -> Result<Result<String, ClientError>, Standing> {
    let query = ArtifactUploadQuery {
        epoch: active.epoch,
        artifact_type: upload.artifact_type.clone(),
        sensitivity: upload.sensitivity,
        sha256: upload.sha256,
        media_type: upload.media_type.clone(),
    };
    let mut failed = 0;
    loop {
        let file = upload.file.clone();
        let opened = async move { tokio::fs::File::open(file).await.map(ReaderStream::new) };
        let body = futures::stream::once(opened).flat_map(|opened| match opened {
            Ok(pieces) => pieces.boxed(),
            Err(error) => futures::stream::once(std::future::ready(Err(error))).boxed(),
        });
        failpoints::hit("runner.artifact.before");
        match runner
            .client
            .upload_artifact(active.id, &upload.name, &query, body.boxed())
            .await
        {
            Ok(artifact) => {
                failpoints::hit("runner.artifact.sent");
                return Ok(Ok(artifact.uri));
            }
            Err(error) if is_not_ours(&error) => match runner.standing(active).await {
                Standing::Ours => {}
                known => return Err(known),
            },
            Err(error) if error.is_transient() && upload.file.exists() => {}
            Err(error) => return Ok(Err(error)),
        }
        failed += 1;
        tokio::time::sleep(PATIENCE.pause(failed)).await;
    }
}
