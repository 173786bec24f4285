//! Who asks a deployment: other people than its admin, other processes of a service, the command line.

use std::fs;
use std::process::{Command, Output};

use client_kit::Client;
use control_plane_api::ControlPlane;

use crate::Deployment;
use crate::deployment::{Role, tokens};

impl Deployment {
    /// The same control-plane, asked by somebody else.
    #[must_use]
    pub fn control_as(&self, subject: &str, roles: &[&str]) -> ControlPlane {
        self.control_of(subject, roles, None)
    }

    /// The same control-plane, asked by somebody else, of another organization when one is named.
    #[must_use]
    pub fn control_of(&self, subject: &str, roles: &[&str], organization: Option<uuid::Uuid>) -> ControlPlane {
        let organization = organization.map(|organization| organization.to_string());
        let mut args = vec!["token", "mint", subject];
        for role in roles {
            args.extend(["--role", role]);
        }
        if let Some(organization) = &organization {
            args.extend(["--organization", organization]);
        }
        let token = self.platform(&args);
        let client = Client::new(self.address(Role::ControlPlane), Some(tokens(token.trim().to_owned())));
        ControlPlane::new(client.expect("an address"))
    }

    /// Runs a client command of this platform as its admin; it must succeed.
    pub fn platform(&self, args: &[&str]) -> String {
        let output = self.try_platform(args);
        assert!(
            output.status.success(),
            "platform {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The same; it may fail.
    pub fn try_platform(&self, args: &[&str]) -> Output {
        Command::new(self.program())
            .args(args)
            .env("PLATFORM_CONTEXT", self.data().join("context.toml"))
            .env_remove("PLATFORM_TOKEN")
            .output()
            .expect("the program runs")
    }

    /// The control-plane that answers at `address`, asked by the admin.
    #[must_use]
    pub fn control_at(&self, address: &str) -> ControlPlane {
        let token = fs::read_to_string(self.data().join("token")).expect("a token");
        let client = Client::new(address, Some(tokens(token.trim().to_owned())));
        ControlPlane::new(client.expect("an address"))
    }
}
