//! What a proof says, and what makes it refuse to be made.

use control_plane_operation::{
    CommandAnswer, CommandOutcome, CommandRow, GateState, InterventionId, NodeReason, NodeRunRow, NodeState,
    OperationStatus, Rows, RunEnd,
};
use control_plane_plan::{NodeKind, PlanDocument};
use control_plane_proof::{ExportError, Fault, Signer, export, verify};
use kernel::{Sha256Digest, canonical_digest};

use crate::rows::{Key, at, attempt_id, evidence, plan, plans, rows};

fn refusal(rows: &Rows) -> String {
    match export(rows, &plans(), &Key::new(1)) {
        Err(ExportError::Unprovable(fault)) => fault.to_string(),
        Err(other) => other.to_string(),
        Ok(_) => panic!("it was proven"),
    }
}

#[test]
fn a_proof_tells_the_whole_chain_from_capability_to_pack() {
    let key = Key::new(1);
    let document = export(&rows(), &plans(), &key).unwrap();
    let verified = verify(&document, &key.public_key()).unwrap();
    assert_eq!(verified.plans[&1], plans()[0].1.digest());
    assert_eq!(verified.approvals, [("approval".to_owned(), "anna".to_owned(), at(5))]);
    assert_eq!((verified.attempts, verified.evidence), (2, 1));
    let capability = &verified.capabilities[0];
    assert_eq!((capability.capability.as_str(), capability.version), ("web.http", 8));
    assert_eq!(capability.sources, [Sha256Digest::of(b"200 OK")]);
}

#[test]
fn the_same_operation_gives_the_same_bytes() {
    let key = Key::new(1);
    assert_eq!(
        export(&rows(), &plans(), &key).unwrap(),
        export(&rows(), &plans(), &key).unwrap()
    );
}

#[test]
fn a_capability_without_passed_evidence_cannot_be_proven() {
    let mut without = rows();
    without.updates[0].evidence.clear();
    assert!(refusal(&without).contains("nothing proves web.http"));
    for result in [
        contracts::EvidenceResult::Failed,
        contracts::EvidenceResult::Inconclusive,
    ] {
        let mut failed = rows();
        failed.updates[0].evidence[0].result = result;
        failed.attempts[1].result.as_mut().unwrap().evidence[0].result = result;
        assert!(refusal(&failed).contains("nothing proves web.http"));
    }
}

#[test]
fn evidence_about_another_resource_or_capability_proves_nothing() {
    let edits: [fn(&mut contracts::EvidenceRef); 2] = [
        |evidence| evidence.resource_id = Some("node/web-2".parse().unwrap()),
        |evidence| evidence.capability = "os.linux".parse().unwrap(),
    ];
    for edit in edits {
        let mut rows = rows();
        edit(&mut rows.updates[0].evidence[0]);
        edit(&mut rows.attempts[1].result.as_mut().unwrap().evidence[0]);
        assert!(refusal(&rows).contains("nothing proves web.http"));
    }
}

#[test]
fn evidence_that_no_attempt_of_the_operation_yielded_cannot_be_proven() {
    let mut rows = rows();
    rows.attempts[1].result.as_mut().unwrap().evidence.clear();
    assert!(refusal(&rows).contains("comes from no attempt"));
}

#[test]
fn evidence_whose_source_is_no_log_or_artifact_of_its_attempt_cannot_be_proven() {
    let edits: [fn(&mut contracts::EvidenceRef); 2] = [
        |evidence| evidence.source_ref = "s3://elsewhere".into(),
        |evidence| evidence.sha256 = Some(Sha256Digest::of(b"something else")),
    ];
    for edit in edits {
        let mut rows = rows();
        edit(&mut rows.updates[0].evidence[0]);
        edit(&mut rows.attempts[1].result.as_mut().unwrap().evidence[0]);
        assert!(refusal(&rows).contains("comes from no attempt"));
    }
}

#[test]
fn a_comparison_has_the_jobs_own_parameters_as_its_source() {
    let mut rows = rows();
    let check = serde_json::json!({"equal": [1, 1]});
    for (sha256, holds) in [
        (canonical_digest(&check).unwrap(), true),
        (Sha256Digest::of(b"another"), false),
    ] {
        for evidence in [
            &mut rows.updates[0].evidence[0],
            &mut rows.attempts[1].result.as_mut().unwrap().evidence[0],
        ] {
            evidence.source_ref = format!("job-spec://{}/inputs/parameters/checks/0", attempt_id(2));
            evidence.sha256 = Some(sha256);
        }
        assert_eq!(export(&rows, &plans(), &Key::new(1)).is_ok(), holds);
    }
}

