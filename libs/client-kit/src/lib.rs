//! The client side of every API of the platform: one way to send, authenticate, retry and read errors.
//!
//! Invariants:
//! - An answered error is told apart from a call that got no answer: [`ClientError::Problem`] is the
//!   service's own word, [`ClientError::Unreachable`] says nothing about what the service did.
//! - Only calls that got no answer are repeated, and only when repeating is harmless: GET, PUT and
//!   DELETE, and what its caller marks [`Call::repeatable`] because it carries an id of its own.
//! - Each request carries a token for the organization it acts for. Tokens show in no error.
//!
//! ```no_run
//! # async fn example(tokens: std::sync::Arc<dyn identity::TokenSource>) -> Result<(), client_kit::ClientError> {
//! let catalog = client_kit::Client::new("http://127.0.0.1:7301", Some(tokens))?;
//! let resource: serde_json::Value = catalog.get("/v1/resources/node/web-1").json().await?;
//! # Ok(()) }
//! ```

mod answer;
mod call;
mod client;
mod error;
mod events;
mod retry;

pub use answer::Answer;
pub use call::Call;
pub use client::{Client, segment};
pub use error::ClientError;
pub use events::ServerEvent;
pub use problem::{FieldError, Problem};
pub use retry::Retries;
