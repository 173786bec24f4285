//! The directory store passes the suite of its port, and survives what only a directory suffers.

use std::sync::Arc;

use blobs_directory::DirectoryBlobs;
use bytes::Bytes;
use execution_plane_ports::{BlobBody, BlobStore};
use futures::{StreamExt, TryStreamExt, stream};
use kernel::id::OrganizationId;

fn body(bytes: &'static [u8]) -> BlobBody {
    stream::iter([Ok(Bytes::from_static(bytes))]).boxed()
}

#[tokio::test]
async fn the_directory_store_conforms() {
    let directory = tempfile::tempdir().unwrap();
    let store = DirectoryBlobs::open(directory.path().join("blobs")).await.unwrap();
    execution_plane_ports::blob_conformance::blob_store(Arc::new(store)).await;
    let left = std::fs::read_dir(directory.path().join("blobs/incoming")).unwrap();
    assert_eq!(left.count(), 0, "nothing half written stays");
}

#[tokio::test]
async fn what_a_crash_left_half_written_is_removed_and_what_was_stored_stays() {
    let directory = tempfile::tempdir().unwrap();
    let store = DirectoryBlobs::open(directory.path()).await.unwrap();
    let organization = OrganizationId::new_v7();
    let stored = store.put(organization, None, 100, body(b"kept")).await.unwrap();
    std::fs::write(directory.path().join("incoming/half"), b"ha").unwrap();

    let store = DirectoryBlobs::open(directory.path()).await.unwrap();
    assert!(!directory.path().join("incoming/half").exists());
    assert_eq!(store.size(stored.key).await.unwrap(), Some(4));
}

#[tokio::test]
async fn bytes_that_rotted_on_disk_are_an_error_and_not_an_answer() {
    let directory = tempfile::tempdir().unwrap();
    let store = DirectoryBlobs::open(directory.path()).await.unwrap();
    let stored = store
        .put(OrganizationId::new_v7(), None, 100, body(b"right"))
        .await
        .unwrap();
    let digest = stored.key.sha256.to_hex();
    let path = directory
        .path()
        .join(stored.key.organization.to_string())
        .join(&digest[..2])
        .join(&digest);
    std::fs::write(path, b"wrong").unwrap();
    let read = store.get(stored.key, None).await.unwrap();
    let body: Result<Vec<Bytes>, _> = read.body.try_collect().await;
    assert_eq!(body.unwrap_err().kind(), std::io::ErrorKind::InvalidData);
}
