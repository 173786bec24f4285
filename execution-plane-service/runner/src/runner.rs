//! The runner as a whole: enrols, pulls leases, renews them, ends what it may not run any longer.
//!
//! Invariants: one outstanding pull at a time; what an earlier process left is listed in the first
//! pull, and no call is made about it before that is answered; a session is only renewed between two
//! pulls, after one that was answered, so that no granted lease can fall between sessions; a lease is
//! counted from the moment a request was sent; the runner never starts an attempt that it has in hand
//! already.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::Utc;
use client_kit::{Client, ClientError, Retries};
use execution_plane_api::runner_client::RunnerClient;
use execution_plane_api::{
    Lease, LeasePullRequest, LeaseRenewRequest, RenewOutcome, RunnerRegistration, problem_codes,
};
use identity::{BearerToken, RotatingToken};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::attempt::{Active, Registry, drive, recover};
use crate::config::{Config, Deps};
use crate::jobs::context::Tools;
use crate::session::Session;
use crate::standing::{Pulls, Standing};
use crate::state::{LeftBehind, StateDirectory, StateError};
use crate::stop::StopCause;

/// A job that ends within this time is not renewed.
const QUICK: Duration = Duration::from_millis(50);
/// After a shutdown, how long reports may take to be accepted; what is left goes with the next start.
const LAST_WORDS: Duration = Duration::from_secs(15);
const PATIENCE: Retries = Retries {
    tries: u32::MAX,
    first_pause: Duration::from_millis(100),
    longest_pause: Duration::from_secs(3),
};

