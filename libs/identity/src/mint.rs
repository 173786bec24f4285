//! Making tokens.

use chrono::{DateTime, SubsecRound as _, TimeDelta, Utc};
use jsonwebtoken::{Algorithm, Header};
use kernel::id::OrganizationId;
use uuid::Uuid;

use crate::claims::Claims;
use crate::key::{KeyError, PrivateKey};
use crate::role::Role;
use crate::token::BearerToken;

/// Why no token could be made.
#[derive(Debug, thiserror::Error)]
pub enum MintError {
    /// The lifetime is zero, negative, or beyond what time can hold.
    #[error("a token must live for a positive, bounded time")]
    Lifetime,
    /// A token without any role would be good for nothing.
    #[error("a token needs at least one role")]
    NoRole,
    /// The key cannot be used.
    #[error("the signing key cannot be used")]
    Key(#[source] KeyError),
    /// Signing failed.
    #[error("the token could not be signed")]
    Sign(#[source] jsonwebtoken::errors::Error),
}

/// Makes tokens with one key.
#[derive(Debug, Clone)]
pub struct Minter {
    key: PrivateKey,
    issuer: String,
}

impl Minter {
    /// A minter that signs with `key` and calls itself `issuer`.
    #[must_use]
    pub fn new(key: PrivateKey, issuer: impl Into<String>) -> Self {
        Self {
            key,
            issuer: issuer.into(),
        }
    }

    /// A token for `subject` in `organization`, good from `now` for `lifetime`.
    ///
    /// # Errors
    /// [`MintError`].
    pub fn mint(
        &self,
        subject: &str,
        organization: OrganizationId,
        roles: impl IntoIterator<Item = Role>,
        lifetime: TimeDelta,
        now: DateTime<Utc>,
    ) -> Result<BearerToken, MintError> {
        let iat = now.trunc_subsecs(0);
        let exp = iat.checked_add_signed(lifetime).filter(|exp| *exp > iat);
        let claims = Claims {
            sub: subject.to_owned(),
            org: organization,
            roles: roles.into_iter().collect(),
            iat,
            exp: exp.ok_or(MintError::Lifetime)?.trunc_subsecs(0),
            iss: self.issuer.clone(),
            jti: Uuid::now_v7(),
        };
        if claims.roles.is_empty() {
            return Err(MintError::NoRole);
        }
        self.sign(&claims)
    }

    /// Signs `claims` as they are.
    ///
    /// # Errors
    /// [`MintError::Key`] or [`MintError::Sign`].
    pub fn sign(&self, claims: &Claims) -> Result<BearerToken, MintError> {
        let mut header = Header::new(Algorithm::EdDSA);
        header.kid = Some(self.key.public_key().id().to_string());
        let key = self.key.encoding_key().map_err(MintError::Key)?;
        let text = jsonwebtoken::encode(&header, claims, &key).map_err(MintError::Sign)?;
        Ok(BearerToken::minted(text, claims.exp))
    }

    /// The key's public half, to be trusted by verifiers.
    #[must_use]
    pub fn public_key(&self) -> crate::PublicKey {
        self.key.public_key()
    }
}
