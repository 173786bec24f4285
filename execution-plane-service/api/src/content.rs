//! Contents: the digest-pinned bundles that jobs run from, by (organization, sha256).

use kernel::Sha256Digest;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `PUT /v1/contents/{sha256}`: the body is the bundle's bytes; they are verified against the path.
/// 201 when it is new, 200 when the organization had it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ContentStored {
    pub sha256: Sha256Digest,
    pub size_bytes: u64,
}
