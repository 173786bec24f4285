//! For every contract: writing and reading gives the same value, and a field from the future is ignored.

use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::strategies;

fn round_trips<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) {
    let mut wire = serde_json::to_value(value).unwrap();
    let text = serde_json::to_string(value).unwrap();
    assert_eq!(&serde_json::from_str::<T>(&text).unwrap(), value);
    wire.as_object_mut()
        .unwrap()
        .insert("a_field_of_a_later_version".into(), json!({"x": [1]}));
    assert_eq!(
        &serde_json::from_value::<T>(wire).unwrap(),
        value,
        "readers ignore what they do not know"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn job_spec(value in strategies::job_spec()) { round_trips(&value); }
    #[test]
    fn execution_result(value in strategies::execution_result()) { round_trips(&value); }
    #[test]
    fn artifact_ref(value in strategies::artifact_ref()) { round_trips(&value); }
    #[test]
    fn evidence_ref(value in strategies::evidence_ref()) { round_trips(&value); }
    #[test]
    fn resource_update_command(value in strategies::resource_update_command()) { round_trips(&value); }
    #[test]
    fn catalog_projection_event(value in strategies::projection_event()) { round_trips(&value); }

    #[test]
    fn the_same_fact_has_the_same_event_id(uid in any::<u128>(), version in 1_i64..1_000_000) {
        use contracts::{CatalogProjectionEvent as Event, ProjectionEventType as Type};
        let uid = uuid::Uuid::from_u128(uid).into();
        prop_assert_eq!(Event::id_of(uid, version, &Type::ResourceUpdated), Event::id_of(uid, version, &Type::ResourceUpdated));
        prop_assert_ne!(Event::id_of(uid, version, &Type::ResourceUpdated), Event::id_of(uid, version + 1, &Type::ResourceUpdated));
        prop_assert_ne!(Event::id_of(uid, version, &Type::ResourceUpdated), Event::id_of(uid, version, &Type::CapabilityProvided));
    }

    #[test]
    fn secret_references_parse_back_and_no_text_panics(mount in "[a-z]{1,8}", path in "[a-z0-9]{1,6}(/[a-z0-9]{1,6}){0,3}", field in proptest::option::of("[a-z_]{1,8}"), noise in ".{0,40}") {
        let text = format!("vault://{mount}/{path}{}", field.map(|f| format!("#{f}")).unwrap_or_default());
        prop_assert_eq!(text.parse::<contracts::SecretRef>().unwrap().to_string(), text);
        let _ = noise.parse::<contracts::SecretRef>();
    }
}

#[test]
fn secret_references_cannot_climb() {
    for bad in [
        "vault://ssh/../x",
        "vault://ssh/",
        "vault:///x",
        "ssh/x",
        "vault://a/b#",
        "vault://a/b c",
        "vault://a/./b",
    ] {
        assert!(bad.parse::<contracts::SecretRef>().is_err(), "{bad}");
    }
}
