//! The kinds of problem that every service shares. A service adds kinds of its own with
//! [`Problem::new`].

use crate::{FieldError, Problem};

impl Problem {
    /// 404 `not_found`: `what` names the kind of thing, like "resource node/web-1". Used alike for
    /// what does not exist and for what another organization owns.
    pub fn not_found(what: impl core::fmt::Display) -> Self {
        Self::new(404, "not_found", "Not found").detail(format!("There is no {what}."))
    }

    /// 401: `code` is `token_missing`, `token_invalid` or `token_expired`.
    pub fn unauthenticated(code: &str, detail: impl Into<String>) -> Self {
        Self::new(401, code, "Authentication needed")
            .detail(detail)
            .remedy("Send `Authorization: Bearer <token>` with a valid token.")
    }

    /// 403 `forbidden`.
    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(403, "forbidden", "Not allowed").detail(detail)
    }

    /// 409 with a `code` of the service's own.
    pub fn conflict(code: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(409, code, "Conflict").detail(detail)
    }

    /// 412 `version_mismatch`, with the member `current_version`.
    pub fn version_mismatch(what: impl core::fmt::Display, current_version: i64) -> Self {
        Self::new(412, "version_mismatch", "The version has moved")
            .detail(format!("{what} is at version {current_version}."))
            .remedy("Read it again and decide on the current version.")
            .with("current_version", current_version)
    }

    /// 422 `validation_failed`, with each fault by its place.
    pub fn invalid(errors: impl IntoIterator<Item = FieldError>) -> Self {
        Self::new(422, "validation_failed", "The request is not valid").errors(errors)
    }

    /// 422 `idempotency_key_reused`: the key came before with another request.
    #[must_use]
    pub fn idempotency_key_reused() -> Self {
        Self::new(422, "idempotency_key_reused", "The Idempotency-Key was used before")
            .detail("The same Idempotency-Key came before with another request.")
            .remedy("Use a new key for a new request; repeat a request byte for byte to have its first outcome.")
    }

    /// 503 `unavailable`, to be tried again after a second.
    pub fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(503, "unavailable", "Not available at the moment")
            .detail(detail)
            .retry_after(1)
    }

    /// 503 `storage_full`: nothing can be written, and reading goes on. To be tried again later.
    #[must_use]
    pub fn storage_full() -> Self {
        Self::new(503, "storage_full", "No space left")
            .detail("The service's database has no disk space left, so nothing was written.")
            .remedy("Make room where the database keeps its data; then the same request goes through.")
            .retry_after(5)
    }

    /// 503 `overloaded`: nothing was done.
    #[must_use]
    pub fn overloaded() -> Self {
        Self::new(503, "overloaded", "Too much at once")
            .detail("As many requests as the service works on at once are under way; this one was not begun.")
            .remedy("Ask again after the time given, and with fewer requests at once.")
            .retry_after(1)
    }

    /// 500 `internal`. Says nothing of the cause, which belongs in the log.
    #[must_use]
    pub fn internal() -> Self {
        Self::new(500, "internal", "Something went wrong here")
            .detail("The request could not be served; the cause is in the service's log under the request id.")
    }
}
