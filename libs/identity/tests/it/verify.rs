use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::TimeDelta;
use identity::{MintError, Minter, PrivateKey, Role, TrustStore, TrustedKey, VerifyError, Vouch};
use kernel::id::OrganizationId;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{now, party};

/// `token` with its header or claims changed and the signature left as it was.
fn tampered(token: &str, part: usize, change: impl Fn(&mut Value)) -> String {
    let mut parts: Vec<String> = token.split('.').map(str::to_owned).collect();
    let mut value: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(&parts[part]).unwrap()).unwrap();
    change(&mut value);
    parts[part] = URL_SAFE_NO_PAD.encode(value.to_string());
    parts.join(".")
}

#[test]
fn a_token_says_again_what_it_was_made_from() {
    let party = party(&[Vouch::Issuer]);
    let organization = OrganizationId::new_v7();
    let token = party
        .minter
        .mint(
            "person:ada",
            organization,
            [Role::Viewer, Role::Approver],
            TimeDelta::hours(1),
            now(),
        )
        .unwrap();
    let claims = party.trust.verify(token.expose(), now()).unwrap();
    assert_eq!(claims.sub, "person:ada");
    assert_eq!(claims.org, organization);
    assert_eq!(claims.roles, [Role::Viewer, Role::Approver]);
    assert_eq!(claims.exp - claims.iat, TimeDelta::hours(1));
    assert_eq!(Some(claims.exp), token.expires_at());
}

#[test]
fn a_token_is_void_from_the_moment_it_expires_also_when_it_was_believed_before() {
    let party = party(&[Vouch::Issuer]);
    let token = party.token("person:ada", &[Role::Viewer]);
    let end = token.expires_at().unwrap();
    party.trust.verify(token.expose(), end - TimeDelta::seconds(1)).unwrap();
    assert_eq!(party.trust.verify(token.expose(), end), Err(VerifyError::Expired(end)));
    assert_eq!(party.trust.verify(token.expose(), end), Err(VerifyError::Expired(end)));
}

#[test]
fn a_token_from_the_future_is_not_yet_valid() {
    let party = party(&[Vouch::Issuer]);
    let token = party.token("person:ada", &[Role::Viewer]);
    let before = now() - TimeDelta::minutes(2);
    assert_eq!(
        party.trust.verify(token.expose(), before),
        Err(VerifyError::NotYetValid(now()))
    );
    party
        .trust
        .verify(token.expose(), now() - TimeDelta::seconds(59))
        .unwrap();
}

#[test]
fn an_unknown_key_is_named() {
    let stranger = party(&[Vouch::Issuer]);
    let token = stranger.token("person:ada", &[Role::Viewer]);
    let key = stranger.minter.public_key().id();
    let error = party(&[Vouch::Issuer]).trust.verify(token.expose(), now()).unwrap_err();
    assert_eq!(error, VerifyError::UnknownKey(key));
}

#[test]
fn a_changed_claim_breaks_the_signature() {
    let party = party(&[Vouch::Issuer]);
    let token = party.token("person:ada", &[Role::Viewer]);
    let forged = tampered(token.expose(), 1, |claims| claims["roles"] = json!(["admin"]));
    assert_eq!(party.trust.verify(&forged, now()), Err(VerifyError::Signature));
}

#[test]
fn no_algorithm_but_eddsa_is_accepted_whatever_the_header_says() {
    let party = party(&[Vouch::Issuer]);
    let token = party.token("person:ada", &[Role::Viewer]);
    for algorithm in ["none", "HS256", "RS256", "ES256"] {
        let forged = tampered(token.expose(), 0, |header| header["alg"] = json!(algorithm));
        let error = party.trust.verify(&forged, now()).unwrap_err();
        assert_eq!(error, VerifyError::Algorithm(algorithm.to_owned()));
    }
}

#[test]
fn a_token_signed_with_the_public_key_as_a_shared_secret_is_refused() {
    let party = party(&[Vouch::Issuer]);
    let token = party.token("person:ada", &[Role::Admin]);
    let claims: Value = serde_json::from_slice(
        &URL_SAFE_NO_PAD
            .decode(token.expose().split('.').nth(1).unwrap())
            .unwrap(),
    )
    .unwrap();
    let public = URL_SAFE_NO_PAD.decode(party.minter.public_key().to_string()).unwrap();
    let mut header = jsonwebtoken::Header::new(jsonwebtoken::Algorithm::HS256);
    header.kid = Some(party.minter.public_key().id().to_string());
    let key = jsonwebtoken::EncodingKey::from_secret(&public).unwrap();
    let forged = jsonwebtoken::encode(&header, &claims, &key).unwrap();
    assert_eq!(
        party.trust.verify(&forged, now()),
        Err(VerifyError::Algorithm("HS256".into()))
    );
}

#[test]
fn a_token_that_names_no_key_is_told_apart() {
    let party = party(&[Vouch::Issuer]);
    let token = party.token("person:ada", &[Role::Viewer]);
    let forged = tampered(token.expose(), 0, |header| {
        header.as_object_mut().unwrap().remove("kid");
    });
    assert_eq!(party.trust.verify(&forged, now()), Err(VerifyError::NoKeyId));
}

