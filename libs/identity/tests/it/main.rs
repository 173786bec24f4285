//! What a verifier believes, and what it does not.

mod key_file;
mod source;
mod verify;

use chrono::{DateTime, TimeDelta, Utc};
use identity::{BearerToken, Minter, PrivateKey, Role, TrustStore, TrustedKey, Vouch};
use kernel::id::OrganizationId;

/// A key, what it may vouch for, and a verifier that trusts it.
struct Party {
    minter: Minter,
    trust: TrustStore,
}

fn party(vouches_for: &[Vouch]) -> Party {
    let key = PrivateKey::generate();
    Party {
        trust: TrustStore::new([TrustedKey::new(key.public_key(), vouches_for.to_vec())]),
        minter: Minter::new(key, "test"),
    }
}

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_900_000_000, 0).unwrap()
}

impl Party {
    fn token(&self, subject: &str, roles: &[Role]) -> BearerToken {
        let organization = OrganizationId::new_v7();
        self.minter
            .mint(subject, organization, roles.to_vec(), TimeDelta::minutes(5), now())
            .unwrap()
    }
}
