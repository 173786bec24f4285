//! The authorization table: who may call what, in one place, checked complete.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use http::Method;
use identity::Role;
use utoipa::openapi::OpenApi;

use crate::audit::Keeping;
use crate::openapi::operations;

/// Who may call an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Anyone, without a token: health and the API document only.
    Public,
    /// Callers with at least one of these roles.
    Roles(&'static [Role]),
}

/// One line of the table: an operation, who may call it, and what its request must carry.
#[derive(Debug, Clone)]
pub struct Rule {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) access: Access,
    pub(crate) needs_idempotency_key: bool,
    pub(crate) takes_if_match: bool,
    pub(crate) body_limit: Option<usize>,
    pub(crate) refuses: &'static [u16],
    pub(crate) audit: Option<Keeping>,
}

impl Rule {
    /// Lets callers with any of `roles` call `method path`; `path` is the template of the OpenAPI
    /// document (`/v1/resources/{prefix}/{name}`).
    ///
    /// # Panics
    /// When `method` is no HTTP method.
    #[must_use]
    pub fn new(method: &'static str, path: &'static str, roles: &'static [Role]) -> Self {
        Self {
            method: method.parse().expect("the table names HTTP methods"),
            path,
            access: Access::Roles(roles),
            needs_idempotency_key: false,
            takes_if_match: false,
            body_limit: None,
            refuses: &[],
            audit: None,
        }
    }

    /// Lets anyone call `method path`.
    ///
    /// # Panics
    /// As [`Rule::new`].
    #[must_use]
    pub fn public(method: &'static str, path: &'static str) -> Self {
        Self {
            access: Access::Public,
            ..Self::new(method, path, &[])
        }
    }

    /// The request must carry an `Idempotency-Key`: checked before the handler, written into the
    /// OpenAPI document.
    #[must_use]
    pub const fn idempotency_key(mut self) -> Self {
        self.needs_idempotency_key = true;
        self
    }

    /// The request may carry `If-Match`: written into the OpenAPI document.
    #[must_use]
    pub const fn if_match(mut self) -> Self {
        self.takes_if_match = true;
        self
    }

    /// What the audit calls this write: `resource.apply`. Each request leaves a fact, allowed or refused.
    #[must_use]
    pub const fn audited(mut self, action: &'static str) -> Self {
        self.audit = Some(Keeping::Every { action });
        self
    }

    /// What the audit calls this write, of which only refusals leave facts; `why` is told in the OpenAPI document.
    #[must_use]
    pub const fn audited_when_refused(mut self, action: &'static str, why: &'static str) -> Self {
        self.audit = Some(Keeping::Refusals { action, why });
        self
    }

    /// Statuses that this operation refuses with besides those that its parts bring along (401 and 403 for a
    /// token, 404 for an object in the path, 422 for a query, 400, 413, 415 and 422 for a body, 412 for a
    /// version): written into the OpenAPI document.
    #[must_use]
    pub const fn refuses(mut self, statuses: &'static [u16]) -> Self {
        self.refuses = statuses;
        self
    }

    /// Another largest body than the API's.
    #[must_use]
    pub const fn body_limit(mut self, bytes: usize) -> Self {
        self.body_limit = Some(bytes);
        self
    }
}

/// A difference between the table and the OpenAPI document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum AccessFault {
    /// The document has an operation that the table does not know.
    #[error("{0} is served but is not in the authorization table")]
    NotInTable(String),
    /// The table has a line for an operation that the document does not have.
    #[error("{0} is in the authorization table but is not served")]
    NotServed(String),
    /// The table has two lines for one operation.
    #[error("{0} is in the authorization table twice")]
    Twice(String),
    /// A line lets nobody in.
    #[error("{0} names no role")]
    NoRole(String),
    /// A write of which the audit knows nothing.
    #[error("{0} is a write, but the table does not say what the audit calls it")]
    NotAudited(String),
}

/// The table. Lookup is by path template, then method.
#[derive(Debug, Clone, Default)]
pub struct AccessTable {
    rules: HashMap<&'static str, BTreeMap<String, Rule>>,
    twice: Vec<AccessFault>,
}

impl AccessTable {
    /// A table of `rules`.
    pub fn new(rules: impl IntoIterator<Item = Rule>) -> Self {
        let mut table = Self::default();
        for rule in rules {
            table.add(rule);
        }
        table
    }

    pub(crate) fn add(&mut self, rule: Rule) {
        let name = format!("{} {}", rule.method, rule.path);
        let methods = self.rules.entry(rule.path).or_default();
        if methods.insert(rule.method.as_str().to_owned(), rule).is_some() {
            self.twice.push(AccessFault::Twice(name));
        }
    }

    /// Every line.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.rules.values().flat_map(BTreeMap::values)
    }

    /// The line for a request. `HEAD` is answered as `GET`.
    pub(crate) fn find(&self, method: &Method, template: &str) -> Option<&Rule> {
        let method = if method == Method::HEAD { &Method::GET } else { method };
        self.rules.get(template)?.get(method.as_str())
    }

    /// The methods that a path takes, for `Allow`; empty when the path is unknown.
    pub(crate) fn methods(&self, template: &str) -> Vec<&str> {
        let mut methods: Vec<&str> = self
            .rules
            .get(template)
            .into_iter()
            .flat_map(BTreeMap::keys)
            .map(String::as_str)
            .collect();
        if methods.contains(&"GET") {
            methods.push("HEAD");
        }
        methods
    }

    /// Every write without a name in the audit.
    pub(crate) fn check_audited(&self) -> Vec<AccessFault> {
        let is_silent = |rule: &&Rule| rule.method != Method::GET && rule.audit.is_none();
        let name = |rule: &Rule| AccessFault::NotAudited(format!("{} {}", rule.method, rule.path));
        self.rules().filter(is_silent).map(name).collect()
    }

    /// Every difference between this table and `document`; empty when they match.
    #[must_use]
    pub fn check_complete(&self, document: &OpenApi) -> Vec<AccessFault> {
        let served: BTreeSet<String> = operations(document)
            .map(|(method, path, _)| format!("{method} {path}"))
            .collect();
        let known: BTreeSet<String> = self
            .rules()
            .map(|rule| format!("{} {}", rule.method, rule.path))
            .collect();
        let mut faults = self.twice.clone();
        faults.extend(served.difference(&known).cloned().map(AccessFault::NotInTable));
        faults.extend(known.difference(&served).cloned().map(AccessFault::NotServed));
        let empty = self.rules().filter(|rule| rule.access == Access::Roles(&[]));
        faults.extend(empty.map(|rule| AccessFault::NoRole(format!("{} {}", rule.method, rule.path))));
        faults
    }
}
