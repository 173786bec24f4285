//! Holds a live server against its OpenAPI document: every operation is tried with what it must
//! refuse, and every refusal must be a problem of the right kind; and with what it must do: give pages
//! that follow one another, resume streams, refuse a stale version, answer a repeated write as before,
//! hide objects from other organizations.
//!
//! What must be refused comes first; of the rest only writes under a key are carried out, with the bodies
//! that the caller gives.

mod audit;
mod checks;
mod document;
mod generate;
mod holds;
mod metrics;
mod probe;

use std::collections::{BTreeMap, BTreeSet};

use chrono::{TimeDelta, Utc};
use identity::{Minter, Role};
use kernel::id::OrganizationId;
use utoipa::openapi::OpenApi;

pub use audit::audited_actions;
use document::Operation;
pub use generate::Generated;
pub use metrics::{Sample, Scraped, scrape};
use probe::Probe;

/// What the walker needs to know beyond the document.
pub struct Walk {
    pub(crate) base_url: String,
    pub(crate) minter: Minter,
    pub(crate) organization: OrganizationId,
    pub(crate) objects: BTreeMap<String, String>,
    pub(crate) open_bodies: BTreeSet<String>,
    pub(crate) bodies: BTreeMap<String, serde_json::Value>,
    pub(crate) excused: BTreeMap<String, String>,
    pub(crate) in_effect: BTreeSet<String>,
    pub(crate) service: String,
    pub(crate) runner: Option<String>,
    pub(crate) leased: BTreeMap<String, String>,
    pub(crate) archives: BTreeMap<String, Vec<u8>>,
    pub(crate) values: BTreeMap<String, serde_json::Value>,
    pub(crate) not_generated: BTreeMap<String, String>,
    pub(crate) mixed: BTreeMap<String, String>,
}

/// What the walk found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walked {
    /// How many answers were checked.
    pub checks: usize,
    /// What was wrong, each with its operation; empty when all rules hold.
    pub faults: Vec<String>,
}

impl Walk {
    /// Walks the server at `base_url` (`http://host:port`). `minter` signs with a key that the
    /// server trusts as issuer; `organization` owns the objects.
    #[must_use]
    pub fn new(base_url: impl Into<String>, minter: Minter, organization: OrganizationId) -> Self {
        Self {
            base_url: base_url.into(),
            minter,
            organization,
            objects: BTreeMap::new(),
            open_bodies: BTreeSet::new(),
            bodies: BTreeMap::new(),
            excused: BTreeMap::new(),
            in_effect: BTreeSet::new(),
            service: "walker".to_owned(),
            runner: None,
            leased: BTreeMap::new(),
            archives: BTreeMap::new(),
            // Somebody who waits for nothing learns as much.
            values: BTreeMap::from([("wait_seconds".to_owned(), 0.into())]),
            not_generated: BTreeMap::new(),
            mixed: BTreeMap::new(),
        }
    }

    /// Names a real object of the organization: the path for a template, like
    /// `("/v1/notes/{id}", "/v1/notes/7")`. Its `GET` must answer, and must be 404 for others.
    #[must_use]
    pub fn object(mut self, template: impl Into<String>, path: impl Into<String>) -> Self {
        self.objects.insert(template.into(), path.into());
        self
    }

    /// Says that an operation (`"POST /v1/notes"`) takes a body of open form, in which no field is
    /// unknown.
    #[must_use]
    pub fn open_body(mut self, operation: impl Into<String>) -> Self {
        self.open_bodies.insert(operation.into());
        self
    }

    /// Gives a body that the operation (`"POST /v1/notes"`) takes, for the rules that show on right requests.
    #[must_use]
    pub fn body(mut self, operation: impl Into<String>, body: serde_json::Value) -> Self {
        self.bodies.insert(operation.into(), body);
        self
    }

