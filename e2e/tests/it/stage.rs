//! Where stories are told: a deployment with one host, of which one process may be armed to die.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use e2e::{Deployment, Options, Role, World, one_host};
use rustix::process::Signal;

use crate::stories::endless;
use crate::teller::{Teller, until};

const ARM: &str = "PLATFORM_FAILPOINT";
const LOG: &str = "PLATFORM_FAILPOINT_LOG";

/// What a process is to be started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Armed {
    Nothing,
    /// Every process tells which places it passes.
    Trace,
    /// The process that has this place dies there.
    Place(String),
}

pub struct Stage {
    pub deployment: Deployment,
    pub world: World,
    pub teller: Teller,
    armed: Mutex<Armed>,
    log: PathBuf,
}

impl Stage {
    pub async fn up(options: &Options) -> Arc<Self> {
        let deployment = Deployment::start(options).await;
        let world = World::start(&deployment, 1).await;
        let teller = Teller::of(&deployment);
        teller.publish(&one_host()).await;
        teller.publish(&endless()).await;
        let log = deployment.path().join("failpoints.log");
        let stage = Self {
            deployment,
            world,
            teller,
            armed: Mutex::new(Armed::Nothing),
            log,
        };
        // The copy of the catalog is there before the first plan.
        stage.catalog_is_whole().await;
        Arc::new(stage)
    }

    /// What is armed from now on; processes that run are as they were.
    pub fn arm(&self, armed: Armed) {
        std::fs::write(&self.log, "").expect("own file");
        *self.armed.lock().unwrap_or_else(PoisonError::into_inner) = armed;
    }

    /// Starts a role, with what is armed.
    pub fn launch(&self, role: Role) {
        let armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let log = self.log.to_str().expect("a plain path");
        match armed {
            Armed::Trace => self.deployment.launch(role, &[(ARM, "trace"), (LOG, log)]),
            Armed::Place(name) if Role::of_failpoint(&name) == Some(role) => {
                self.deployment.launch(role, &[(ARM, &name), (LOG, log)]);
            }
            _ => self.deployment.launch(role, &[]),
        }
    }

    /// The places that were passed, or died at, since the stage was armed.
    pub fn places(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let places = text.lines().filter_map(|line| line.split_whitespace().nth(1));
        places.map(str::to_owned).collect()
    }

    /// Restarts every service and the runner, with what is armed.
    pub async fn restart_all(&self) {
        for role in [
            Role::Runner,
            Role::ControlPlane,
            Role::ExecutionPlane,
            Role::ResourceCatalog,
        ] {
            self.deployment.signal(role, Signal::TERM);
            self.deployment.ended(role).await;
        }
        for role in &Role::ALL[1..] {
            self.launch(*role);
        }
        for role in &Role::ALL[1..4] {
            self.deployment.wait_ready(*role).await;
        }
    }

    /// Waits for the armed place to be reached and for the death there, then starts the role again.
    pub async fn die_and_rise(&self, name: &str) {
        let role = Role::of_failpoint(name).expect("a role");
        until(name, async || {
            self.places().iter().any(|place| place == name).then_some(())
        })
        .await;
        self.deployment.ended(role).await;
        self.arm(Armed::Nothing);
        self.launch(role);
    }
}
