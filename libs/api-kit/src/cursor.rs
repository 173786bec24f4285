//! Opaque cursors: where the next page begins, bound to the query it belongs to.
//!
//! A cursor of another query is refused: continued under other filters it would skip rows silently.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kernel::Sha256Digest;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{FieldError, Problem};

/// Longest accepted cursor, in bytes.
const MAX: usize = 4096;

/// A cursor over the keys `K` (the sort key of the last item of a page).
#[derive(Debug, Serialize, Deserialize)]
pub struct Cursor<K> {
    /// The form of the cursor.
    v: u8,
    /// The digest of the query it belongs to.
    q: String,
    /// The sort key of the last item.
    k: K,
}

impl<K: Serialize + DeserializeOwned> Cursor<K> {
    /// The cursor after the item with sort key `last`, in the list that `query` (everything that
    /// selects and sorts, with the organization, without limit and cursor) gives.
    #[must_use]
    pub fn encode(query: &impl Serialize, last: K) -> String {
        let cursor = Self {
            v: 1,
            q: digest(query),
            k: last,
        };
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&cursor).unwrap_or_default())
    }

    /// The sort key that the page begins after.
    ///
    /// # Errors
    /// 422 when the text is no cursor, or is one of another query.
    pub fn decode(query: &impl Serialize, text: &str) -> Result<K, Problem> {
        let refuse = |detail: &str| {
            Problem::invalid([FieldError::new("/cursor", "invalid_cursor", detail)])
                .remedy("Take the cursor of the last page unchanged, or begin without one.")
        };
        if text.len() > MAX {
            return Err(refuse("not a cursor"));
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| refuse("not a cursor"))?;
        let cursor: Self = serde_json::from_slice(&bytes).map_err(|_| refuse("not a cursor of this list"))?;
        if cursor.v != 1 || cursor.q != digest(query) {
            return Err(refuse("the cursor belongs to another query"));
        }
        Ok(cursor.k)
    }
}

fn digest(query: &impl Serialize) -> String {
    // Queries are plain structures; one that is no JSON would only make all cursors alike.
    let text = serde_json::to_vec(query).unwrap_or_default();
    Sha256Digest::of(&text).short()
}
