//! Artifacts of ssh jobs: files that the commands left in `$PLATFORM_ARTIFACTS` on a target.

use contracts::ExitCategory;
use kernel::ResourceId;

use super::WorkEnd;
use super::context::JobContext;
use super::execute::Shown;
use crate::ssh::client::Remote;
use crate::ssh::log::RemoteEnd;
use crate::ssh::{Access, wrapper};

/// Fetches what the contract declares. An artifact has one origin; the same name on two targets would
/// leave open whose it is.
pub(super) async fn fetch(context: &JobContext, access: &Access, mut work: WorkEnd) -> WorkEnd {
    let names = &context.spec.output_contract.artifacts;
    let mut failure = None;
    for name in names {
        let mut origin: Option<&ResourceId> = None;
        for target in access.ids() {
            match one(context, access, target, wrapper::give_artifact(&context.mark(), name)).await {
                Some(_) if origin.is_some() => failure = Some(format!("the artifact {name} is on several targets")),
                Some(bytes) => {
                    origin = Some(target);
                    let kept = std::fs::write(context.places.artifacts.join(name), bytes);
                    failure = failure.or(kept.err().map(|error| format!("the artifact {name}: {error}")));
                }
                None => {}
            }
        }
    }
    for target in access.ids() {
        one(context, access, target, wrapper::clear_away(&context.mark())).await;
    }
    if let Some(message) = failure {
        work = WorkEnd {
            outputs: work.outputs,
            ..WorkEnd::failed(ExitCategory::ValidationError, 0, message)
        };
    }
    work
}

/// The output of a script that ended well.
async fn one(context: &JobContext, access: &Access, target: &ResourceId, script: String) -> Option<Vec<u8>> {
    let remote = Remote {
        target,
        line: wrapper::marked(&context.mark(), &script, &[]),
        pty: false,
        stdin: None,
        shown: Shown::Kept(context.tools.artifact_limit),
        within: None,
        of_the_job: true,
    };
    let outcome = context.remote(access, remote).await.ok()?;
    (outcome.end == Some(RemoteEnd::Exited(0))).then_some(outcome.local.stdout)
}
