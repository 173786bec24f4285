//! What the encrypted file holds: secrets by `MOUNT/PATH`, each with fields and an optional end.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use contracts::SecretRef;
use execution_plane_ports::SecretValue;
use serde::{Deserialize, Serialize};
use zeroize::Zeroize;

/// One secret as a listing shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SecretListing {
    /// `MOUNT/PATH`.
    pub location: String,
    pub fields: Vec<String>,
    pub expires_at: Option<DateTime<Utc>>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Document {
    version: u32,
    secrets: BTreeMap<String, Secret>,
}

#[derive(Serialize, Deserialize, Default)]
struct Secret {
    /// Base64, so that any bytes survive.
    fields: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<DateTime<Utc>>,
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.fields.values_mut().for_each(Zeroize::zeroize);
    }
}

impl Default for Document {
    fn default() -> Self {
        Self {
            version: 1,
            secrets: BTreeMap::new(),
        }
    }
}

pub(crate) enum Lookup {
    Found(SecretValue),
    NoPath,
    NoField,
    Expired,
}

fn location(reference: &SecretRef) -> String {
    format!("{}/{}", reference.mount, reference.path)
}

impl Document {
    pub(crate) fn put(&mut self, reference: &SecretRef, value: &[u8], expires_at: Option<DateTime<Utc>>) {
        let secret = self.secrets.entry(location(reference)).or_default();
        if let Some(mut old) = secret
            .fields
            .insert(reference.field().to_owned(), STANDARD.encode(value))
        {
            old.zeroize();
        }
        secret.expires_at = expires_at;
    }

    pub(crate) fn remove(&mut self, reference: &SecretRef) -> bool {
        self.secrets.remove(&location(reference)).is_some()
    }

    pub(crate) fn list(&self) -> Vec<SecretListing> {
        let listing = |(location, secret): (&String, &Secret)| SecretListing {
            location: location.clone(),
            fields: secret.fields.keys().cloned().collect(),
            expires_at: secret.expires_at,
        };
        self.secrets.iter().map(listing).collect()
    }

    pub(crate) fn look_up(&self, reference: &SecretRef, now: DateTime<Utc>) -> Lookup {
        let Some(secret) = self.secrets.get(&location(reference)) else {
            return Lookup::NoPath;
        };
        if secret.expires_at.is_some_and(|end| end <= now) {
            return Lookup::Expired;
        }
        secret
            .fields
            .get(reference.field())
            .and_then(|text| STANDARD.decode(text).ok())
            .map_or(Lookup::NoField, |bytes| Lookup::Found(SecretValue::new(bytes)))
    }
}
