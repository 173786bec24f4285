use chrono::TimeDelta;
use identity::{
    BearerToken, Minter, PrivateKey, Role, RotatingToken, ServiceTokens, TokenSource as _, TrustStore, TrustedKey,
    Vouch,
};
use kernel::id::OrganizationId;

use crate::now;

#[test]
fn a_service_acts_for_each_organization_by_a_token_of_its_own() {
    let key = PrivateKey::generate();
    let trust = TrustStore::new([TrustedKey::new(
        key.public_key(),
        [Vouch::Service("control-plane".into())],
    )]);
    let tokens = ServiceTokens::new(Minter::new(key, "control-plane"), "control-plane");
    for organization in [OrganizationId::new_v7(), OrganizationId::new_v7()] {
        let token = tokens.token(Some(organization), now()).unwrap();
        let claims = trust.verify(token.expose(), now()).unwrap();
        assert_eq!(claims.org, organization);
        assert_eq!(claims.sub, "service:control-plane");
        assert_eq!(claims.roles, [Role::Service]);
    }
}

#[test]
fn a_token_is_kept_for_half_its_life_and_then_made_anew() {
    let tokens =
        ServiceTokens::new(Minter::new(PrivateKey::generate(), "x"), "x").with_lifetime(TimeDelta::minutes(10));
    let organization = Some(OrganizationId::new_v7());
    let first = tokens.token(organization, now()).unwrap();
    let soon = tokens.token(organization, now() + TimeDelta::seconds(299)).unwrap();
    assert_eq!(first, soon);
    let later = tokens.token(organization, now() + TimeDelta::seconds(301)).unwrap();
    assert_ne!(first, later);
    assert!(later.expires_at() > first.expires_at());
}

#[test]
fn a_token_of_a_time_that_the_clock_went_back_from_is_not_used() {
    let key = PrivateKey::generate();
    let trust = TrustStore::new([TrustedKey::new(key.public_key(), [Vouch::Service("x".into())])]);
    let tokens = ServiceTokens::new(Minter::new(key, "x"), "x");
    let organization = Some(OrganizationId::new_v7());
    tokens.token(organization, now() + TimeDelta::hours(1)).unwrap();
    let token = tokens.token(organization, now()).unwrap();
    trust.verify(token.expose(), now()).unwrap();
}

#[test]
fn without_an_organization_a_service_acts_for_none_that_exists() {
    let key = PrivateKey::generate();
    let trust = TrustStore::new([TrustedKey::new(key.public_key(), [Vouch::Service("x".into())])]);
    let tokens = ServiceTokens::new(Minter::new(key, "x"), "x");
    let token = tokens.token(None, now()).unwrap();
    assert!(trust.verify(token.expose(), now()).unwrap().org.as_uuid().is_nil());
}

#[test]
fn a_given_token_can_be_replaced_and_never_shows() {
    let source = RotatingToken::new(BearerToken::new("canary-one"));
    assert_eq!(source.token(None, now()).unwrap().expose(), "canary-one");
    source.replace(BearerToken::new("canary-two"));
    assert_eq!(source.token(None, now()).unwrap().expose(), "canary-two");
    assert!(!format!("{source:?}").contains("canary"));
}
