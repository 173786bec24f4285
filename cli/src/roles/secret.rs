//! Secrets of the embedded store: put in from a file or standard input, listed by reference only.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use contracts::SecretRef;
use secrecy::{ExposeSecret as _, SecretString};
use secrets_age::{AgeSecretStore, AgeStoreError};

use crate::args::SecretCommand;
use crate::context::default_data_dir;
use crate::error::CliError;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::render::Table;

/// The embedded store's file in a data directory.
pub fn file_in(data: &Path) -> PathBuf {
    data.join("secrets.age")
}

pub fn run(what: &SecretCommand, printer: Printer) -> Result<Exit, CliError> {
    match what {
        SecretCommand::Put { secret_ref, from, data } => {
            let reference: SecretRef = secret_ref
                .parse()
                .map_err(|error: contracts::SecretRefError| CliError::usage(error.to_string()))?;
            let value = read(from.as_deref())?;
            let store = AgeSecretStore::open_or_init(&file(data.as_ref())).map_err(refused)?;
            store
                .put(
                    &format!("{}/{}", reference.mount, reference.path),
                    reference.field(),
                    value.expose_secret().as_bytes(),
                    None,
                )
                .map_err(refused)?;
            printer.value(&serde_json::json!({"stored": reference}), || {
                format!("stored {reference}")
            });
        }
        SecretCommand::List { data } => {
            let store = AgeSecretStore::open_or_init(&file(data.as_ref())).map_err(refused)?;
            let listing = store.list().map_err(refused)?;
            let plain: Vec<_> = listing
                .iter()
                .map(|s| serde_json::json!({"location": s.location, "fields": s.fields, "expires_at": s.expires_at}))
                .collect();
            printer.list(&plain, "secrets", || {
                let mut table = Table::new(&["secret", "fields"]);
                for secret in &listing {
                    table.row([secret.location.clone(), secret.fields.join(" ")]);
                }
                table
            });
        }
    }
    Ok(Exit::Success)
}

fn file(data: Option<&PathBuf>) -> PathBuf {
    file_in(&data.cloned().unwrap_or_else(default_data_dir))
}

fn refused(error: AgeStoreError) -> CliError {
    CliError::new(Exit::Refused, error.to_string())
}

/// The whole of a file or of standard input; one line break at the end of a single line is not part of a value.
fn read(from: Option<&Path>) -> Result<SecretString, CliError> {
    let mut text = String::new();
    match from {
        Some(path) => {
            text = std::fs::read_to_string(path)
                .map_err(|error| CliError::usage(format!("{} cannot be read: {error}", path.display())))?;
        }
        None => {
            std::io::stdin().read_to_string(&mut text)?;
        }
    }
    if text.matches('\n').count() == 1 && text.ends_with('\n') {
        text.pop();
    }
    if text.is_empty() {
        return Err(
            CliError::usage("an empty value is no secret").hint("pipe the value in, or name a file with --from")
        );
    }
    Ok(SecretString::from(text))
}
