//! The suite that every [`BlobStore`] must pass, embedded twin and production part alike (feature
//! `conformance`; meant for the adapters' tests, so it panics on a breach).

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use kernel::Sha256Digest;
use kernel::id::OrganizationId;

use crate::blob::{BlobBody, BlobError, BlobKey, BlobStore};

const LIMIT: u64 = 64 * 1024 * 1024;

/// Runs the whole suite against an empty store.
///
/// # Panics
/// On every breach.
pub async fn blob_store(store: Arc<dyn BlobStore>) {
    what_was_put_is_read_byte_for_byte(&*store).await;
    a_range_is_cut_to_the_size(&*store).await;
    organizations_share_nothing(&*store).await;
    wrong_bytes_are_never_visible(&*store).await;
    a_broken_body_leaves_nothing(&*store).await;
    too_large_is_refused(&*store).await;
    racing_puts_of_one_blob_all_succeed(store).await;
}

fn body(bytes: &[u8], piece: usize) -> BlobBody {
    let pieces: Vec<_> = bytes
        .chunks(piece)
        .map(|piece| Ok(Bytes::copy_from_slice(piece)))
        .collect();
    stream::iter(pieces).boxed()
}

/// Bytes that differ from place to place.
fn sample(length: usize, seed: u32) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()[0]
    };
    (0..length).map(|_| next()).collect()
}

async fn read(store: &dyn BlobStore, key: BlobKey, range: Option<Range<u64>>) -> Vec<u8> {
    let blob = store.get(key, range).await.expect("the blob is there");
    let pieces: Vec<Bytes> = blob.body.try_collect().await.expect("the body is whole");
    pieces.concat()
}

async fn what_was_put_is_read_byte_for_byte(store: &dyn BlobStore) {
    let organization = OrganizationId::new_v7();
    for (length, piece) in [(0, 1), (1, 1), (70_000, 977), (3_000_000, 65_536)] {
        let bytes = sample(length, 7);
        let expected = Sha256Digest::of(&bytes);
        let stored = store
            .put(organization, None, LIMIT, body(&bytes, piece))
            .await
            .expect("stored");
        assert_eq!((stored.key.sha256, stored.size_bytes), (expected, length as u64));
        assert!(stored.is_new);
        let again = store
            .put(organization, Some(expected), LIMIT, body(&bytes, piece))
            .await
            .expect("stored again");
        assert!(!again.is_new, "a second put finds the first");
        assert_eq!(store.size(stored.key).await.expect("asked"), Some(length as u64));
        assert_eq!(read(store, stored.key, None).await, bytes);
    }
}

async fn a_range_is_cut_to_the_size(store: &dyn BlobStore) {
    let bytes = sample(10_000, 11);
    let stored = store
        .put(OrganizationId::new_v7(), None, LIMIT, body(&bytes, 100))
        .await
        .expect("stored");
    assert_eq!(read(store, stored.key, Some(0..10)).await, bytes[..10]);
    assert_eq!(read(store, stored.key, Some(9_990..10_050)).await, bytes[9_990..]);
    assert_eq!(read(store, stored.key, Some(5_000..5_000)).await, b"");
    assert_eq!(read(store, stored.key, Some(20_000..30_000)).await, b"");
}

async fn organizations_share_nothing(store: &dyn BlobStore) {
    let (ours, theirs) = (OrganizationId::new_v7(), OrganizationId::new_v7());
    let bytes = sample(1_000, 13);
    let key = store
        .put(ours, None, LIMIT, body(&bytes, 100))
        .await
        .expect("stored")
        .key;
    let foreign = BlobKey {
        organization: theirs,
        ..key
    };
    assert_eq!(store.size(foreign).await.expect("asked"), None);
    assert!(matches!(store.get(foreign, None).await, Err(BlobError::Missing(_))));
    let stored = store.put(theirs, None, LIMIT, body(&bytes, 100)).await.expect("stored");
    assert!(stored.is_new, "another organization's blob says nothing");
}

async fn wrong_bytes_are_never_visible(store: &dyn BlobStore) {
    let organization = OrganizationId::new_v7();
    let (right, wrong) = (sample(5_000, 17), sample(5_000, 19));
    let expected = Sha256Digest::of(&right);
    let refused = store.put(organization, Some(expected), LIMIT, body(&wrong, 100)).await;
    assert!(matches!(refused, Err(BlobError::DigestMismatch { expected: e, .. }) if e == expected));
    for sha256 in [expected, Sha256Digest::of(&wrong)] {
        let key = BlobKey { organization, sha256 };
        assert_eq!(store.size(key).await.expect("asked"), None);
    }
}

async fn a_broken_body_leaves_nothing(store: &dyn BlobStore) {
    let organization = OrganizationId::new_v7();
    let bytes = sample(5_000, 23);
    let broken = body(&bytes, 100)
        .take(10)
        .chain(stream::once(async { Err(std::io::Error::other("cut")) }))
        .boxed();
    let refused = store.put(organization, None, LIMIT, broken).await;
    assert!(matches!(refused, Err(BlobError::Body(_))));
    let key = BlobKey {
        organization,
        sha256: Sha256Digest::of(&bytes[..1_000]),
    };
    assert_eq!(store.size(key).await.expect("asked"), None);
}

async fn too_large_is_refused(store: &dyn BlobStore) {
    let organization = OrganizationId::new_v7();
    let bytes = sample(1_001, 29);
    let refused = store.put(organization, None, 1_000, body(&bytes, 100)).await;
    assert!(matches!(refused, Err(BlobError::TooLarge { limit: 1_000 })));
    let fits = store.put(organization, None, 1_001, body(&bytes, 100)).await;
    assert!(fits.is_ok(), "the limit itself fits");
}

async fn racing_puts_of_one_blob_all_succeed(store: Arc<dyn BlobStore>) {
    let organization = OrganizationId::new_v7();
    let bytes = sample(200_000, 31);
    let puts = (0..8).map(|n| {
        let (store, bytes) = (store.clone(), bytes.clone());
        async move { store.put(organization, None, LIMIT, body(&bytes, 1_000 + n)).await }
    });
    let stored = futures::future::try_join_all(puts).await.expect("all stored");
    assert!(stored.iter().any(|stored| stored.is_new));
    assert_eq!(read(&*store, stored[0].key, None).await, bytes);
}
