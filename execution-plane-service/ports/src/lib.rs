//! What execution-plane and its runners need from the outside, as traits: secrets, isolation and
//! blobs. Each has an embedded twin and a production part behind it, and both pass the suites of
//! `conformance`.

pub mod blob;
#[cfg(feature = "conformance")]
pub mod blob_conformance;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod isolation;
pub mod secret_store;

pub use blob::{BlobBody, BlobError, BlobKey, BlobRead, BlobStore, StoredBlob};
pub use isolation::{
    Ended, FileContent, GradeReport, Isolation, IsolationError, JobFile, Limits, Mount, Network, Running,
    SandboxCommand,
};
pub use secret_store::{SecretError, SecretStore, SecretValue};
