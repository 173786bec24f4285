//! What must hold whatever was killed, cut off or paused: checked on the platform's own word, in its
//! databases, and on the host.

use std::time::Instant;

use control_plane_api::{ListEventsQuery, Operation, OperationState, PageQuery};
use kernel::id::OperationId;
use resource_catalog_api::Provenance;

use crate::stage::Stage;
use crate::stories::{Promised, Story};
use crate::teller::{PATIENCE, answered, until};

impl Stage {
    /// Everything that was answered with yes is there.
    pub async fn promises_are_kept(&self, promised: &Promised, mark: &str) {
        let teller = &self.teller;
        if let Some(id) = promised.operation {
            let operation = teller.operation(id).await;
            let is_ours = operation.reason.starts_with(mark);
            assert!(
                is_ours,
                "{mark}: the operation is the one that was asked for: {operation:#?}"
            );
        }
        if let Some((name, digest)) = &promised.pack {
            let published = format!("SELECT encode(digest, 'hex') FROM packs WHERE name = '{name}'");
            let rows = self.deployment.rows("control_plane", &published).await;
            assert_eq!(rows, [[Some(digest.to_hex())]], "{mark}: the pack is published once");
        }
        if let Some((id, digest)) = &promised.plan {
            let plan = answered("plan", || teller.control.plan(*id)).await;
            assert_eq!(plan.digest, *digest, "{mark}: the plan is the one that was shown");
        }
        if let Some(name) = &promised.policy {
            let policy = answered("policy", || teller.execution.command_policy(name)).await;
            assert_eq!(policy.version, 1, "{mark}: the policy was put once");
        }
        if let Some(description) = &promised.description {
            let name = "site.written".parse().expect("a name");
            let definition = answered("definition", || teller.catalog.capability_definition(&name)).await;
            assert_eq!(
                &definition.definition.description, description,
                "{mark}: the definition is the last one"
            );
        }
        if let Some(annotation) = &promised.annotation {
            let id = "node/web-1".parse().expect("an id");
            let resource = answered("resource", || teller.catalog.resource(&id)).await;
            assert_eq!(resource.annotations.get("touched"), Some(annotation), "{mark}");
        }
    }

    /// What holds of an operation that has ended, and of all that it touched.
    pub async fn nothing_is_left_of(&self, operation: &Operation, story: Story, mark: &str) {
        let id = operation.summary.id;
        let lines = self.world.lines(0, mark);
        assert!(lines <= 1, "{mark}: ran {lines} times on the host");
        let succeeded = operation.summary.state == OperationState::Succeeded;
        match story {
            Story::Straight | Story::Course if succeeded => {
                assert_eq!(lines, 1, "{mark}: succeeded without having run");
                self.is_proven(id, mark).await;
            }
            Story::Cancelled | Story::Lost | Story::Withdrawn | Story::Reminded => {
                assert!(!succeeded, "{mark}: a job without an end succeeded");
            }
            _ => {}
        }
        self.events_are_gapless(id).await;
        let all = PageQuery::default();
        let claims = answered("claims", || self.teller.control.claims(&all)).await;
        assert!(claims.items.is_empty(), "{mark}: claims outlive the run: {claims:#?}");
        let query = execution_plane_api::AttemptListQuery {
            operation_id: Some(id),
            ..Default::default()
        };
        until("every attempt has ended", async || {
            let attempts = answered("attempts", || self.teller.execution.attempts(&query)).await;
            attempts
                .items
                .iter()
                .all(|attempt| attempt.state.is_terminal())
                .then_some(())
        })
        .await;
        until("the catalog holds no finalizer of it", async || {
            let left = format!("SELECT count(*) FROM finalizers WHERE operation_id = '{id}'");
            (self.deployment.number("resource_catalog", &left).await == 0).then_some(())
        })
        .await;
    }

    /// A job that never ends by itself did not come to a good end, and began at most once.
    pub fn nothing_ran_on(&self, operation: &Operation, mark: &str) {
        assert_ne!(operation.summary.state, OperationState::Succeeded, "{operation:#?}");
        assert!(self.world.lines(0, mark) <= 1, "{mark} began once");
    }

