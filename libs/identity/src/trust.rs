//! Whom a verifier believes, and about what.
//!
//! Verified tokens are remembered until they expire (a signature check costs more than the rest of
//! a small request); what is remembered is bounded and keyed by the token's digest.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, errors::ErrorKind};
use kernel::Sha256Digest;
use serde::{Deserialize, Serialize};

use crate::claims::Claims;
use crate::key::{KeyId, PublicKey};
use crate::vouch::Vouch;

/// Longest accepted token, in bytes.
const MAX_TOKEN: usize = 8 * 1024;
/// How far ahead of the verifier's clock a token's `iat` may lie.
const CLOCK_SKEW: TimeDelta = TimeDelta::seconds(60);
const REMEMBERED: usize = 4096;

/// A public key and what it may vouch for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustedKey {
    /// The key.
    pub public_key: PublicKey,
    /// What it may vouch for; any one suffices.
    pub vouches_for: Vec<Vouch>,
}

impl TrustedKey {
    /// Trusts `public_key` for `vouches_for`.
    pub fn new(public_key: PublicKey, vouches_for: impl IntoIterator<Item = Vouch>) -> Self {
        Self {
            public_key,
            vouches_for: vouches_for.into_iter().collect(),
        }
    }
}

/// Why a token is not believed. Each is told apart for the log; none carries the token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// Not a token at all, or a claim is missing or of the wrong form.
    #[error("the token is malformed")]
    Malformed,
    /// The header names another algorithm than EdDSA.
    #[error("the token is signed with {0:?}; only EdDSA is accepted")]
    Algorithm(String),
    /// The header names no key.
    #[error("the token names no key (kid)")]
    NoKeyId,
    /// The key is not trusted here.
    #[error("the token's key {0} is not trusted here")]
    UnknownKey(KeyId),
    /// The signature is not the key's.
    #[error("the token's signature is not valid")]
    Signature,
    /// The time is over.
    #[error("the token expired at {0}")]
    Expired(DateTime<Utc>),
    /// Made in the future.
    #[error("the token is not valid before {0}")]
    NotYetValid(DateTime<Utc>),
    /// The key may not vouch for this subject in these roles.
    #[error("the key {key} may not vouch for {subject:?} in the roles claimed")]
    BeyondVouch {
        /// The key.
        key: KeyId,
        /// The subject claimed.
        subject: String,
    },
}

struct Entry {
    key: TrustedKey,
    decoding: DecodingKey,
}

/// The keys a verifier trusts. Cheap to clone.
#[derive(Clone)]
pub struct TrustStore {
    keys: Arc<BTreeMap<KeyId, Entry>>,
    verified: Arc<Mutex<HashMap<Sha256Digest, Claims>>>,
}

#[derive(Deserialize)]
struct TokenHeader {
    alg: String,
    kid: Option<String>,
}

impl TrustStore {
    /// Trusts exactly `keys`. The same key given twice may vouch for what both entries say.
    pub fn new(keys: impl IntoIterator<Item = TrustedKey>) -> Self {
        let mut store: BTreeMap<KeyId, Entry> = BTreeMap::new();
        for key in keys {
            let entry = store.entry(key.public_key.id()).or_insert_with(|| Entry {
                decoding: key.public_key.decoding_key(),
                key: TrustedKey::new(key.public_key, []),
            });
            entry.key.vouches_for.extend(key.vouches_for);
        }
        Self {
            keys: Arc::new(store),
            verified: Arc::default(),
        }
    }

    /// The trusted keys.
    pub fn keys(&self) -> impl Iterator<Item = &TrustedKey> {
        self.keys.values().map(|entry| &entry.key)
    }

    /// The claims of `token`, if it is to be believed at `now`.
    ///
    /// # Errors
    /// [`VerifyError`], a distinct one for each reason.
    pub fn verify(&self, token: &str, now: DateTime<Utc>) -> Result<Claims, VerifyError> {
        if token.len() > MAX_TOKEN {
            return Err(VerifyError::Malformed);
        }
        let digest = Sha256Digest::of(token.as_bytes());
        let known = self.remembered().get(&digest).cloned();
        let claims = match known {
            Some(claims) => claims,
            None => self.check_signature(token)?,
        };
        if claims.exp <= now {
            self.remembered().remove(&digest);
            return Err(VerifyError::Expired(claims.exp));
        }
        if claims.iat > now + CLOCK_SKEW {
            return Err(VerifyError::NotYetValid(claims.iat));
        }
        self.remember(digest, &claims, now);
        Ok(claims)
    }

    fn check_signature(&self, token: &str) -> Result<Claims, VerifyError> {
        let header = read_header(token)?;
        if header.alg != "EdDSA" {
            return Err(VerifyError::Algorithm(header.alg.chars().take(20).collect()));
        }
        let key_id = KeyId::from_header(&header.kid.ok_or(VerifyError::NoKeyId)?);
        let entry = self
            .keys
            .get(&key_id)
            .ok_or_else(|| VerifyError::UnknownKey(key_id.clone()))?;
        // Times are checked by the caller, against the clock it was given.
        let mut validation = Validation::new(Algorithm::EdDSA);
        validation.validate_exp = false;
        validation.validate_aud = false;
        let claims = jsonwebtoken::decode::<Claims>(token, &entry.decoding, &validation)
            .map_err(|error| match error.kind() {
                ErrorKind::InvalidSignature => VerifyError::Signature,
                _ => VerifyError::Malformed,
            })?
            .claims;
        if entry.key.vouches_for.iter().any(|vouch| vouch.covers(&claims)) {
            Ok(claims)
        } else {
            Err(VerifyError::BeyondVouch {
                key: key_id,
                subject: claims.sub.chars().take(80).collect(),
            })
        }
    }

    fn remember(&self, digest: Sha256Digest, claims: &Claims, now: DateTime<Utc>) {
        let mut verified = self.remembered();
        if verified.len() >= REMEMBERED {
            verified.retain(|_, claims| claims.exp > now);
            if verified.len() >= REMEMBERED {
                verified.clear();
            }
        }
        verified.entry(digest).or_insert_with(|| claims.clone());
    }

    fn remembered(&self) -> std::sync::MutexGuard<'_, HashMap<Sha256Digest, Claims>> {
        // Only a cache: what a panicking thread left in it is still true.
        self.verified.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read_header(token: &str) -> Result<TokenHeader, VerifyError> {
    let mut parts = token.split('.');
    let header = parts.next().unwrap_or_default();
    if parts.count() != 2 {
        return Err(VerifyError::Malformed);
    }
    let bytes = URL_SAFE_NO_PAD.decode(header).map_err(|_| VerifyError::Malformed)?;
    serde_json::from_slice(&bytes).map_err(|_| VerifyError::Malformed)
}

impl core::fmt::Debug for TrustStore {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.keys()).finish()
    }
}
