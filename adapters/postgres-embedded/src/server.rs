//! The handle on a running server.

use std::{net::TcpListener, path::Path, sync::Arc};

use tokio::sync::{oneshot, watch};

use crate::{
    Config, Error, Listen, cluster,
    layout::Layout,
    leftovers, log, password,
    supervise::{self, Recipe},
};

/// The socket's name carries a port number even when no port is listened on.
const SOCKET_PORT: u16 = 5432;

/// What the server is doing just now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    Ready {
        pid: u32,
    },
    /// It died unasked and is being started again.
    Restarting,
    Stopped,
    /// It could not be started anew, for this reason; that is tried again.
    Failing(String),
}

/// A running server. `stop` ends it in order; dropping the handle ends it too, without waiting.
pub struct Server {
    recipe: Arc<Recipe>,
    state: watch::Receiver<State>,
    stop: Option<oneshot::Sender<()>>,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    /// Makes the data directory when there is none, ends what an earlier server left behind, starts
    /// the server and waits until it really answers a query.
    pub async fn start(config: Config) -> Result<Self, Error> {
        let recipe = tokio::task::spawn_blocking(move || prepare(config))
            .await
            .map_err(|_| Error::CutOff)??;
        let recipe = Arc::new(recipe);
        let child = supervise::start(&recipe).await?;
        let (report, state) = watch::channel(State::Ready { pid: child.pid() });
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(supervise::keep_running(Arc::clone(&recipe), child, report, stopped));
        Ok(Self {
            recipe,
            state,
            stop: Some(stop),
            task,
        })
    }

    /// A superuser's connection URL over the private socket. It holds the password: not for logs.
    pub fn url(&self, database: &str) -> String {
        self.recipe.url(database)
    }

    /// The same over loopback TCP, when the server listens there.
    pub fn loopback_url(&self, database: &str) -> Option<String> {
        let Recipe {
            config, port, password, ..
        } = &*self.recipe;
        let listens = config.listen != Listen::SocketOnly;
        listens.then(|| format!("postgres://postgres:{password}@127.0.0.1:{port}/{database}"))
    }

    pub fn socket_directory(&self) -> &Path {
        &self.recipe.layout.sockets
    }

    /// Part of the socket's name, and the loopback port when the server listens on one.
    pub fn port(&self) -> u16 {
        self.recipe.port
    }

    /// Holds the superuser's password, mode 0600.
    pub fn password_file(&self) -> &Path {
        &self.recipe.layout.password
    }

    pub fn log_file(&self) -> &Path {
        &self.recipe.layout.log
    }

    pub fn data_directory(&self) -> &Path {
        &self.recipe.layout.data
    }

    /// The directory of `psql`, `pg_dump`, `pgbench` and the server's programs.
    pub fn program_directory(&self) -> &Path {
        &self.recipe.binaries.directory
    }

    /// Follows the server's state, for readiness and for tests.
    pub fn state(&self) -> watch::Receiver<State> {
        self.state.clone()
    }

    /// Stops in order: running transactions are cut off, a checkpoint is written. A server that
    /// does not manage that in time is stopped at once; nothing committed is lost either way.
    pub async fn stop(mut self) -> Result<(), Error> {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        (&mut self.task).await.map_err(|_| Error::CutOff)?;
        self.recipe.layout.remove_sockets();
        Ok(())
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("data", &self.recipe.layout.data)
            .field("state", &*self.state.borrow())
            .finish_non_exhaustive()
    }
}

fn prepare(config: Config) -> Result<Recipe, Error> {
    let binaries = cluster::programs_for(&config, &config.root.join("data"))?;
    let layout = Layout::prepare(&config.root)?;
    log::rotate(&layout.log);
    let password = password::read_or_create(&layout)?;
    cluster::create_if_missing(&config, &layout, &binaries, &password)?;
    leftovers::end_all(&layout.data)?;
    let port = match config.listen {
        Listen::SocketOnly => SOCKET_PORT,
        Listen::LoopbackPort(port) => port,
        Listen::AnyLoopbackPort => free_port()?,
    };
    Ok(Recipe {
        config,
        layout,
        binaries,
        password,
        port,
    })
}

fn free_port() -> Result<u16, Error> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(Error::NoPort)?;
    Ok(listener.local_addr().map_err(Error::NoPort)?.port())
}
