//! A data directory: keys, passwords, tokens and one config file a role, made once and kept.
//!
//! What `platform up` runs in one process and what `platform serve` runs apart read the same files, so
//! nothing is possible embedded that is not possible apart.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use chrono::{TimeDelta, Utc};
use identity::{Minter, PrivateKey, Role, TrustedKey, Vouch};
use kernel::id::OrganizationId;

use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// The services in the order of their ports.
pub const SERVICES: [&str; 3] = ["resource_catalog", "control_plane", "execution_plane"];
const TOKEN_HOURS: i64 = 12;

/// A prepared data directory.
pub struct Layout {
    pub data: PathBuf,
    pub organization: OrganizationId,
    pub ports: [u16; 3],
    issuer: PrivateKey,
}

fn internal(error: impl std::fmt::Display) -> CliError {
    CliError::new(Exit::Internal, error.to_string())
}

impl Layout {
    /// Makes what is missing in `data`; `ports` are those that the services will listen on.
    ///
    /// # Errors
    /// When the directory cannot be written or holds a damaged key.
    pub fn prepare(data: &Path, ports: [u16; 3]) -> Result<Self, CliError> {
        for directory in ["", "keys", "passwords", "config", "blobs", "runner"] {
            // Others may pass through to the database's own directory, and read nothing.
            let mode = if directory.is_empty() { 0o711 } else { 0o700 };
            let path = data.join(directory);
            fs::DirBuilder::new()
                .recursive(true)
                .mode(mode)
                .create(&path)
                .map_err(|error| CliError::usage(format!("{} cannot be made: {error}", path.display())))?;
        }
        let data = data.canonicalize()?;
        let key =
            |name: &str| PrivateKey::load_or_generate(&data.join("keys").join(format!("{name}.pem"))).map_err(internal);
        let issuer = key("issuer")?;
        let trusted = [
            TrustedKey::new(issuer.public_key(), [Vouch::Issuer]),
            TrustedKey::new(
                key("control-plane")?.public_key(),
                [Vouch::Service("control-plane".to_owned())],
            ),
        ];
        key("runners")?;
        let proof = key("proof")?.public_key();
        write(&data.join("proof.pub"), &format!("{proof}\n"), 0o644)?;
        ensure_trusted(&data.join("trust.toml"), &trusted)?;
        for service in SERVICES {
            for role in ["owner", "api", "worker"] {
                keep(&data.join("passwords").join(format!("{service}_{role}")), || {
                    hex::encode(rand::random::<[u8; 24]>())
                })?;
            }
        }
        let organization = keep(&data.join("organization"), || uuid::Uuid::now_v7().to_string())?;
        let organization = organization.parse().map_err(internal)?;
        let layout = Self {
            data,
            organization,
            ports,
            issuer,
        };
        layout.write_context()?;
        Ok(layout)
    }

    /// A token of the local issuer.
    ///
    /// # Errors
    /// When the key cannot sign.
    pub fn token(&self, subject: &str, roles: &[Role]) -> Result<String, CliError> {
        let minter = Minter::new(self.issuer.clone(), "local");
        let token = minter.mint(
            subject,
            self.organization,
            roles.iter().copied(),
            TimeDelta::hours(TOKEN_HOURS),
            Utc::now(),
        );
        token.map(|token| token.expose().to_owned()).map_err(internal)
    }

    /// The address of a service.
    pub fn address(&self, service: &str) -> String {
        let index = SERVICES.iter().position(|name| *name == service).unwrap_or(0);
        format!("http://127.0.0.1:{}", self.ports[index])
    }

    fn write_context(&self) -> Result<(), CliError> {
        let token = self.token("person:admin", &[Role::Admin, Role::Operator, Role::Viewer])?;
        write(&self.data.join("token"), &format!("{token}\n"), 0o600)?;
        let enrolment = self.token("enrolment:local", &[Role::Runner])?;
        write(&self.data.join("runner/enrolment"), &format!("{enrolment}\n"), 0o600)?;
        let context = Context {
            resource_catalog: self.address("resource_catalog"),
            control_plane: self.address("control_plane"),
            execution_plane: self.address("execution_plane"),
            token_file: Some("token".into()),
            issuer_key: Some("keys/issuer.pem".into()),
            organization_id: Some(self.organization.as_uuid()),
        };
        write(
            &crate::context::file_in(&self.data),
            &toml::to_string(&context).map_err(internal)?,
            0o600,
        )
    }