/// Of a second run, opened by `by`, whose gate was asked and decided anew.
fn retried(by: &str) -> Rows {
    let mut rows = rows();
    rows.operation.run = 2;
    rows.runs[0].end = Some(RunEnd::Failed);
    let mut second = rows.runs[0].clone();
    (second.number, second.opened_by, second.opened_at) = (2, by.into(), at(2));
    rows.runs.push(second);
    rows.gates[0].run = 2;
    for attempt in &mut rows.attempts {
        attempt.run = 2;
    }
    rows
}

#[test]
fn who_asked_for_a_run_may_not_have_approved_its_gate_whoever_asked_for_the_operation() {
    assert!(refusal(&retried("anna")).contains("a requester approved a gate"));
    let document = export(&retried("oscar"), &plans(), &Key::new(1)).unwrap();
    let verified = verify(&document, &Key::new(1).public_key()).unwrap();
    assert_eq!(verified.runs[&2], "oscar");
    let mut by_the_first = retried("oscar");
    by_the_first.gates[0].decided_by = Some("rita".into());
    assert!(refusal(&by_the_first).contains("a requester approved a gate"));
}

#[test]
fn who_approved_in_one_run_may_open_the_next_in_which_the_gate_is_not_asked_again() {
    let mut rows = retried("anna");
    rows.gates[0].run = 1;
    assert!(export(&rows, &plans(), &Key::new(1)).is_ok());
}

#[test]
fn an_approval_from_before_its_run_and_an_attempt_of_no_run_cannot_be_proven() {
    let mut early = retried("oscar");
    early.runs[1].opened_at = at(6);
    assert!(refusal(&early).contains("before the run that asked"));
    let mut unknown = rows();
    unknown.attempts[0].run = 7;
    assert!(refusal(&unknown).contains("a run that nobody opened"));
    let mut missing = rows();
    missing.gates[0].run = 7;
    assert!(refusal(&missing).contains("run 7 is missing"));
}

#[test]
fn an_attempt_behind_a_gate_that_nobody_approved_cannot_be_proven() {
    let mut without = rows();
    without.gates.clear();
    assert!(refusal(&without).contains("deploy ran without an approval of approval"));
    let mut rejected = rows();
    rejected.gates[0].state = GateState::Rejected;
    assert!(refusal(&rejected).contains("deploy ran without an approval of approval"));
    let mut late = rows();
    late.gates[0].decided_at = Some(at(25));
    assert!(
        refusal(&late).contains("deploy ran without an approval"),
        "approved after it had started"
    );
}

#[test]
fn an_approval_is_bound_to_what_the_gate_covers() {
    let mut rows = rows();
    rows.gates[0].digest = Sha256Digest::of(b"something else");
    assert!(refusal(&rows).contains("bound to something else"));
}

#[test]
fn the_requester_cannot_have_approved() {
    let mut rows = rows();
    rows.gates[0].decided_by = Some("rita".into());
    assert!(refusal(&rows).contains("a requester approved"));
}

#[test]
fn an_update_of_something_else_than_planned_cannot_be_proven() {
    let mut other = rows();
    other.updates[0].resource_id = "node/web-9".parse().unwrap();
    assert!(refusal(&other).contains("another resource than planned"));
    let mut more = rows();
    let provided = more.updates[0].changes.provided_capabilities.as_mut().unwrap();
    provided.add.push("os.linux".parse().unwrap());
    assert!(refusal(&more).contains("other capabilities than planned"));
    let mut nowhere = rows();
    nowhere.updates[0].node = "deploy".into();
    assert!(refusal(&nowhere).contains("no node of the plan"));
}

#[test]
fn an_update_that_was_not_applied_is_not_claimed() {
    let mut rows = rows();
    rows.updates[0].state = control_plane_operation::UpdateState::Conflict;
    let key = Key::new(1);
    let verified = verify(&export(&rows, &plans(), &key).unwrap(), &key.public_key()).unwrap();
    assert!(verified.capabilities.is_empty());
}

