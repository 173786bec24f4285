//! Changing or making anew: nothing gets past the key.

use std::sync::LazyLock;

use control_plane_proof::{Fault, Proof, Record, Signer, export, verify};
use kernel::{canonical_bytes, canonical_digest};
use proptest::prelude::*;

use crate::rows::{Key, plans, rows};

static PROOF: LazyLock<Vec<u8>> = LazyLock::new(|| export(&rows(), &plans(), &Key::new(1)).unwrap());

fn proof() -> Vec<u8> {
    PROOF.clone()
}

fn checked(document: &[u8]) -> Result<(), Fault> {
    verify(document, &Key::new(1).public_key()).map(|_| ())
}

#[test]
fn every_changed_byte_of_any_link_is_found() {
    let document = proof();
    for place in 0..document.len() {
        let mut changed = document.clone();
        changed[place] ^= 1;
        assert!(checked(&changed).is_err(), "byte {place} of {}", document.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bytes_that_are_changed_added_or_cut_are_found(
        place in any::<proptest::sample::Index>(), mask in 1_u8.., cut in any::<bool>(), extra in any::<u8>(),
    ) {
        let document = proof();
        let mut changed = document.clone();
        let at = place.index(document.len());
        changed[at] ^= mask;
        prop_assert!(checked(&changed).is_err());
        let mut resized = document;
        if cut { resized.truncate(at) } else { resized.insert(at, extra) }
        prop_assert!(checked(&resized).is_err());
    }

    #[test]
    fn no_input_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(checked(&bytes).is_err());
    }
}

#[test]
fn the_same_proof_written_in_another_way_is_not_the_proof() {
    let value: serde_json::Value = serde_json::from_slice(&proof()).unwrap();
    let pretty = serde_json::to_vec_pretty(&value).unwrap();
    assert_eq!(checked(&pretty), Err(Fault::NotCanonical));
    assert_eq!(checked(&canonical_bytes(&value).unwrap()), Ok(()));
}

/// Changes a record and makes the whole chain anew around it, as somebody without the key would.
fn forge(edit: impl Fn(&mut Record), signer: &Key) -> Vec<u8> {
    let mut proof: Proof = serde_json::from_slice(&proof()).unwrap();
    let old = proof.root.records.clone();
    for (ix, old) in old.iter().enumerate() {
        edit(&mut proof.records[ix]);
        let new = canonical_digest(&proof.records[ix]).unwrap();
        let text = serde_json::to_string(&proof)
            .unwrap()
            .replace(&old.to_hex(), &new.to_hex());
        proof = serde_json::from_str(&text).unwrap();
    }
    for (named, record) in proof.root.records.iter_mut().zip(&proof.records) {
        *named = canonical_digest(record).unwrap();
    }
    let root = canonical_bytes(&proof.root).unwrap();
    let message = [b"platform-core proof root v1\n".as_slice(), &root].concat();
    proof.signature.value = hex::encode(signer.sign(&message));
    proof.signature.public_key = hex::encode(signer.public_key());
    canonical_bytes(&proof).unwrap()
}

fn other_approver(record: &mut Record) {
    if let Record::Approval(approval) = record {
        approval.decided_by = "mallory".into();
    }
}

#[test]
fn a_chain_that_was_computed_anew_without_the_key_is_refused() {
    let forged = forge(other_approver, &Key::new(2));
    assert_eq!(checked(&forged), Err(Fault::Signature));
    let mut claims: Proof = serde_json::from_slice(&forged).unwrap();
    claims.signature.public_key = hex::encode(Key::new(1).public_key());
    assert_eq!(checked(&canonical_bytes(&claims).unwrap()), Err(Fault::Signature));
    assert!(
        verify(&forged, &Key::new(2).public_key()).is_ok(),
        "it is a whole chain, of somebody else"
    );
}

#[test]
fn even_with_the_key_an_untrue_chain_is_refused() {
    let bad_plan = forge(
        |record| {
            if let Record::Plan(plan) = record {
                plan.document = plan.document.replace("demo", "prod");
            }
        },
        &Key::new(1),
    );
    assert!(
        matches!(checked(&bad_plan), Err(Fault::Untrue { .. })),
        "{:?}",
        checked(&bad_plan)
    );
    let other_pack = forge(
        |record| {
            if let Record::Pack(pack) = record {
                pack.version = "9.9.9".into();
            }
        },
        &Key::new(1),
    );
    assert!(matches!(checked(&other_pack), Err(Fault::Untrue { .. })));
    let own_approval = forge(
        |record| {
            if let Record::Approval(approval) = record {
                approval.decided_by = "rita".into();
            }
        },
        &Key::new(1),
    );
    assert!(matches!(checked(&own_approval), Err(Fault::Untrue { .. })));
    let other_opener = forge(
        |record| {
            if let Record::Run(run) = record {
                run.opened_by = "anna".into();
            }
        },
        &Key::new(1),
    );
    assert!(matches!(checked(&other_opener), Err(Fault::Untrue { .. })));
    let no_approval = forge(
        |record| {
            if let Record::Attempt(attempt) = record {
                attempt.approvals.clear();
            }
        },
        &Key::new(1),
    );
    assert!(matches!(checked(&no_approval), Err(Fault::Untrue { .. })));
    let no_evidence = forge(
        |record| {
            if let Record::Update(update) = record {
                update.evidence.clear();
            }
        },
        &Key::new(1),
    );
    assert!(matches!(checked(&no_evidence), Err(Fault::Untrue { .. })));
    let wild_link = forge(
        |record| {
            if let Record::Update(update) = record {
                update.evidence = vec![kernel::Sha256Digest::of(b"nowhere")];
            }
        },
        &Key::new(1),
    );
    assert!(matches!(checked(&wild_link), Err(Fault::BrokenLink { .. })));
}

#[test]
fn a_record_that_was_left_out_or_changed_is_named() {
    let mut proof: Proof = serde_json::from_slice(&proof()).unwrap();
    let records = proof.records.len();
    let last = proof.records.pop().unwrap();
    let missing = canonical_bytes(&proof).unwrap();
    assert_eq!(
        checked(&missing),
        Err(Fault::RecordCount {
            named: records,
            found: records - 1
        })
    );
    proof.records.push(last);
    other_approver(&mut proof.records[3]);
    assert_eq!(
        checked(&canonical_bytes(&proof).unwrap()),
        Err(Fault::RecordChanged { record: 3 })
    );
}
