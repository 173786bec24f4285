//! The file of trusted keys: `[[key]] public_key = "…", vouches_for = ["issuer"]`.

use std::path::Path;

use identity::{TrustStore, TrustedKey};

/// The keys of `file`, in its order.
///
/// # Errors
/// What is wrong with the file.
pub fn trusted_keys(file: &Path) -> Result<Vec<TrustedKey>, String> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        #[serde(default)]
        key: Vec<TrustedKey>,
    }
    let text = std::fs::read_to_string(file).map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
    let file: File = toml::from_str(&text).map_err(|error| error.to_string().trim().to_owned())?;
    Ok(file.key)
}

/// The same as what a service verifies tokens with.
pub(super) fn trust(file: &Path) -> Result<TrustStore, String> {
    let keys = trusted_keys(file)?;
    if keys.is_empty() {
        Err("it trusts no key".to_owned())
    } else {
        Ok(TrustStore::new(keys))
    }
}
