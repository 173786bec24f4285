//! What the config files of a deployment say otherwise than an operator's: short leases, and connections
//! between the processes that a test can break.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use fault_proxy::FaultProxy;

use crate::OtherVersion;
use crate::deployment::{Options, Role};

/// Which process calls which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Link {
    ControlPlaneToCatalog,
    ControlPlaneToExecutionPlane,
    RunnerToExecutionPlane,
}

impl Link {
    pub const ALL: [Self; 3] = [
        Self::ControlPlaneToCatalog,
        Self::ControlPlaneToExecutionPlane,
        Self::RunnerToExecutionPlane,
    ];

    /// The caller's config file, and whom it calls.
    const fn ends(self) -> (Role, Role) {
        match self {
            Self::ControlPlaneToCatalog => (Role::ControlPlane, Role::ResourceCatalog),
            Self::ControlPlaneToExecutionPlane => (Role::ControlPlane, Role::ExecutionPlane),
            Self::RunnerToExecutionPlane => (Role::Runner, Role::ExecutionPlane),
        }
    }
}

/// Puts a proxy between each caller and whom it calls.
pub(crate) async fn made_breakable(config: &Path, addresses: &HashMap<Role, String>) -> HashMap<Link, FaultProxy> {
    let mut links = HashMap::new();
    for link in Link::ALL {
        let (caller, called) = link.ends();
        let server = addresses[&called].trim_start_matches("http://");
        let proxy = FaultProxy::before(server.parse().expect("an address")).await;
        let proxy = proxy.expect("a port");
        let path = config.join(format!("{}.toml", caller.word()));
        named_instead(&path, &addresses[&called], &format!("http://{}", proxy.address()));
        links.insert(link, proxy);
    }
    links
}

/// Writes into a config file that a service is to be found elsewhere.
fn named_instead(path: &Path, address: &str, instead: &str) {
    let text = fs::read_to_string(path).expect("a config file");
    let named = format!("{address:?}");
    assert!(text.contains(&named), "{} names {named}", path.display());
    fs::write(path, text.replace(&named, &format!("{instead:?}"))).expect("own file");
}

/// Puts a peer of another version before each service, for the services, the runner and the command line.
pub(crate) async fn made_another_version(
    data: &Path,
    addresses: &HashMap<Role, String>,
) -> HashMap<Role, OtherVersion> {
    let mut proxies = HashMap::new();
    for (role, address) in addresses {
        let proxy = OtherVersion::before(*role, address).await;
        named_instead(&data.join("context.toml"), address, proxy.address());
        for link in Link::ALL {
            let (caller, called) = link.ends();
            if called == *role {
                let path = data.join("config").join(format!("{}.toml", caller.word()));
                named_instead(&path, address, proxy.address());
            }
        }
        proxies.insert(*role, proxy);
    }
    proxies
}

/// Writes what the options say into the config files.
pub(crate) fn shorten(config: &Path, options: &Options) {
    for (role, lines) in &options.further {
        let path = config.join(format!("{}.toml", role.word()));
        let text = fs::read_to_string(&path).expect("a config file") + lines;
        fs::write(&path, text).expect("own file");
    }
    let leases = format!(
        "\n[leases]\nseconds = {:?}\ngrace_seconds = {:?}\ntoken_seconds = {:?}\n",
        options.lease_seconds, options.grace_seconds, options.token_seconds
    );
    let path = config.join("execution-plane.toml");
    let text = fs::read_to_string(&path).expect("a config file") + &leases;
    fs::write(&path, text).expect("own file");
    let path = config.join("runner.toml");
    let text = format!(
        "capacity = {}\n{}",
        options.capacity,
        fs::read_to_string(&path).expect("a config file")
    );
    fs::write(&path, text).expect("own file");
}