/// Why a runner ends on its own.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    #[error("the address of the service cannot be used")]
    Client(#[source] ClientError),
    #[error("the service refuses this runner: {0}")]
    Refused(#[source] ClientError),
    #[error("another runner took over the name {0:?}; this one has ended its jobs")]
    Superseded(String),
    #[error("this runner gives no isolation at all; name at least one")]
    NoIsolation,
    #[error(transparent)]
    State(#[from] StateError),
    #[error("an HTTP client cannot be made")]
    Http(#[source] reqwest::Error),
}

/// An attempt of an earlier process, listed as held.
type InHand = (Arc<Active>, LeftBehind);

/// Everything that the parts of a runner share. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Runner {
    pub(crate) config: Arc<Config>,
    pub(crate) deps: Deps,
    pub(crate) tools: Arc<Tools>,
    pub(crate) state: Arc<StateDirectory>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) client: RunnerClient,
    pulls: Arc<Pulls>,
    /// What an earlier process left, until a pull has listed it.
    left: Arc<Mutex<Vec<InHand>>>,
    tokens: Arc<RotatingToken>,
}

/// Runs a runner until `shutdown` is asked for, then hands back what it has.
///
/// # Errors
/// [`RunnerError`] when it cannot begin, is refused, or another takes its place.
pub async fn run(config: Config, deps: Deps, shutdown: CancellationToken) -> Result<(), RunnerError> {
    failpoints::declare(crate::FAILPOINTS);
    if deps.isolation.is_empty() {
        return Err(RunnerError::NoIsolation);
    }
    let tokens = Arc::new(RotatingToken::new(deps.enrolment_token.clone()));
    let source: Arc<dyn identity::TokenSource> = Arc::clone(&tokens) as _;
    let client = Client::new(&config.service_url, Some(source)).map_err(RunnerError::Client)?;
    let runner = Arc::new(Runner {
        tools: Arc::new(Tools::of(&config).map_err(RunnerError::Http)?),
        state: Arc::new(StateDirectory::open(&config.state_directory)?),
        registry: Arc::default(),
        client: RunnerClient::new(client),
        pulls: Arc::default(),
        left: Arc::default(),
        config: Arc::new(config),
        deps,
        tokens,
    });
    let left = runner.state.left_behind()?;
    let Some(session) = runner.enrol(&shutdown).await? else {
        return Ok(());
    };
    for left in left {
        runner.take_in_hand(left);
    }
    let (wait, margin) = (session.wait(), session.margin());
    // Renewing goes on while a shutdown waits for jobs; it ends with this function.
    let renewing = tokio::spawn(Arc::clone(&runner).renew(wait));
    let watching = tokio::spawn(Arc::clone(&runner).watch_leases(margin));
    let pulled = runner.pull(session, &shutdown).await;
    if pulled.is_ok() {
        runner.hand_back().await;
    } else {
        runner.pulls.end();
        runner.leave();
        runner.registry.stop_all(StopCause::LeaseGone);
        drop(tokio::time::timeout(LAST_WORDS, runner.registry.until(|count| count == 0)).await);
    }
    renewing.abort();
    watching.abort();
    pulled
}

fn whole_seconds(wait: Duration) -> u32 {
    u32::try_from(wait.as_secs()).unwrap_or(u32::MAX)
}

/// The service says that the attempt is not this runner's, in whatever words. They are the words for an
/// attempt that it has not handed over to this session as well: see [`Runner::standing`].
pub(crate) fn is_not_ours(error: &ClientError) -> bool {
    matches!(
        error.code(),
        Some(problem_codes::STALE_EPOCH | problem_codes::ATTEMPT_FINISHED)
    ) || error.status() == Some(404)
}

impl Runner {
    fn registration(&self) -> RunnerRegistration {
        RunnerRegistration {
            name: self.config.name.clone(),
            pools: self.config.pools.clone(),
            labels: self.config.labels.clone(),
            job_types: self.config.job_types(),
            isolation: self.deps.grades(),
            capacity: self.config.capacity,
            environments: self.config.environments.clone(),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        }
    }

    /// Opens the first session, however long the service is away; None when a shutdown comes first.
    async fn enrol(&self, shutdown: &CancellationToken) -> Result<Option<Session>, RunnerError> {
        let saved = self.state.session();
        let mut failed = 0;
        let mut second_try = saved.map(|saved| BearerToken::new(saved.token));
        loop {
            let answer = tokio::select! {
                () = shutdown.cancelled() => return Ok(None),
                answer = self.open_session() => answer,
            };
            match answer {
                Ok(session) => return Ok(Some(session)),
                // The enrolment token may be used up; the last session's token may not.
                Err(error) if error.status() == Some(401) && second_try.is_some() => {
                    if let Some(token) = second_try.take() {
                        self.tokens.replace(token);
                    }
                }
                Err(error) if error.is_transient() => {
                    failed += 1;
                    tracing::info!(%error, failed, "the service cannot be reached yet");
                    tokio::select! {
                        () = shutdown.cancelled() => return Ok(None),
                        () = tokio::time::sleep(PATIENCE.pause(failed)) => {}
                    }
                }
                Err(error) => return Err(RunnerError::Refused(error)),
            }
        }
    }

    async fn open_session(&self) -> Result<Session, ClientError> {
        let session = self.client.open_session(&self.registration()).await?;
        self.tokens.replace(BearerToken::new(session.token.clone()));
        if let Err(error) = self.state.save_session(&session.token) {
            tracing::warn!(%error, "the session cannot be kept; a restart will need the enrolment token");
        }
        tracing::info!(runner = %session.runner_id, session = session.session, "enrolled");
        Ok(Session::of(&session))
    }

    /// What holds of `active` after the service refused a call as one about an attempt that is not ours.
    pub(crate) async fn standing(&self, active: &Active) -> Standing {
        if !active.is_gone() && !self.pulls.next_answer().await {
            return Standing::Unsettled;
        }
        if active.is_gone() {
            Standing::Gone
        } else {
            Standing::Ours
        }
    }

    /// Pulls leases until a shutdown. The first answer makes this session's what was left by an earlier one.
    async fn pull(self: &Arc<Self>, mut session: Session, shutdown: &CancellationToken) -> Result<(), RunnerError> {
        let mut at_once = self.registry.count() > 0;
        let mut failed = 0;
        loop {
            let capacity = self.config.capacity as usize;
            if !at_once {
                tokio::select! {
                    () = shutdown.cancelled() => return Ok(()),
                    () = self.pulls.wanted() => at_once = true,
                    () = self.registry.until(|count| count < capacity) => {}
                    // However long the jobs of a full runner take, its token must outlast them.
                    () = tokio::time::sleep_until(session.rotate_at) => at_once = true,
                }
            }
            let wait = if at_once { 0 } else { whole_seconds(session.wait()) };
            let sent = Instant::now();
            let answer = tokio::select! {
                () = shutdown.cancelled() => return Ok(()),
                // What the answer that is given up would have granted is in the next one.
                () = self.pulls.wanted(), if !at_once => {
                    at_once = true;
                    continue;
                }
                answer = self.pull_once(capacity.saturating_sub(self.registry.count()), wait) => answer,
            };
            match answer {
                Ok(leases) => {
                    failed = 0;
                    if leases.is_empty() && wait == 0 && !at_once {
                        tokio::time::sleep(session.wait()).await;
                    }
                    at_once = false;
                    self.take(leases, sent);
                    self.recover();
                    if Instant::now() >= session.rotate_at {
                        match self.open_session().await {
                            Ok(next) => session = next,
                            Err(error) => {
                                tracing::warn!(%error, "the token could not be renewed; trying again");
                                session.rotate_at = Instant::now() + PATIENCE.longest_pause;
                            }
                        }
                    }
                }
                Err(error) if error.code() == Some(problem_codes::SESSION_SUPERSEDED) => {
                    return Err(RunnerError::Superseded(self.config.name.clone()));
                }
                Err(error) if error.status() == Some(401) => {
                    tracing::warn!(%error, "the session's token is not taken any more; enrolling again");
                    self.tokens.replace(self.deps.enrolment_token.clone());
                    let Some(next) = self.enrol(shutdown).await? else {
                        return Ok(());
                    };
                    session = next;
                    // It may be a new session, which has nothing of what is in hand until it lists it.
                    at_once = true;
                }
                Err(error) => {
                    failed += 1;
                    tracing::info!(%error, failed, "no answer to a pull; trying again");
                    tokio::select! {
                        () = shutdown.cancelled() => return Ok(()),
                        () = tokio::time::sleep(PATIENCE.pause(failed)) => {}
                    }
                }
            }
        }
    }

    /// Keeps what an earlier process left, to be listed in the first pull.
    fn take_in_hand(&self, left: LeftBehind) {
        let active = recover::take_in_hand(&left);
        self.registry.add(&active);
        self.left().push((active, left));
    }

    /// A pull has listed what was left; now calls about it are answered.
    fn recover(self: &Arc<Self>) {
        for (active, left) in self.left().drain(..) {
            tokio::spawn(recover::recover(Arc::clone(self), active, left));
        }
    }

    /// No pull has listed it: it stays on disk for the next start.
    fn leave(&self) {
        for (active, _) in self.left().drain(..) {
            self.registry.remove(active.id);
        }
    }

    fn left(&self) -> MutexGuard<'_, Vec<InHand>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn pull_once(&self, free: usize, wait_seconds: u32) -> Result<Vec<Lease>, ClientError> {
        let free_slots = u32::try_from(free).unwrap_or(u32::MAX);
        let number = self.pulls.sent();
        let request = LeasePullRequest {
            free_slots,
            held: self.registry.held(),
            wait_seconds,
        };
        let answer = self.client.pull(&request).await?;
        for id in answer.gone {
            if let Some(active) = self.registry.get(id) {
                active.gone();
            }
        }
        self.pulls.answered(number);
        Ok(answer.leases)
    }

    /// Takes leases in hand; one that is already there was sent again and is left as it is.
    fn take(self: &Arc<Self>, leases: Vec<Lease>, sent: Instant) {
        for lease in leases {
            failpoints::hit("runner.lease.received");
            let left = Duration::try_from_secs_f64(lease.deadline_in_seconds).unwrap_or_default();
            let active = Arc::new(Active::new(lease.attempt_id, lease.epoch, Some(sent + left)));
            if self.registry.add(&active) {
                tokio::spawn(drive::drive(Arc::clone(self), active, lease, Utc::now()));
            }
        }
    }

    /// Renews all leases, for ever.
    async fn renew(self: Arc<Self>, wait: Duration) {
        let patience = wait.max(Duration::from_millis(500));
        let mut failed = 0;
        // A session that has not pulled has nothing to renew: what is in hand would be called gone.
        if !self.pulls.first_answer().await {
            return;
        }
        // What is over so soon needs no renewal.
        let quick = QUICK.min(wait / 4);
        loop {
            self.registry.until(|count| count > 0).await;
            if !self.registry.all_renewed() {
                tokio::time::sleep(quick).await;
            }
            // The answer comes after the wait; a lease that was never renewed needs it now.
            let wait_seconds = if self.registry.all_renewed() {
                whole_seconds(wait)
            } else {
                0
            };
            let request = LeaseRenewRequest {
                held: self.registry.held(),
                wait_seconds,
            };
            let sent = Instant::now();
            match self.client.renew(&request, patience).await {
                Ok(answer) => {
                    failed = 0;
                    for renewed in answer.leases {
                        let Some(active) = self.registry.get(renewed.attempt_id) else {
                            continue;
                        };
                        self.apply(&active, renewed.outcome, renewed.deadline_in_seconds, sent);
                    }
                    // A wait of whole seconds may be none at all; then the pause is here.
                    let pause = if whole_seconds(wait) == 0 {
                        wait
                    } else {
                        Duration::from_millis(20)
                    };
                    tokio::time::sleep(pause).await;
                }
                Err(error) => {
                    failed += 1;
                    tracing::info!(%error, failed, "leases could not be renewed; trying again");
                    tokio::time::sleep(PATIENCE.pause(failed).min(wait / 2)).await;
                }
            }
        }
    }

    fn apply(&self, active: &Active, outcome: RenewOutcome, deadline_in_seconds: Option<f64>, sent: Instant) {
        if let Some(left) = deadline_in_seconds.and_then(|left| Duration::try_from_secs_f64(left).ok()) {
            active.renewed(sent + left);
        }
        match outcome {
            RenewOutcome::Ok => {}
            RenewOutcome::CancelRequested => active.cancel(),
            RenewOutcome::Gone => active.stop.ask(StopCause::LeaseGone),
        }
    }

    /// Ends jobs whose lease runs out, by this machine's monotonic clock alone.
    async fn watch_leases(self: Arc<Self>, margin: Duration) {
        loop {
            let next = self.registry.end_lapsed(Instant::now(), margin);
            tokio::time::sleep(next.max(Duration::from_millis(10))).await;
        }
    }

    /// A shutdown: what has not begun goes back at once, what runs gets time to end, then is ended.
    async fn hand_back(self: &Arc<Self>) {
        // An answer may have been on its way when the last pull was given up.
        let sent = Instant::now();
        if let Ok(leases) = self.pull_once(0, 0).await {
            self.take(leases, sent);
            self.recover();
        }
        self.pulls.end();
        self.leave();
        for active in self.registry.list() {
            if active.begun.at().is_none() {
                active.stop.ask(StopCause::ShutDown);
            }
        }
        let empty = || self.registry.until(|count| count == 0);
        if tokio::time::timeout(self.config.drain(), empty()).await.is_err() {
            self.registry.stop_all(StopCause::ShutDown);
            if tokio::time::timeout(LAST_WORDS, empty()).await.is_err() {
                tracing::warn!(
                    left = self.registry.count(),
                    "ended with reports that the service has not accepted yet"
                );
            }
        }
    }
}
