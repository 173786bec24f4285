//! Every message of an attempt, sent twice and in any order: the end is the same.

use execution_plane_api::{AttemptState, StartPhase};
use futures::StreamExt;

use crate::harness::{World, chunks, finish, noop, started};

#[derive(Debug, Clone, Copy)]
enum Message {
    Starting,
    Running,
    Output(usize, usize),
    Finish,
    Renew,
    Submit,
}

/// A small generator of permutations that needs no randomness from outside.
fn shuffled(round: usize) -> Vec<Message> {
    use Message::{Finish, Output, Renew, Running, Starting, Submit};
    let mut messages = vec![
        Starting,
        Running,
        Output(0, 2),
        Output(2, 4),
        Finish,
        Renew,
        Submit,
        Starting,
        Running,
        Output(0, 2),
        Output(1, 4),
        Finish,
        Renew,
        Submit,
    ];
    let mut state = round * 2_654_435_761 + 1;
    for index in (1..messages.len()).rev() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        messages.swap(index, (state >> 33) % (index + 1));
    }
    messages
}

#[tokio::test]
async fn invariants_1_6_and_7_duplicates_and_any_order_change_nothing() {
    let world = World::start().await;
    let rounds = futures::stream::iter(0..24).map(|round| {
        let world = &world;
        async move {
            let name = format!("r{round}");
            let runner = world.runner(&name).await;
            let mut spec = noop();
            spec.runner.name = name;
            world.submit(std::slice::from_ref(&spec)).await;
            let all = chunks(&["a\n", "b\n", "c\n", "d\n"]);
            let mut ends = Vec::new();
            // What is refused for its order is sent again, as a runner does, until the end stands.
            let messages = shuffled(round);
            let lease = runner.one().await;
            for _ in 0..3 {
                for message in &messages {
                    match *message {
                        Message::Starting => drop(
                            runner
                                .client
                                .started(spec.attempt_id, &started(1, StartPhase::Starting))
                                .await,
                        ),
                        Message::Running => drop(
                            runner
                                .client
                                .started(spec.attempt_id, &started(1, StartPhase::Running))
                                .await,
                        ),
                        Message::Output(from, to) => drop(runner.output(&lease, all[from..to].to_vec()).await),
                        Message::Finish => {
                            ends.extend(runner.client.finish(spec.attempt_id, &finish(&lease, 4)).await.ok())
                        }
                        Message::Renew => drop(runner.renew(&[crate::harness::held(&lease)], 0).await),
                        Message::Submit => drop(world.plane().submit(vec![spec.clone()]).await),
                    }
                }
            }
            assert!(!ends.is_empty(), "round {round}");
            assert!(ends.iter().all(|end| end == &ends[0]), "one end, always the same");
            let attempt = world.plane().attempt(spec.attempt_id).await.unwrap();
            assert_eq!((attempt.summary.state, attempt.epoch), (AttemptState::Succeeded, 1));
            assert_eq!(
                world.plane().whole_output(spec.attempt_id).await.unwrap(),
                "a\nb\nc\nd\n"
            );
        }
    });
    rounds.buffered(8).collect::<Vec<_>>().await;
    let results = world.results(Vec::new()).await;
    assert_eq!(results.len(), 24, "one result an attempt");
}
