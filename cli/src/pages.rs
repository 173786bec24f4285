//! Lists that the services give page by page, read to their end or to the limit that was asked for.
//!
//! Invariant: a list that is not whole says so; nobody takes the first page for everything.

use std::future::Future;

use client_kit::ClientError;

use crate::error::CliError;

/// The most that a service gives at once.
const PAGE: usize = 1000;

/// A list, and whether there is more of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed<T> {
    pub items: Vec<T>,
    pub cut: bool,
}

impl<T> Listed<T> {
    /// A list that is whole.
    pub const fn whole(items: Vec<T>) -> Self {
        Self { items, cut: false }
    }

    /// At most `limit` of it.
    #[must_use]
    pub fn at_most(mut self, limit: Option<u32>) -> Self {
        if let Some(limit) = limit.map(|limit| limit as usize)
            && self.items.len() > limit
        {
            self.items.truncate(limit);
            self.cut = true;
        }
        self
    }
}

/// Reads pages until there is no further one, or `limit` items are there. `page` is asked with how many
/// items to give at most and the cursor; it gives the items and the next cursor.
///
/// # Errors
/// When a page is not given.
pub async fn read<T, F, A>(limit: Option<u32>, mut page: F) -> Result<Listed<T>, CliError>
where
    F: FnMut(u32, Option<String>) -> A,
    A: Future<Output = Result<(Vec<T>, Option<String>), ClientError>>,
{
    let wanted = limit.map_or(usize::MAX, |limit| limit as usize);
    let mut items = Vec::new();
    let mut cursor = None;
    loop {
        let most = (wanted - items.len()).min(PAGE);
        let (found, next) = page(u32::try_from(most).unwrap_or(1), cursor).await?;
        items.extend(found);
        if next.is_none() || items.len() >= wanted {
            return Ok(Listed {
                items,
                cut: next.is_some(),
            });
        }
        cursor = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `total` numbers in pages of at most `page`.
    async fn numbers(total: usize, page: usize, limit: Option<u32>) -> Listed<usize> {
        read(limit, |most, cursor| {
            let from: usize = cursor.map_or(0, |text| text.parse().unwrap());
            let to = (from + page.min(most as usize)).min(total);
            async move { Ok(((from..to).collect(), (to < total).then(|| to.to_string()))) }
        })
        .await
        .unwrap()
    }

    #[tokio::test]
    async fn a_list_is_read_to_its_end() {
        assert_eq!(numbers(7, 3, None).await, Listed::whole((0..7).collect()));
        assert_eq!(numbers(0, 3, None).await, Listed::whole(vec![]));
    }

    #[tokio::test]
    async fn a_list_that_is_cut_says_so() {
        let listed = numbers(7, 3, Some(5)).await;
        assert_eq!((listed.items.len(), listed.cut), (5, true));
        assert!(!numbers(7, 3, Some(7)).await.cut);
        assert!(Listed::whole(vec![1, 2, 3]).at_most(Some(2)).cut);
        assert!(!Listed::whole(vec![1, 2]).at_most(Some(2)).cut);
    }
}