#[test]
fn a_later_revision_keeps_the_approval_that_covers_the_same_and_a_voided_one_still_proves_what_ran_under_it() {
    let mut changed = plan();
    changed.parameters.insert("port".into(), 8081.into());
    let revised = PlanDocument::seal(changed).unwrap();
    let mut all = plans();
    all.push((2, revised));
    let mut rows = rows();
    rows.gates[0].state = GateState::Void;
    let key = Key::new(1);
    assert!(export(&rows, &all, &key).is_ok(), "all of it ran at revision 1");
    rows.attempts[1].plan_revision = 2;
    let error = export(&rows, &all, &key).unwrap_err();
    assert!(
        matches!(error, ExportError::Unprovable(Fault::Untrue { .. })),
        "revision 2 was not approved"
    );
    rows.attempts[1].plan_revision = 3;
    assert!(matches!(export(&rows, &all, &key), Err(ExportError::PlanMissing(3))));
}

#[test]
fn a_gate_that_its_own_condition_ruled_out_needs_no_approval() {
    let skipped = |state, reason| NodeRunRow {
        run: 1,
        node: "approval".into(),
        plan_revision: 1,
        state,
        reason: Some(reason),
        message: None,
        attempts: 0,
        attempt: None,
        update: None,
        wait: None,
        revalidated: false,
        started_at: None,
        ended_at: None,
        exit: None,
        outputs: None,
        artifacts: vec![],
        evidence: vec![],
    };
    let mut conditional = plan();
    conditional.nodes[0].when = Some("false".into());
    let mut rows = rows();
    rows.gates.clear();
    rows.node_runs = vec![skipped(NodeState::Skipped, NodeReason::Condition)];
    let key = Key::new(1);
    let with = vec![(1, PlanDocument::seal(conditional).unwrap())];
    assert!(export(&rows, &with, &key).is_ok());
    assert!(
        export(&rows, &plans(), &key).is_err(),
        "the plan gives the gate no condition"
    );
    rows.node_runs = vec![skipped(NodeState::Skipped, NodeReason::NeedsNotMet)];
    assert!(export(&rows, &with, &key).is_err());
}

#[test]
fn a_persons_word_is_told_as_such() {
    let mut rows = rows();
    let mut word = evidence();
    word.attempt_id = None;
    word.evidence_type = contracts::EvidenceType::HumanVerification;
    rows.attempts[1].result.as_mut().unwrap().evidence.clear();
    rows.updates[0].evidence = vec![word.clone()];
    rows.node_runs = vec![NodeRunRow {
        run: 1,
        node: "verify".into(),
        plan_revision: 1,
        state: NodeState::Succeeded,
        reason: Some(NodeReason::Operator),
        message: Some("seen with my own eyes".into()),
        attempts: 1,
        attempt: Some(attempt_id(2)),
        update: None,
        wait: None,
        revalidated: false,
        started_at: None,
        ended_at: Some(at(45)),
        exit: None,
        outputs: None,
        artifacts: vec![],
        evidence: vec![word],
    }];
    assert!(
        refusal(&rows).contains("nobody attested it"),
        "somebody has to have said so"
    );
    rows.commands = vec![CommandRow {
        outcome: CommandOutcome {
            id: InterventionId(uuid::Uuid::from_u128(7)),
            answer: CommandAnswer::Accepted {
                status: OperationStatus::Running,
                run: 1,
                plan_revision: 1,
                revision: 8,
            },
        },
        kind: "resolve".into(),
        actor: "oscar".into(),
        reason: Some("seen with my own eyes".into()),
        at: at(45),
    }];
    let key = Key::new(1);
    let document = export(&rows, &plans(), &key).unwrap();
    let verified = verify(&document, &key.public_key()).unwrap();
    assert!(verified.capabilities[0].sources.is_empty(), "no bytes stand behind it");
    assert!(String::from_utf8(document).unwrap().contains("oscar"));
}

#[test]
fn a_node_that_is_no_job_has_no_attempts() {
    let mut strange = plan();
    strange.nodes[1].action = NodeKind::Join;
    let document = PlanDocument::seal(strange.clone()).unwrap();
    let mut rows = rows();
    rows.gates[0].digest = control_plane_plan::gate_digest(&strange, "approval").unwrap().unwrap();
    let error = export(&rows, &[(1, document)], &Key::new(1)).unwrap_err();
    assert!(matches!(error, ExportError::Unprovable(Fault::Untrue { .. })));
}
