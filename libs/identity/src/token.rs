//! A token as text, kept out of logs.

use core::fmt;
use std::sync::Arc;

use chrono::{DateTime, Utc};

/// A signed token. `Debug` shows only when it expires; the text is had by [`BearerToken::expose`].
#[derive(Clone, PartialEq, Eq)]
pub struct BearerToken {
    text: Arc<str>,
    expires_at: Option<DateTime<Utc>>,
}

impl BearerToken {
    /// Wraps a token from elsewhere, whose expiry is not known here.
    #[must_use]
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self {
            text: text.into(),
            expires_at: None,
        }
    }

    pub(crate) fn minted(text: String, expires_at: DateTime<Utc>) -> Self {
        Self {
            text: text.into(),
            expires_at: Some(expires_at),
        }
    }

    /// The text, for an `Authorization` header and nothing else.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// When it ends, if known.
    #[must_use]
    pub const fn expires_at(&self) -> Option<DateTime<Utc>> {
        self.expires_at
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BearerToken")
            .field("text", &"[redacted]")
            .field("expires_at", &self.expires_at)
            .finish()
    }
}
