//! The queue for claims, across operations.

use std::collections::BTreeMap;

use chrono::Duration;
use control_plane_operation::claims::{ClaimRequest, Verdict, conflict, settle};
use control_plane_operation::{ClaimRequestId, CommandKind, Input, OperationStatus, RunFailure};
use control_plane_plan::ClaimMode;
use kernel::id::OperationId;
use proptest::prelude::*;
use uuid::Uuid;

use crate::plans::{claim, plan};
use crate::world::{World, at};

fn request(operation: u128, since: i64, claims: &[(u128, ClaimMode)]) -> ClaimRequest {
    ClaimRequest {
        request: ClaimRequestId(Uuid::from_u128(operation)),
        operation_id: OperationId(Uuid::from_u128(operation)),
        since: at(since),
        granted_at: None,
        claims: claims.iter().map(|(host, mode)| claim(*host, *mode)).collect(),
    }
}

/// Grants what can be granted; returns who was.
fn grant(requests: &mut [ClaimRequest], now: i64) -> Vec<u128> {
    let mut granted = Vec::new();
    for (id, verdict) in settle(requests) {
        if verdict == Verdict::Granted {
            let request = requests.iter_mut().find(|request| request.request == id).unwrap();
            request.granted_at = Some(at(now));
            granted.push(id.as_uuid().as_u128());
        }
    }
    granted
}

use ClaimMode::{Exclusive, Read, Shared};

#[test]
fn field_note_23_operations_on_one_host_serialize_and_disjoint_ones_run_together() {
    let mut requests = vec![
        request(1, 1, &[(1, Exclusive)]),
        request(2, 2, &[(1, Exclusive)]),
        request(3, 3, &[(2, Exclusive)]),
    ];
    assert_eq!(grant(&mut requests, 4), [1, 3]);
    requests.remove(0);
    assert_eq!(grant(&mut requests, 5), [2]);
}

#[test]
fn field_note_23_three_way_overlaps_do_not_deadlock() {
    let mut requests = vec![
        request(1, 1, &[(1, Exclusive), (2, Exclusive)]),
        request(2, 1, &[(2, Exclusive), (3, Exclusive)]),
        request(3, 1, &[(3, Exclusive), (1, Exclusive)]),
    ];
    let mut served = Vec::new();
    for now in 2..5 {
        let granted = grant(&mut requests, now);
        assert_eq!(granted.len(), 1);
        served.extend(granted);
        requests.retain(|request| request.granted_at.is_none());
    }
    assert_eq!(served, [1, 2, 3]);
}

#[test]
fn readers_and_sharers_run_together_and_an_exclusive_one_is_not_starved_by_them() {
    let mut requests = vec![
        request(1, 1, &[(1, Shared)]),
        request(2, 2, &[(1, Read)]),
        request(3, 3, &[(1, Exclusive)]),
        request(4, 4, &[(1, Shared)]),
    ];
    assert_eq!(
        grant(&mut requests, 5),
        [1, 2],
        "the fourth does not overtake the third"
    );
    requests.drain(..2);
    assert_eq!(grant(&mut requests, 6), [3]);
}

#[test]
fn field_note_26_who_waits_is_told_for_whom_and_since_when() {
    let mut requests = vec![request(1, 1, &[(1, Exclusive)])];
    grant(&mut requests, 2);
    requests.push(request(2, 3, &[(1, Exclusive)]));
    requests.push(request(3, 4, &[(1, Exclusive)]));
    let verdicts: BTreeMap<u128, Verdict> = settle(&requests)
        .into_iter()
        .map(|(id, verdict)| (id.as_uuid().as_u128(), verdict))
        .collect();
    let Verdict::Waits(blockers) = &verdicts[&3] else {
        panic!("{verdicts:?}")
    };
    let told: Vec<_> = blockers
        .iter()
        .map(|b| (b.operation_id.as_uuid().as_u128(), b.holds, b.since))
        .collect();
    assert_eq!(told, [(1, true, at(2)), (2, false, at(3))]);
}