    /// Writes one config file a role; `sockets` and `port` are those of the private database.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write_configs(&self, sockets: &Path, port: u16, ansible: Option<&Path>) -> Result<(), CliError> {
        for service in SERVICES {
            let text = self.service_config(service, sockets, port);
            write(&self.config(service), &text, 0o600)?;
        }
        write(&self.config("runner"), &self.runner_config(ansible), 0o600)
    }

    /// The config file of a role.
    pub fn config(&self, role: &str) -> PathBuf {
        self.data
            .join("config")
            .join(format!("{}.toml", role.replace('_', "-")))
    }

    fn service_config(&self, service: &str, sockets: &Path, port: u16) -> String {
        let data = self.data.display();
        let address = self.address(service);
        let listen = address.trim_start_matches("http://");
        let mut text = format!(
            "listen = {listen:?}\n\n[database]\nurl = \"postgres://{service}_owner@/{service}?host={}&port={port}\"\n\
             owner_password = \"file://{data}/passwords/{service}_owner\"\n\
             api_password = \"file://{data}/passwords/{service}_api\"\n\
             worker_password = \"file://{data}/passwords/{service}_worker\"\n\n\
             [identity]\ntrust = \"{data}/trust.toml\"\n",
            sockets.display()
        );
        match service {
            "control_plane" => text.push_str(&format!(
                "key = \"{data}/keys/control-plane.pem\"\n\n[services]\nresource_catalog = {:?}\nexecution_plane = {:?}\n\n\
                 [proof]\nkey = \"{data}/keys/proof.pem\"\n",
                self.address("resource_catalog"),
                self.address("execution_plane")
            )),
            "execution_plane" => text.push_str(&format!("key = \"{data}/keys/runners.pem\"\n\n[blobs]\ndirectory = \"{data}/blobs\"\n")),
            _ => {}
        }
        text
    }

    fn runner_config(&self, ansible: Option<&Path>) -> String {
        let data = self.data.display();
        let ansible = ansible
            .map(|path| format!("ansible_directory = \"{}\"\n", path.display()))
            .unwrap_or_default();
        format!(
            "service = {:?}\nname = \"local\"\npools = [\"default\", \"ansible-runner\"]\nenrolment_token = \"file://{data}/runner/enrolment\"\n\
             state_directory = \"{data}/runner/state\"\n{ansible}isolation = [\"sandbox\"]\n\n[secrets]\nage_file = \"{}\"\n",
            self.address("execution_plane"),
            super::secret::file_in(&self.data).display()
        )
    }
}

fn trust_file(keys: &[TrustedKey]) -> String {
    let key = |key: &TrustedKey| {
        let rights: Vec<String> = key
            .vouches_for
            .iter()
            .map(|right| format!("{:?}", right.to_string()))
            .collect();
        format!(
            "[[key]]\npublic_key = \"{}\"\nvouches_for = [{}]\n",
            key.public_key,
            rights.join(", ")
        )
    };
    keys.iter().map(key).collect::<Vec<_>>().join("\n")
}

/// Adds what `file` does not trust yet. What stands there stays: keys may have been added by hand.
fn ensure_trusted(file: &Path, own: &[TrustedKey]) -> Result<(), CliError> {
    let present = if file.exists() {
        crate::config::trusted_keys(file).map_err(|problem| {
            CliError::usage("the file of trusted keys is not usable").fault(file.display().to_string(), problem)
        })?
    } else {
        Vec::new()
    };
    let holds = |wanted: &TrustedKey, right: &Vouch| {
        let same = |key: &&TrustedKey| key.public_key == wanted.public_key;
        present.iter().filter(same).any(|key| key.vouches_for.contains(right))
    };
    let mut missing = own.to_vec();
    missing.retain(|key| !key.vouches_for.iter().all(|right| holds(key, right)));
    if missing.is_empty() {
        return Ok(());
    }
    let mut text = match fs::read_to_string(file) {
        Ok(text) => text.trim_end().to_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error.into()),
    };
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(&trust_file(&missing));
    write(file, &text, 0o644)
}

/// The ports that the context of a data directory names; `None` when it has none yet.
///
/// # Errors
/// When the context names no such ports.
pub fn ports_in(data: &Path) -> Result<Option<[u16; 3]>, CliError> {
    let file = crate::context::file_in(data);
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let unusable = |problem: String| {
        CliError::usage(format!("{} does not say which ports to keep", file.display()))
            .fault("", problem)
            .hint("name the first of three with --port")
    };
    let context: Context = toml::from_str(&text).map_err(|error| unusable(error.to_string().trim().to_owned()))?;
    let mut ports = [0; 3];
    let addresses = [context.resource_catalog, context.control_plane, context.execution_plane];
    for (port, address) in ports.iter_mut().zip(&addresses) {
        let named = address
            .strip_prefix("http://127.0.0.1:")
            .and_then(|port| port.parse().ok());
        *port = named.ok_or_else(|| unusable(format!("{address:?} is not http://127.0.0.1:PORT")))?;
    }
    Ok(Some(ports))
}

/// Replaces a file whole: written aside, then renamed.
fn write(path: &Path, text: &str, mode: u32) -> Result<(), CliError> {
    let aside = path.with_extension("new");
    let _ = fs::remove_file(&aside);
    let written = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&aside)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&aside, path));
    written.map_err(|error| CliError::new(Exit::Internal, format!("{} cannot be written: {error}", path.display())))
}

/// The content of a file, made first when it is missing.
fn keep(path: &Path, make: impl FnOnce() -> String) -> Result<String, CliError> {
    if !path.exists() {
        write(path, &make(), 0o600)?;
    }
    Ok(fs::read_to_string(path)?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_added_by_hand_stay_trusted() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("trust.toml");
        let key = |name: &str| {
            let made = PrivateKey::load_or_generate(&directory.path().join(name)).unwrap();
            made.public_key()
        };
        let own = [TrustedKey::new(key("own.pem"), [Vouch::Issuer])];
        ensure_trusted(&file, &own).unwrap();
        assert_eq!(crate::config::trusted_keys(&file).unwrap(), own);

        let other = TrustedKey::new(key("other.pem"), [Vouch::Issuer]);
        let by_hand = format!("# ours\n{}", trust_file(std::slice::from_ref(&other)));
        write(&file, &by_hand, 0o644).unwrap();
        ensure_trusted(&file, &own).unwrap();
        assert_eq!(crate::config::trusted_keys(&file).unwrap(), [other, own[0].clone()]);
        let once = fs::read_to_string(&file).unwrap();
        assert!(once.starts_with("# ours\n"));
        ensure_trusted(&file, &own).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), once, "nothing is added twice");

        write(&file, "key = 3", 0o644).unwrap();
        assert!(
            ensure_trusted(&file, &own).is_err(),
            "what cannot be read is not replaced"
        );
    }
}
