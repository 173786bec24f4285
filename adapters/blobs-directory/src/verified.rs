//! A whole blob while it is read: its digest is checked on the way, so that a rotten disk cannot
//! hand out other bytes than were asked for.

use std::io;

use bytes::Bytes;
use execution_plane_ports::BlobBody;
use futures::{Stream, StreamExt, stream};
use kernel::Sha256Digest;
use sha2::{Digest, Sha256};

pub fn body(
    pieces: impl Stream<Item = io::Result<Bytes>> + Send + Unpin + 'static,
    expected: Sha256Digest,
) -> BlobBody {
    stream::unfold(Some((pieces, Sha256::new())), move |state| async move {
        let (mut pieces, mut digest) = state?;
        match pieces.next().await {
            Some(Ok(piece)) => {
                digest.update(&piece);
                Some((Ok(piece), Some((pieces, digest))))
            }
            Some(Err(error)) => Some((Err(error), None)),
            None => {
                let actual = Sha256Digest::from_bytes(digest.finalize().into());
                (actual != expected).then(|| {
                    let text = format!("the stored bytes have the digest {actual}, not {expected}");
                    (Err(io::Error::new(io::ErrorKind::InvalidData, text)), None)
                })
            }
        }
    })
    .boxed()
}
