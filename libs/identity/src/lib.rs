//! Who is calling, shown by signed tokens.
//!
//! Every request between the parts of the platform, embedded or distributed, carries a JSON Web
//! Token signed with Ed25519. This crate makes and checks them; it knows nothing of HTTP.
//!
//! Invariants:
//! - A token is believed only when its key is in the [`TrustStore`] *and* that key may vouch for
//!   the subject and every role claimed ([`Vouch`]). A service's key can never make an admin.
//! - Only EdDSA is accepted, whatever a token's header says.
//! - No private key and no whole token appears in `Debug` output or in an error.
//!
//! ```
//! use identity::{Claims, Minter, PrivateKey, Role, TrustStore, TrustedKey, Vouch};
//! use chrono::{TimeDelta, Utc};
//!
//! let key = PrivateKey::generate();
//! let trust = TrustStore::new([TrustedKey::new(key.public_key(), [Vouch::Issuer])]);
//! let organization = kernel::id::OrganizationId::new_v7();
//! let minter = Minter::new(key, "local");
//! let token = minter.mint("person:ada", organization, [Role::Operator], TimeDelta::hours(1), Utc::now())?;
//! let claims: Claims = trust.verify(token.expose(), Utc::now())?;
//! assert!(claims.has_role(Role::Operator));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod claims;
mod key;
mod mint;
mod role;
mod source;
mod token;
mod trust;
mod vouch;

pub use claims::Claims;
pub use key::{KeyError, KeyId, PrivateKey, PublicKey, Signature};
pub use mint::{MintError, Minter};
pub use role::{Role, RoleError};
pub use source::{RotatingToken, ServiceTokens, TokenSource};
pub use token::BearerToken;
pub use trust::{TrustStore, TrustedKey, VerifyError};
pub use vouch::{Vouch, VouchError};
