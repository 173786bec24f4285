//! The age-encrypted store against the suite of its port, and what is its own: key mode, atomicity.

use std::os::unix::fs::PermissionsExt;

use async_trait::async_trait;
use chrono::{TimeDelta, Utc};
use execution_plane_ports::conformance::{self, SecretFixture};
use execution_plane_ports::{SecretError, SecretStore};
use secrets_age::{AgeSecretStore, AgeStoreError};

struct Fixture {
    store: AgeSecretStore,
}

#[async_trait]
impl SecretFixture for Fixture {
    fn store(&self) -> &dyn SecretStore {
        &self.store
    }

    async fn put(&self, mount: &str, path: &str, field: &str, value: &[u8], expired: bool) {
        let end = expired.then(|| Utc::now() - TimeDelta::seconds(1));
        self.store.put(&format!("{mount}/{path}"), field, value, end).unwrap();
    }

    async fn seal(&self) {
        std::fs::remove_file(self.store.file().with_extension("age.key")).unwrap();
    }
}

#[tokio::test]
async fn the_store_passes_the_suite_of_its_port() {
    let directory = tempfile::tempdir().unwrap();
    let store = AgeSecretStore::init(&directory.path().join("secrets.age")).unwrap();
    conformance::secret_store(&Fixture { store }).await;
}

#[tokio::test]
async fn a_key_that_others_can_read_does_not_open_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let store = AgeSecretStore::init(&directory.path().join("secrets.age")).unwrap();
    let key = directory.path().join("secrets.age.key");
    assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o644)).unwrap();
    assert!(matches!(
        store.list(),
        Err(AgeStoreError::KeyExposed { mode: 0o644, .. })
    ));
    let error = store.resolve(&"vault://a/b".parse().unwrap()).await.unwrap_err();
    assert!(
        matches!(&error, SecretError::Sealed { remedy } if remedy.contains("chmod 600")),
        "{error}"
    );
}

#[test]
fn neither_file_is_ever_overwritten_by_init() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("secrets.age");
    AgeSecretStore::init(&file).unwrap();
    assert!(matches!(AgeSecretStore::init(&file), Err(AgeStoreError::Exists { .. })));
    std::fs::remove_file(&file).unwrap();
    assert!(
        matches!(AgeSecretStore::init(&file), Err(AgeStoreError::Exists { .. })),
        "the key is kept"
    );
}

#[test]
fn a_value_is_found_in_neither_file_nor_listing() {
    let directory = tempfile::tempdir().unwrap();
    let store = AgeSecretStore::open_or_init(&directory.path().join("secrets.age")).unwrap();
    store.put("app/db", "password", b"canary-value-123", None).unwrap();
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("canary"));
    }
    let listing = store.list().unwrap();
    assert_eq!(
        (listing[0].location.as_str(), &listing[0].fields),
        ("app/db", &vec!["password".to_owned()])
    );
    assert!(store.remove("app/db").unwrap());
    assert!(!store.remove("app/db").unwrap());
    assert!(matches!(
        store.put("nopath", "value", b"x", None),
        Err(AgeStoreError::Location(_))
    ));
}

#[test]
fn writers_at_the_same_time_lose_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let store = AgeSecretStore::init(&directory.path().join("secrets.age")).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let store = &store;
            scope.spawn(move || store.put(&format!("m/w{writer}"), "value", b"v", None).unwrap());
        }
    });
    assert_eq!(store.list().unwrap().len(), 8);
}

#[tokio::test]
async fn a_file_that_was_tampered_with_is_not_opened() {
    let directory = tempfile::tempdir().unwrap();
    let store = AgeSecretStore::init(&directory.path().join("secrets.age")).unwrap();
    let mut bytes = std::fs::read(store.file()).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(store.file(), bytes).unwrap();
    assert!(matches!(store.list(), Err(AgeStoreError::NotOpened { .. })));
}