    /// The catalog says what became true by this operation, with its evidence, and the proof holds without the
    /// platform.
    pub async fn is_proven(&self, id: OperationId, mark: &str) {
        let resource_id = "node/web-1".parse().expect("an id");
        let resource = answered("resource", || self.teller.catalog.resource(&resource_id)).await;
        let capability = "site.marked".parse().expect("a name");
        let provided = resource
            .provided_capabilities
            .iter()
            .find(|provided| provided.provides(&capability));
        let provided = provided.unwrap_or_else(|| panic!("{mark}: the catalog has no site.marked: {resource:#?}"));
        assert!(
            matches!(provided.provenance, Provenance::Operation { operation_id, .. } if operation_id == id),
            "{mark}: shown by another operation: {provided:#?}"
        );
        let query = execution_plane_api::AttemptListQuery {
            operation_id: Some(id),
            ..Default::default()
        };
        let attempts = answered("attempts", || self.teller.execution.attempts(&query)).await;
        let is_ours = |evidence: &contracts::EvidenceRef| {
            let attempt = evidence.attempt_id;
            attempt.is_some_and(|attempt| attempts.items.iter().any(|one| one.attempt_id == attempt))
        };
        assert!(
            !provided.evidence.is_empty() && provided.evidence.iter().all(is_ours),
            "{mark}: evidence of another operation: {provided:#?}"
        );
        let file = self.deployment.path().join("proof.json");
        let document = answered("proof", || self.teller.control.proof(id)).await;
        std::fs::write(&file, document).expect("own file");
        let key = self.deployment.data().join("proof.pub").display().to_string();
        self.deployment
            .platform(&["proof", "verify", &file.display().to_string(), "--key", &key]);
    }

    async fn events_are_gapless(&self, id: OperationId) {
        let mut query = ListEventsQuery {
            limit: Some(1000),
            ..Default::default()
        };
        let mut expected = 1;
        loop {
            let page = answered("events", || self.teller.control.events(id, &query)).await;
            for event in &page.items {
                assert_eq!(event.sequence, expected, "a gap in the events of {id}");
                expected += 1;
            }
            query.cursor = page.next_cursor;
            if query.cursor.is_none() {
                return;
            }
        }
    }

    /// The catalog's change records: gapless versions, in order, and the projection catches up with them.
    pub async fn catalog_is_whole(&self) {
        let resource_id = "node/web-1".parse().expect("an id");
        let resource = answered("read", || self.teller.catalog.resource(&resource_id)).await;
        let (mut after, mut version) = (0, 0);
        let deadline = Instant::now() + PATIENCE;
        loop {
            let query = resource_catalog_api::FeedQuery {
                after,
                limit: Some(1000),
                // A change has its record after its commit: the sequencer may just be coming back.
                wait_seconds: Some(1),
            };
            let page = answered("feed", || self.teller.catalog.feed(&query)).await;
            let of_host = page
                .events
                .iter()
                .filter(|event| event.resource_id.as_str() == "node/web-1");
            for event in of_host {
                assert!(
                    event.version == version || event.version == version + 1,
                    "version {} after {version}",
                    event.version
                );
                version = event.version;
            }
            after = page.next_after;
            if after >= page.head && version >= resource.version {
                break;
            }
            assert!(
                Instant::now() < deadline,
                "the records end at version {version}, the resource is at {}",
                resource.version
            );
        }
        until("the copy of the catalog catches up", async || {
            let all = PageQuery::default();
            let projections = answered("projections", || self.teller.control.projections(&all))
                .await
                .items;
            let parked: usize = projections.iter().map(|p| p.parked.len()).sum();
            assert_eq!(parked, 0, "{projections:#?}");
            // A position that the catalog has never had is not there yet, either.
            let at = |p: &control_plane_api::ProjectionView| p.revision >= after && p.revision <= after + 1000;
            (!projections.is_empty() && projections.iter().all(at)).then_some(())
        })
        .await;
    }
}
