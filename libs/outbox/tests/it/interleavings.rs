//! A model: whatever the order in which writers write, commit, roll back, batches are carried and
//! the reader reads, every committed row is read once, in an order that keeps each key's versions.

use std::collections::BTreeMap;

use database::OrgTransaction;
use outbox::Leader;
use proptest::prelude::*;

use crate::world::{Reader, World, drain};

#[derive(Debug, Clone)]
enum Step {
    Write(usize),
    Commit(usize),
    RollBack(usize),
    Carry(i64),
    Read,
}

/// Each of four writers owns a key of its own; a new transaction begins after the last ended.
const WRITERS: usize = 4;

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..WRITERS).prop_map(Step::Write),
        3 => (0..WRITERS).prop_map(Step::Commit),
        1 => (0..WRITERS).prop_map(Step::RollBack),
        3 => (1_i64..4).prop_map(Step::Carry),
        2 => Just(Step::Read),
    ]
}

#[derive(Default)]
struct Writer {
    open: Option<(OrgTransaction, i64)>,
    committed: i64,
}

impl Writer {
    async fn write(&mut self, world: &World, key: &str) {
        let (transaction, version) = match self.open.take() {
            Some(open) => open,
            None => (world.api.begin_hot(world.organization).await.unwrap(), self.committed),
        };
        outbox::append(&transaction, &[world.event(key, version + 1)])
            .await
            .unwrap();
        self.open = Some((transaction, version + 1));
    }

    async fn commit(&mut self) {
        if let Some((transaction, version)) = self.open.take() {
            transaction.commit().await.unwrap();
            self.committed = version;
        }
    }
}

async fn play(steps: Vec<Step>) {
    let world = World::new().await;
    let mut leader: Leader = world.leader().await;
    let mut reader: Reader = world.reader();
    let mut writers: [Writer; WRITERS] = Default::default();
    for step in steps {
        match step {
            Step::Write(writer) => writers[writer].write(&world, &writer.to_string()).await,
            Step::Commit(writer) => writers[writer].commit().await,
            Step::RollBack(writer) => {
                if let Some((transaction, _)) = writers[writer].open.take() {
                    transaction.rollback().await.unwrap();
                }
            }
            Step::Carry(limit) => {
                leader.batch(limit).await.unwrap();
            }
            Step::Read => reader.catch_up().await,
        }
    }
    for writer in &mut writers {
        writer.commit().await;
    }
    drain(&mut leader).await;
    reader.catch_up().await;

    reader.assert_gapless();
    let mut seen: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for event in &reader.seen {
        seen.entry(event.key.clone()).or_default().push(event.version);
    }
    for (key, writer) in writers.iter().enumerate() {
        let expected: Vec<i64> = (1..=writer.committed).collect();
        assert_eq!(
            seen.remove(&key.to_string()).unwrap_or_default(),
            expected,
            "writer {key}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 60, ..ProptestConfig::default() })]
    #[test]
    fn field_note_49_whatever_the_interleaving_each_committed_row_is_read_once_and_in_order(
        steps in proptest::collection::vec(step(), 1..40)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(play(steps));
    }
}
