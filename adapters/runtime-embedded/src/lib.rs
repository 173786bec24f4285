//! The embedded durable runtime: one loop over control-plane's own wake-up rows.
//!
//! It exists so that the platform needs nothing else installed. Invariants: its memory is a cache of
//! the rows (dropping it at any point loses time only); one operation is asked by one task at a time;
//! the rows are swept once a second, however many operations wait, and there is one timer in all.

mod agenda;
mod driving;

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use control_plane_ports::{Advanced, DurableRuntime, OperationDriver, RuntimeStatus, Wakeups};
use kernel::id::OperationId;
use tokio::sync::{Mutex as AsyncMutex, mpsc};
use tokio_util::sync::CancellationToken;

/// How much is done at once.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Operations that are asked at the same time.
    pub advances: usize,
    /// Effects that are performed at the same time.
    pub effects: usize,
    /// Wake-up rows taken by one sweep.
    pub sweep: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            advances: 64,
            effects: 256,
            sweep: 1_000,
        }
    }
}

enum Notice {
    Ask(OperationId),
    Took(OperationId, Advanced),
}

/// The runtime. Cheap to share; notices that come before [`DurableRuntime::run`] are kept.
pub struct EmbeddedRuntime {
    options: Options,
    notices: mpsc::UnboundedSender<Notice>,
    inbox: AsyncMutex<mpsc::UnboundedReceiver<Notice>>,
    status: Arc<Mutex<RuntimeStatus>>,
}

impl EmbeddedRuntime {
    /// A runtime that is not yet run.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let (notices, inbox) = mpsc::unbounded_channel();
        Self {
            options,
            notices,
            inbox: AsyncMutex::new(inbox),
            status: Arc::new(Mutex::new(RuntimeStatus {
                kind: "embedded".to_owned(),
                running: false,
                operations: 0,
                effects_in_flight: 0,
                effects_waiting: 0,
                swept_at: None,
            })),
        }
    }
}

impl Default for EmbeddedRuntime {
    fn default() -> Self {
        Self::new(Options::default())
    }
}

/// Tells that the runtime no longer runs, also when its future is dropped.
struct RunningMark(Arc<Mutex<RuntimeStatus>>);

impl RunningMark {
    fn set(status: &Arc<Mutex<RuntimeStatus>>) -> Self {
        status.lock().unwrap_or_else(PoisonError::into_inner).running = true;
        Self(status.clone())
    }
}

impl Drop for RunningMark {
    fn drop(&mut self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).running = false;
    }
}

#[async_trait]
impl DurableRuntime for EmbeddedRuntime {
    fn notify(&self, operation: OperationId) {
        // The receiver lives as long as self does.
        let _ = self.notices.send(Notice::Ask(operation));
    }

    fn took(&self, operation: OperationId, advanced: Advanced) {
        let _ = self.notices.send(Notice::Took(operation, advanced));
    }

    async fn run(&self, driver: Arc<dyn OperationDriver>, wakeups: Arc<dyn Wakeups>, shutdown: CancellationToken) {
        let mut inbox = self.inbox.lock().await;
        let _mark = RunningMark::set(&self.status);
        driving::Driving::new(self.options, driver, wakeups, self.status.clone())
            .run(&mut inbox, shutdown)
            .await;
    }

    fn status(&self) -> RuntimeStatus {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