#[test]
fn a_missing_claim_makes_a_token_malformed_even_when_signed_well() {
    let key = PrivateKey::generate();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("key");
    key.save_new(&path).unwrap();
    let pem = std::fs::read_to_string(&path).unwrap();
    let der: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    let der = base64::engine::general_purpose::STANDARD.decode(der).unwrap();
    let mut header = jsonwebtoken::Header::new(jsonwebtoken::Algorithm::EdDSA);
    header.kid = Some(key.public_key().id().to_string());
    let claims = json!({"sub": "person:ada", "exp": now().timestamp() + 60});
    let token = jsonwebtoken::encode(&header, &claims, &jsonwebtoken::EncodingKey::from_ed_der(&der)).unwrap();
    let trust = TrustStore::new([TrustedKey::new(key.public_key(), [Vouch::Issuer])]);
    assert_eq!(trust.verify(&token, now()), Err(VerifyError::Malformed));
}

#[test]
fn a_services_key_vouches_for_that_service_in_the_role_service_and_for_nothing_else() {
    let party = party(&[Vouch::Service("control-plane".into())]);
    let good = party.token("service:control-plane", &[Role::Service]);
    party.trust.verify(good.expose(), now()).unwrap();
    let too_much: [(&str, &[Role]); 4] = [
        ("service:control-plane", &[Role::Service, Role::Admin]),
        ("service:control-plane", &[Role::Operator]),
        ("service:execution-plane", &[Role::Service]),
        ("person:ada", &[Role::Service]),
    ];
    for (subject, roles) in too_much {
        let token = party.token(subject, roles);
        let error = party.trust.verify(token.expose(), now()).unwrap_err();
        assert!(
            matches!(error, VerifyError::BeyondVouch { .. }),
            "{subject} {roles:?}: {error}"
        );
    }
}

#[test]
fn a_key_for_runners_vouches_for_runners_only() {
    let party = party(&[Vouch::Runners]);
    let good = party.token("runner:0190", &[Role::Runner]);
    party.trust.verify(good.expose(), now()).unwrap();
    for (subject, role) in [("runner:0190", Role::Service), ("person:ada", Role::Runner)] {
        let token = party.token(subject, &[role]);
        assert!(matches!(
            party.trust.verify(token.expose(), now()),
            Err(VerifyError::BeyondVouch { .. })
        ));
    }
}

#[test]
fn one_key_may_vouch_for_several_things() {
    let key = PrivateKey::generate();
    let trust = TrustStore::new([
        TrustedKey::new(key.public_key(), [Vouch::Service("execution-plane".into())]),
        TrustedKey::new(key.public_key(), [Vouch::Runners]),
    ]);
    let minter = Minter::new(key, "execution-plane");
    for (subject, role) in [("service:execution-plane", Role::Service), ("runner:1", Role::Runner)] {
        let token = minter
            .mint(subject, OrganizationId::new_v7(), [role], TimeDelta::minutes(1), now())
            .unwrap();
        trust.verify(token.expose(), now()).unwrap();
    }
}

#[test]
fn a_token_without_a_role_or_a_lifetime_is_not_made() {
    let minter = Minter::new(PrivateKey::generate(), "test");
    let organization = OrganizationId::new_v7();
    let none = minter.mint("person:ada", organization, [], TimeDelta::minutes(1), now());
    assert!(matches!(none, Err(MintError::NoRole)));
    for lifetime in [TimeDelta::zero(), TimeDelta::seconds(-1), TimeDelta::MAX] {
        let dead = minter.mint("person:ada", organization, [Role::Viewer], lifetime, now());
        assert!(matches!(dead, Err(MintError::Lifetime)), "{lifetime}");
    }
}

#[test]
fn trust_is_written_down_as_text_and_read_again() {
    let key = PrivateKey::generate().public_key();
    let trusted = TrustedKey::new(
        key,
        [Vouch::Issuer, Vouch::Runners, Vouch::Service("control-plane".into())],
    );
    let text = serde_json::to_string(&trusted).unwrap();
    assert!(
        text.contains("\"issuer\",\"runners\",\"service:control-plane\""),
        "{text}"
    );
    assert_eq!(serde_json::from_str::<TrustedKey>(&text).unwrap(), trusted);
    for bad in ["service:", "service:A", "everyone", ""] {
        assert!(bad.parse::<Vouch>().is_err(), "{bad}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_verifier_fall_over(text in "\\PC{0,60}(\\.\\PC{0,60}){0,3}") {
        prop_assert!(party(&[Vouch::Issuer]).trust.verify(&text, now()).is_err());
    }

    #[test]
    fn no_single_changed_character_leaves_a_token_valid(at in 0_usize..400, to in "[A-Za-z0-9_-]") {
        let party = party(&[Vouch::Issuer]);
        let token = party.token("person:ada", &[Role::Viewer]);
        let mut bytes = token.expose().as_bytes().to_vec();
        let at = at % bytes.len();
        // The last characters of base64 hold bits that decode to nothing.
        let is_padding = at + 1 == bytes.len() || bytes.get(at + 1) == Some(&b'.');
        prop_assume!(bytes[at] != to.as_bytes()[0] && !is_padding);
        bytes[at] = to.as_bytes()[0];
        prop_assert!(party.trust.verify(&String::from_utf8(bytes).unwrap(), now()).is_err());
    }
}
