//! A plan with its canonical bytes. The bytes are what is stored and digested; they are never
//! re-made from a parsed value.

use kernel::{CanonicalError, Sha256Digest, canonical_bytes};

use crate::Plan;

/// A plan, its canonical bytes and their digest.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanDocument {
    plan: Plan,
    bytes: Vec<u8>,
    digest: Sha256Digest,
}

/// The bytes are not a plan, or the plan has no canonical form.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("the plan has no canonical form: {0}")]
    Canonical(#[from] CanonicalError),
    #[error("the stored bytes are not a plan")]
    Malformed(#[source] serde_json::Error),
    #[error("the stored bytes do not have the digest {expected}")]
    DigestMismatch { expected: Sha256Digest },
}

impl PlanDocument {
    /// Seals a plan.
    ///
    /// # Errors
    /// When a value in it does not survive canonical JSON.
    pub fn seal(plan: Plan) -> Result<Self, PlanError> {
        let bytes = canonical_bytes(&plan)?;
        let digest = Sha256Digest::of(&bytes);
        Ok(Self { plan, bytes, digest })
    }

    /// Reads stored bytes back, checking them against the digest they were stored under.
    ///
    /// # Errors
    /// When the bytes were changed or are not a plan.
    pub fn open(bytes: Vec<u8>, expected: Sha256Digest) -> Result<Self, PlanError> {
        if Sha256Digest::of(&bytes) != expected {
            return Err(PlanError::DigestMismatch { expected });
        }
        let plan = serde_json::from_slice(&bytes).map_err(PlanError::Malformed)?;
        Ok(Self {
            plan,
            bytes,
            digest: expected,
        })
    }

    /// The plan.
    #[must_use]
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The RFC 8785 bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// SHA-256 over the bytes: the plan digest.
    #[must_use]
    pub const fn digest(&self) -> Sha256Digest {
        self.digest
    }
}
