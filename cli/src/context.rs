//! Where the services are and who is asking: a small TOML file that `platform up` writes, and
//! environment variables that override it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::CliError;

/// A client's view of a platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Context {
    pub resource_catalog: String,
    pub control_plane: String,
    pub execution_plane: String,
    /// A file that holds the bearer token; relative to the context file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// Where `platform up` keeps its signing key, for `token mint`; relative to the context file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer_key: Option<PathBuf>,
    /// The organization that `token mint` mints for when none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organization_id: Option<uuid::Uuid>,
}

/// A context with its token at hand.
#[derive(Clone)]
pub struct Session {
    pub context: Context,
    pub token: Option<String>,
    pub source: PathBuf,
}

/// The context file of a data directory.
pub fn file_in(data: &Path) -> PathBuf {
    data.join("context.toml")
}

/// The data directory that `platform up` uses when none is named.
pub fn default_data_dir() -> PathBuf {
    // PostgreSQL does not run as root, and its lesser account cannot enter root's home.
    if rustix::process::geteuid().is_root() {
        return PathBuf::from("/var/lib/platform-core");
    }
    let base = std::env::var_os("XDG_DATA_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/share")))
        .unwrap_or_else(|| PathBuf::from("."));
    base.join("platform-core")
}

impl Session {
    /// Finds the context: `--context`, `PLATFORM_CONTEXT`, then the default data directory; the token:
    /// `PLATFORM_TOKEN`, then the context's token file.
    ///
    /// # Errors
    /// When there is no context, or it cannot be read.
    pub fn find(explicit: Option<&Path>) -> Result<Self, CliError> {
        let source = explicit
            .map(Path::to_owned)
            .or_else(|| std::env::var_os("PLATFORM_CONTEXT").map(PathBuf::from))
            .unwrap_or_else(|| file_in(&default_data_dir()));
        let text = std::fs::read_to_string(&source).map_err(|error| {
            CliError::usage(format!(
                "no platform to talk to: {} cannot be read ({error})",
                source.display()
            ))
            .hint("start one with 'platform up', or name a context file with --context or PLATFORM_CONTEXT")
        })?;
        let context: Context = toml::from_str(&text).map_err(|error| {
            CliError::usage(format!("{} is not a context file", source.display()))
                .fault("", error.to_string().trim().to_owned())
        })?;
        let token = Self::token(&context, &source)?;
        Ok(Self { context, token, source })
    }

    fn token(context: &Context, source: &Path) -> Result<Option<String>, CliError> {
        if let Ok(token) = std::env::var("PLATFORM_TOKEN") {
            return Ok(Some(token.trim().to_owned()));
        }
        let Some(file) = &context.token_file else {
            return Ok(None);
        };
        let path = source.parent().unwrap_or_else(|| Path::new(".")).join(file);
        let text = std::fs::read_to_string(&path).map_err(|error| {
            CliError::usage(format!("the token file {} cannot be read ({error})", path.display()))
                .hint("set PLATFORM_TOKEN, or make a token with 'platform token mint'")
        })?;
        Ok(Some(text.trim().to_owned()))
    }
}
