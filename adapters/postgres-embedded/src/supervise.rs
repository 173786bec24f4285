//! Starts the server, waits until it answers, and starts it again when it dies unasked.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use child_process::{Account, DeathSignal, KeptChild, Launch, Signal};
use tokio::{
    sync::{oneshot, watch},
    time::{sleep, timeout},
};
use tokio_postgres::{NoTls, error::SqlState};

use crate::{Binaries, Config, Error, State, layout::Layout, leftovers, log};

const FAST_STOP: Duration = Duration::from_secs(30);
const IMMEDIATE_STOP: Duration = Duration::from_secs(10);
const BETWEEN_TRIES: Duration = Duration::from_millis(20);
/// This many deaths within this time are mended at once; after further ones there is a pause, because
/// what ends the server (a full disk, say) may last.
const AT_ONCE: u32 = 4;
const WITHIN: Duration = Duration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Everything needed to start the server, now or again.
pub(crate) struct Recipe {
    pub config: Config,
    pub layout: Layout,
    pub binaries: Binaries,
    pub password: String,
    pub port: u16,
}

impl Recipe {
    pub fn url(&self, database: &str) -> String {
        let host = percent_encode(&self.layout.sockets.to_string_lossy());
        format!("postgres://postgres:{}@{host}:{}/{database}", self.password, self.port)
    }

    /// At the platform's death the server stops at once: a start that follows waits less, and
    /// recovery is what a crash costs anyway.
    fn launch(&self) -> Result<Launch, Error> {
        let layout = &self.layout;
        let mut launch = Launch::new(self.binaries.program("postgres"), DeathSignal::Quit)
            .clear_env()
            .env("LC_ALL", "C.UTF-8")
            .arg("-D")
            .arg(&layout.data)
            .directory(&layout.data)
            .stdout(layout.open_log()?)
            .stderr(layout.open_log()?);
        for setting in self
            .config
            .server_settings(&layout.sockets.to_string_lossy(), self.port)
        {
            launch = launch.arg("-c").arg(setting);
        }
        Ok(if layout.account == Account::current() {
            launch
        } else {
            launch.account(layout.account)
        })
    }
}

/// The URL's host part is the socket directory, so its slashes must be escaped.
fn percent_encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| {
            if plain(byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

/// Starts the server once and returns when it answers.
pub(crate) async fn start(recipe: &Arc<Recipe>) -> Result<KeptChild, Error> {
    let since = log::end_of(&recipe.layout.log);
    let child = recipe.launch()?.spawn()?;
    let limit = recipe.config.start_timeout;
    let mut last_error = None;
    let answered = timeout(limit, async {
        loop {
            match try_connect(recipe).await {
                Ok(()) => return Ok(()),
                Err(error) if password_refused(&error) => {
                    return Err(Error::PasswordRefused {
                        path: recipe.layout.password.clone(),
                    });
                }
                Err(error) => last_error = Some(error),
            }
            tokio::select! {
                _ = child.exited() => {
                    return Err(Error::EndedAtStart { log: log::last_lines(&recipe.layout.log, since) });
                }
                () = sleep(BETWEEN_TRIES) => {}
            }
        }
    })
    .await;
    match answered {
        Ok(Ok(())) => Ok(child),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(Error::NotReady {
            seconds: limit.as_secs(),
            log: log::last_lines(&recipe.layout.log, since),
            source: last_error,
        }),
    }
}

/// A server that accepts connections is not yet one that answers: ask it something.
async fn try_connect(recipe: &Recipe) -> Result<(), tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(&recipe.url("postgres"), NoTls).await?;
    let connection = tokio::spawn(connection);
    let answer = client.simple_query("SELECT 1").await;
    drop(client);
    connection.abort();
    answer.map(drop)
}

fn password_refused(error: &tokio_postgres::Error) -> bool {
    error.code() == Some(&SqlState::INVALID_PASSWORD)
}

/// Runs until told to stop, or until the handle or the runtime is gone. A server that cannot be started
/// is tried again for ever: whoever removes the cause needs to do nothing else.
pub(crate) async fn keep_running(
    recipe: Arc<Recipe>,
    mut child: KeptChild,
    report: watch::Sender<State>,
    mut stopped: oneshot::Receiver<()>,
) {
    let mut deaths = VecDeque::new();
    loop {
        tokio::select! {
            _ = &mut stopped => {
                stop(&child).await;
                report.send_replace(State::Stopped);
                return;
            }
            status = child.exited() => {
                tracing::warn!(?status, "the database server died and is started again");
                report.send_replace(State::Restarting);
            }
        }
        tokio::select! {
            _ = &mut stopped => {
                report.send_replace(State::Stopped);
                return;
            }
            new = started_again(&recipe, &mut deaths, &report) => child = new,
        }
        report.send_replace(State::Ready { pid: child.pid() });
    }
}

/// Tries until the server runs again.
async fn started_again(
    recipe: &Arc<Recipe>,
    deaths: &mut VecDeque<Instant>,
    report: &watch::Sender<State>,
) -> KeptChild {
    loop {
        sleep(pause_after(deaths, Instant::now())).await;
        match restart(recipe).await {
            Ok(child) => return child,
            Err(error) => {
                tracing::error!(%error, "the database server cannot be started; trying again");
                report.send_replace(State::Failing(error.to_string()));
            }
        }
    }
}

async fn restart(recipe: &Arc<Recipe>) -> Result<KeptChild, Error> {
    let data = recipe.layout.data.clone();
    tokio::task::spawn_blocking(move || leftovers::end_all(&data))
        .await
        .map_err(|_| Error::CutOff)??;
    start(recipe).await
}

/// Counts a death, and says how long to wait before the next start.
fn pause_after(deaths: &mut VecDeque<Instant>, now: Instant) -> Duration {
    deaths.push_back(now);
    while deaths.front().is_some_and(|first| now.duration_since(*first) > WITHIN) {
        deaths.pop_front();
    }
    let many = u32::try_from(deaths.len()).unwrap_or(u32::MAX);
    match many.checked_sub(AT_ONCE + 1) {
        None => Duration::ZERO,
        Some(further) => LONGEST_PAUSE.min(FIRST_PAUSE * (1 << further.min(10))),
    }
}

async fn stop(child: &KeptChild) {
    for (signal, patience) in [
        (Signal::INT, FAST_STOP),
        (Signal::QUIT, IMMEDIATE_STOP),
        (Signal::KILL, IMMEDIATE_STOP),
    ] {
        if let Err(error) = child.signal(signal) {
            tracing::error!(%error, "cannot signal the database server");
        }
        if timeout(patience, child.exited()).await.is_ok() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_again_at_once_and_more_slowly_after_many_deaths_in_a_short_time() {
        let start = Instant::now();
        let mut deaths = VecDeque::new();
        for number in 0..20 {
            let pause = pause_after(&mut deaths, start + WITHIN * number);
            assert_eq!(pause, Duration::ZERO, "slow deaths are mended at once");
        }
        let mut deaths = VecDeque::new();
        let quick: Vec<u64> = (0..10)
            .map(|number| pause_after(&mut deaths, start + Duration::from_secs(number)).as_secs())
            .collect();
        assert_eq!(quick, [0, 0, 0, 0, 1, 2, 4, 8, 10, 10]);
    }

    #[test]
    fn a_socket_directory_fits_into_a_url() {
        assert_eq!(percent_encode("/tmp/a-b c"), "%2Ftmp%2Fa-b%20c");
    }
}
