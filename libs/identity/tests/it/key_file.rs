use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use identity::{KeyError, PrivateKey, PublicKey, Signature};

#[test]
fn a_key_file_is_readable_by_its_owner_only_and_gives_the_same_key_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("key.pem");
    let key = PrivateKey::generate();
    key.save_new(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(PrivateKey::load(&path).unwrap().public_key(), key.public_key());
    assert_eq!(
        fs::read_dir(directory.path()).unwrap().count(),
        1,
        "nothing is left aside"
    );
}

#[test]
fn an_existing_key_is_never_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("key.pem");
    let first = PrivateKey::load_or_generate(&path).unwrap();
    assert!(PrivateKey::generate().save_new(&path).is_err());
    assert_eq!(
        PrivateKey::load_or_generate(&path).unwrap().public_key(),
        first.public_key()
    );
}

#[test]
fn many_who_start_at_once_end_with_the_same_key() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("key.pem");
    let keys: Vec<PublicKey> = std::thread::scope(|scope| {
        let starting: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| PrivateKey::load_or_generate(&path).unwrap().public_key()))
            .collect();
        starting.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(keys.iter().all(|key| *key == keys[0]));
}

#[test]
fn a_key_that_others_can_read_is_refused_with_its_mode() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("key.pem");
    PrivateKey::generate().save_new(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(matches!(
        PrivateKey::load(&path),
        Err(KeyError::LoosePermissions { mode: 0o640, .. })
    ));
}

#[test]
fn what_is_no_key_is_refused_without_being_quoted() {
    let error = PrivateKey::from_pem("-----BEGIN PRIVATE KEY-----\ncanary\n-----END PRIVATE KEY-----").unwrap_err();
    assert!(!format!("{error} {error:?}").contains("canary"));
    for bad in ["", "AAAA", "not base64!"] {
        assert!(bad.parse::<PublicKey>().is_err(), "{bad}");
        assert!(bad.parse::<Signature>().is_err(), "{bad}");
    }
}

#[test]
fn a_signature_holds_for_its_key_and_message_only_and_survives_text() {
    let key = PrivateKey::generate();
    let signature: Signature = key.sign(b"root").to_string().parse().unwrap();
    let public: PublicKey = key.public_key().to_string().parse().unwrap();
    assert!(public.verify(b"root", &signature));
    assert!(!public.verify(b"r00t", &signature));
    assert!(!PrivateKey::generate().public_key().verify(b"root", &signature));
}

#[test]
fn no_private_key_shows_in_debug_output() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("key.pem");
    let key = PrivateKey::generate();
    key.save_new(&path).unwrap();
    let pem = fs::read_to_string(&path).unwrap();
    let secret = pem.lines().nth(1).unwrap();
    let shown = format!("{key:?} {:?}", identity::Minter::new(key.clone(), "test"));
    assert!(!shown.contains(secret));
    assert!(shown.contains(key.public_key().id().as_str()));
}
