//! Reading a list page by page: what a cursor carries from one page to the next.
//!
//! The revision of the feed's head before the first page travels in the cursor, so that every page of
//! one reading has the same: a watch from there misses nothing of any page.

use core::future::Future;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Cursor, Problem};

/// One page being read, sorted by keys `K`.
#[derive(Debug)]
pub struct Paging<Q, K> {
    query: Q,
    limit: usize,
    /// The key of the last item of the page before; nothing for the first page.
    pub after: Option<K>,
    /// The head of the feed before the first page.
    pub revision: i64,
}

impl<Q: Serialize, K: Serialize + DeserializeOwned> Paging<Q, K> {
    /// The page that `cursor` asks for, of at most `limit` items of the list that `query` (everything
    /// that selects and sorts, with the organization, without limit and cursor) gives. `head` reads the
    /// head of the feed; it is asked for the first page only, and the items must be read after it.
    ///
    /// # Errors
    /// 422 when the cursor is none of this list; what `head` fails with.
    pub async fn begin(
        query: Q,
        cursor: Option<&str>,
        limit: u32,
        head: impl Future<Output = Result<i64, Problem>> + Send,
    ) -> Result<Self, Problem> {
        let (after, revision) = match cursor {
            Some(text) => {
                let (key, revision): (K, i64) = Cursor::decode(&query, text)?;
                (Some(key), revision)
            }
            None => (None, head.await?),
        };
        Ok(Self {
            query,
            limit: limit as usize,
            after,
            revision,
        })
    }

    /// How many items to read: one more than the page has tells whether there is a next one.
    #[must_use]
    pub const fn peek(&self) -> usize {
        self.limit + 1
    }

    /// [`Paging::peek`], for SQL.
    #[must_use]
    pub const fn rows(&self) -> i64 {
        // A limit is far below either border.
        self.limit as i64 + 1
    }

    /// Cuts what was read to the page; gives the cursor of the next one when there is one.
    pub fn cut<T>(&self, items: &mut Vec<T>, key: impl FnOnce(&T) -> K) -> Option<String> {
        let more = items.len() > self.limit;
        items.truncate(self.limit);
        let last = items.last().filter(|_| more)?;
        Some(Cursor::encode(&self.query, (key(last), self.revision)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reading of the numbers 0 to 6 in pages of three, while the feed moves on.
    #[tokio::test]
    async fn every_page_of_a_reading_has_the_revision_of_its_first() {
        let (mut cursor, mut seen, mut revisions) = (None, Vec::new(), Vec::new());
        for head in 40.. {
            let page: Paging<_, u32> = Paging::begin("numbers", cursor.as_deref(), 3, async move { Ok(head) })
                .await
                .unwrap();
            let from = page.after.map_or(0, |last| last + 1);
            let mut items: Vec<u32> = (from..7).take(page.peek()).collect();
            cursor = page.cut(&mut items, |last| *last);
            revisions.push(page.revision);
            seen.extend(items);
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(revisions, [40, 40, 40]);
    }
}
