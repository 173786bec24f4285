//! The check of a chain, by whoever reads it.

use kernel::Sha256Digest;

use crate::chained::{ChainHead, ChainedFact, HeadHash, link};

/// What is wrong with a chain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// Links are missing, or stand twice, or in another order.
    #[error("link {expected} is expected, but link {found} comes: facts were removed or moved")]
    Sequence { expected: i64, found: i64 },
    /// The link does not follow from the one before it.
    #[error("link {sequence} does not follow from the one before it: one of the two was exchanged")]
    NotLinked { sequence: i64 },
    /// The fact of a link is gone.
    #[error("the fact of link {sequence} is gone")]
    FactGone { sequence: i64 },
    /// The fact is another than was chained.
    #[error("the fact of link {sequence} is not what was chained: it was changed or exchanged")]
    Changed { sequence: i64 },
    /// The chain ends before its head.
    #[error("the chain ends at link {ends}, but its head says {head}: links were cut off")]
    CutOff { ends: i64, head: i64 },
    /// The chain at the place of a head that is known has another hash.
    #[error("link {sequence} has another hash than its head says: the chain was made anew")]
    OtherHead { sequence: i64 },
    /// There are facts that no chain knows, or known ones are missing.
    #[error("there are {facts} facts, but {chained} in the chain and {waiting} waiting for their place")]
    Unaccounted { facts: i64, chained: i64, waiting: i64 },
}

/// Follows a chain from its beginning, link by link.
#[derive(Debug, Clone, Default)]
pub struct Verifier {
    last: Option<HeadHash>,
    known: Vec<HeadHash>,
}

impl Verifier {
    /// Holds the chain against `known` heads too: what was seen or kept before.
    #[must_use]
    pub fn new(known: impl IntoIterator<Item = HeadHash>) -> Self {
        Self {
            last: None,
            known: known.into_iter().collect(),
        }
    }

    /// Where the chain ends, as far as it was followed.
    #[must_use]
    pub const fn end(&self) -> Option<HeadHash> {
        self.last
    }

    /// Where to read on.
    #[must_use]
    pub fn after(&self) -> i64 {
        self.last.map_or(0, |last| last.sequence)
    }

    fn previous_hash(&self) -> Option<Sha256Digest> {
        self.last.map(|last| last.hash)
    }

    /// Takes the next link.
    ///
    /// # Errors
    /// [`Broken`]: what comes after it tells nothing more.
    pub fn follow(&mut self, next: &ChainedFact) -> Result<(), Broken> {
        let sequence = next.sequence;
        let expected = self.after() + 1;
        if sequence != expected {
            return Err(Broken::Sequence {
                expected,
                found: sequence,
            });
        }
        if next.previous_hash != self.previous_hash() {
            return Err(Broken::NotLinked { sequence });
        }
        let fact = next.fact.as_ref().ok_or(Broken::FactGone { sequence })?;
        let is_same_fact = fact.id == next.fact_id;
        match link(sequence, next.previous_hash, next.chained_at, fact) {
            Ok(hash) if hash == next.hash && is_same_fact => {}
            _ => return Err(Broken::Changed { sequence }),
        }
        let is_other = |head: &HeadHash| head.sequence == sequence && head.hash != next.hash;
        if self.known.iter().any(is_other) {
            return Err(Broken::OtherHead { sequence });
        }
        self.last = Some(HeadHash {
            sequence,
            hash: next.hash,
        });
        Ok(())
    }

    /// Ends: the whole chain was followed, and `head` was told before.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn end_at(&self, head: &ChainHead) -> Result<(), Broken> {
        let ends = self.after();
        let mut heads = self.known.iter().chain(&head.head);
        if let Some(beyond) = heads.find(|head| head.sequence > ends) {
            return Err(Broken::CutOff {
                ends,
                head: beyond.sequence,
            });
        }
        if head.facts != head.chained + head.waiting {
            return Err(Broken::Unaccounted {
                facts: head.facts,
                chained: head.chained,
                waiting: head.waiting,
            });
        }
        Ok(())
    }
}
