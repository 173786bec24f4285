//! Where a client takes its token from: one that was given, or one made for the occasion.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError, RwLock};

use chrono::{DateTime, TimeDelta, Utc};
use kernel::id::OrganizationId;

use crate::mint::{MintError, Minter};
use crate::role::Role;
use crate::token::BearerToken;

/// Gives the token for a request. Implementations answer at once, from memory.
pub trait TokenSource: Send + Sync + core::fmt::Debug {
    /// A token good at `now`, for acting in `organization` where the source can choose it.
    ///
    /// # Errors
    /// [`MintError`] when one has to be made and cannot.
    fn token(&self, organization: Option<OrganizationId>, now: DateTime<Utc>) -> Result<BearerToken, MintError>;
}

/// A token from elsewhere, which may be replaced while it is in use (a runner's is rotated).
#[derive(Debug)]
pub struct RotatingToken(RwLock<BearerToken>);

impl RotatingToken {
    /// Starts with `token`.
    #[must_use]
    pub const fn new(token: BearerToken) -> Self {
        Self(RwLock::new(token))
    }

    /// Uses `token` from now on.
    pub fn replace(&self, token: BearerToken) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = token;
    }
}

impl TokenSource for RotatingToken {
    fn token(&self, _organization: Option<OrganizationId>, _now: DateTime<Utc>) -> Result<BearerToken, MintError> {
        Ok(self.0.read().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

/// A service's own tokens: short-lived, one for each organization it acts for, made when needed and
/// kept until half their life is over.
#[derive(Debug)]
pub struct ServiceTokens {
    minter: Minter,
    subject: String,
    lifetime: TimeDelta,
    made: Mutex<HashMap<OrganizationId, BearerToken>>,
}

/// How many organizations' tokens are kept before the expired ones are dropped.
const KEPT: usize = 1024;

impl ServiceTokens {
    /// How long a token lives unless said otherwise.
    pub const LIFETIME: TimeDelta = TimeDelta::minutes(5);

    /// Tokens of `service:<name>` made by `minter`.
    #[must_use]
    pub fn new(minter: Minter, name: &str) -> Self {
        Self {
            minter,
            subject: format!("service:{name}"),
            lifetime: Self::LIFETIME,
            made: Mutex::default(),
        }
    }

    /// The same with another lifetime.
    #[must_use]
    pub const fn with_lifetime(mut self, lifetime: TimeDelta) -> Self {
        self.lifetime = lifetime;
        self
    }

    /// One that has more life left than it was given was made before the clock went back: to those who
    /// verify it, it is not valid yet.
    fn still_fresh(&self, token: &BearerToken, now: DateTime<Utc>) -> bool {
        token.expires_at().is_some_and(|expires_at| {
            let left = expires_at - now;
            left > self.lifetime / 2 && left <= self.lifetime
        })
    }
}

impl TokenSource for ServiceTokens {
    /// The organization is needed; without one the nil organization is named, which owns nothing.
    fn token(&self, organization: Option<OrganizationId>, now: DateTime<Utc>) -> Result<BearerToken, MintError> {
        let organization = organization.unwrap_or(OrganizationId(uuid::Uuid::nil()));
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(token) = made.get(&organization).filter(|token| self.still_fresh(token, now)) {
            return Ok(token.clone());
        }
        if made.len() >= KEPT {
            made.retain(|_, token| self.still_fresh(token, now));
        }
        let token = self
            .minter
            .mint(&self.subject, organization, [Role::Service], self.lifetime, now)?;
        made.insert(organization, token.clone());
        Ok(token)
    }
}