#[test]
fn field_note_26_waiting_work_cancels_at_once() {
    let mut world = World::new(plan(1).job("work", &[]).index());
    world.tell(&[Input::Started]);
    let request = world.store.claims.unwrap().0;
    let mut requests = vec![self::request(9, 0, &[(1, Exclusive)])];
    grant(&mut requests, 0);
    requests.push(self::request(1, 1, &[(1, Exclusive)]));
    let Verdict::Waits(blockers) = settle(&requests).remove(0).1 else {
        panic!("it waits")
    };
    world.tell(&[Input::ClaimsWaiting { request, blockers }]);
    assert_eq!(world.status(), OperationStatus::WaitingClaim);
    world.pass(3_600);
    assert_eq!(world.state.next_wakeup(), None, "no timer while waiting");
    world.accept(CommandKind::Cancel);
    assert_eq!(world.status(), OperationStatus::Cancelled);
    world.tell(&[Input::ClaimsGranted { request }]);
    assert_eq!(
        world.status(),
        OperationStatus::Cancelled,
        "a grant that comes too late changes nothing"
    );
    assert_eq!(world.store.claims, None);
}

#[test]
fn an_operation_that_does_not_wait_fails_and_says_for_whom() {
    let mut world = World::new(plan(1).job("work", &[]).index());
    world.tell(&[Input::Started]);
    let request = world.store.claims.unwrap().0;
    world.tell(&[Input::ClaimsRefused {
        request,
        blockers: vec![],
    }]);
    assert_eq!(world.status(), OperationStatus::Failed);
    let failure = world.state.operation().progress.failure.clone();
    assert!(matches!(failure, Some(RunFailure::ClaimsRefused { .. })));
}

fn mode() -> impl Strategy<Value = ClaimMode> {
    prop_oneof![Just(Exclusive), Just(Shared), Just(Read)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Field notes 23 to 25: whatever comes and goes, nobody holds against another, and everybody is served.
    #[test]
    fn field_note_25_grants_never_conflict_and_everyone_is_served(
        wishes in proptest::collection::vec(
            (0_i64..20, proptest::collection::btree_map(1_u128..6, mode(), 1..4)), 1..12),
        leaving in proptest::collection::vec(0_usize..12, 12),
    ) {
        let mut requests: Vec<ClaimRequest> = Vec::new();
        let mut leaving = leaving.into_iter().cycle();
        let mut served = 0;
        for (ix, (since, claims)) in wishes.iter().enumerate() {
            let claims: Vec<_> = claims.iter().map(|(host, mode)| (*host, *mode)).collect();
            requests.push(request(ix as u128 + 1, *since, &claims));
            grant(&mut requests, 30);
            prop_assert_eq!(conflict(&requests), None);
        }
        let total = requests.len();
        while !requests.is_empty() {
            let holding: Vec<usize> = (0..requests.len()).filter(|ix| requests[*ix].granted_at.is_some()).collect();
            prop_assert!(!holding.is_empty(), "everybody waits and nobody holds: a deadlock");
            let leaver = holding[leaving.next().unwrap() % holding.len()];
            requests.remove(leaver);
            served += 1;
            grant(&mut requests, 40 + served);
            prop_assert_eq!(conflict(&requests), None);
        }
        prop_assert_eq!(served as usize, total);
    }

    #[test]
    fn nobody_overtakes_an_earlier_one_that_wants_the_same(
        first in 0_i64..5, second in 6_i64..9, host in 1_u128..3,
    ) {
        let mut requests = vec![request(9, -1, &[(1, Exclusive), (2, Exclusive)])];
        grant(&mut requests, 0);
        requests.push(request(1, second, &[(host, Exclusive)]));
        requests.push(request(2, first, &[(1, Exclusive), (2, Exclusive)]));
        requests.remove(0);
        prop_assert_eq!(grant(&mut requests, 10), vec![2]);
        let _ = Duration::seconds(0);
    }
}