    /// Says that the write (`"PUT /v1/notes/{id}"`, with its body) asks for what is so already. Then it succeeds
    /// whatever version it is meant for, as RFC 9110 (13.1.1) allows: a repeat after a lost answer is no error.
    #[must_use]
    pub fn in_effect(mut self, operation: impl Into<String>) -> Self {
        self.in_effect.insert(operation.into());
        self
    }

    /// Calls in the role of a service as this one, `walker` if nothing is said.
    #[must_use]
    pub fn as_service(mut self, name: impl Into<String>) -> Self {
        self.service = name.into();
        self
    }

    /// Says why no object of a template can be named; each other template must have one.
    #[must_use]
    pub fn without_object(mut self, template: impl Into<String>, why: impl Into<String>) -> Self {
        self.excused.insert(template.into(), why.into());
        self
    }

    /// Gives the token of a runner's session, for generated requests of a runner.
    #[must_use]
    pub fn runner(mut self, token: impl Into<String>) -> Self {
        self.runner = Some(token.into());
        self
    }

    /// Names what the runner has leased: the path for a template, for generated requests alone.
    #[must_use]
    pub fn leased(mut self, template: impl Into<String>, path: impl Into<String>) -> Self {
        self.leased.insert(template.into(), path.into());
        self
    }

    /// Gives a body that is no JSON, for generated requests.
    #[must_use]
    pub fn archive(mut self, operation: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        self.archives.insert(operation.into(), bytes.into());
        self
    }

    /// Gives the value that generated requests often have in the field or parameter of that name.
    #[must_use]
    pub fn value(mut self, name: impl Into<String>, value: impl Into<serde_json::Value>) -> Self {
        self.values.insert(name.into(), value.into());
        self
    }

    /// Says why an operation is not among the generated requests.
    #[must_use]
    pub fn not_generated(mut self, operation: impl Into<String>, why: impl Into<String>) -> Self {
        self.not_generated.insert(operation.into(), why.into());
        self
    }

    /// Says why an operation takes a request with a part that the document forbids.
    #[must_use]
    pub fn takes_wrong_parts(mut self, operation: impl Into<String>, why: impl Into<String>) -> Self {
        self.mixed.insert(operation.into(), why.into());
        self
    }

    /// Tries every operation of `document`.
    ///
    /// # Panics
    /// When the document cannot be written as JSON, or the server does not answer at all.
    pub async fn run(self, document: &OpenApi) -> Walked {
        let document = serde_json::to_value(document).expect("an OpenAPI document is JSON");
        let operations = document::operations(&document);
        let mut probe = Probe::new(&self.base_url);
        for operation in &operations {
            checks::operation(&mut probe, &self, operation).await;
        }
        checks::paths(&mut probe, &self, &operations).await;
        for operation in &operations {
            holds::operation(&mut probe, &self, operation).await;
        }
        audit::operations(&mut probe, &self, &document, &operations).await;
        probe.finish()
    }

    /// A token with `roles` in the objects' organization.
    pub(crate) fn token(&self, roles: &[Role]) -> String {
        self.mint(roles, self.organization)
    }

    /// A token with `roles` in another organization.
    pub(crate) fn stranger(&self, roles: &[Role]) -> String {
        self.mint(roles, OrganizationId::new_v7())
    }

    fn mint(&self, roles: &[Role], organization: OrganizationId) -> String {
        let subject = match roles {
            [Role::Runner] => format!("runner:{}", uuid::Uuid::now_v7()),
            [Role::Service] => format!("service:{}", self.service),
            _ => "person:walker".to_owned(),
        };
        let token = self
            .minter
            .mint(
                &subject,
                organization,
                roles.to_vec(),
                TimeDelta::minutes(10),
                Utc::now(),
            )
            .expect("the walker's key signs");
        token.expose().to_owned()
    }

    /// The path to try an operation at: a real object's, else one that fits the template.
    fn path(&self, operation: &Operation) -> String {
        match self.objects.get(&operation.template) {
            Some(path) => path.clone(),
            None => operation.some_path(),
        }
    }
}
