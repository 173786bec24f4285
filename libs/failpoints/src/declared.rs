//! The names that this process's services declared.

use std::sync::{PoisonError, RwLock};

static LISTS: RwLock<Vec<&'static [&'static str]>> = RwLock::new(Vec::new());

/// Makes a list of names known in this process; again is no harm.
pub fn declare(names: &'static [&'static str]) {
    let mut lists = LISTS.write().unwrap_or_else(PoisonError::into_inner);
    if !lists.contains(&names) {
        lists.push(names);
    }
}

/// Every declared name.
#[must_use]
pub fn declared() -> Vec<&'static str> {
    let lists = LISTS.read().unwrap_or_else(PoisonError::into_inner);
    lists.iter().flat_map(|list| list.iter().copied()).collect()
}

/// In debug builds: a name of a service that declared a list must be in it. The service is the
/// first word of a name.
pub(crate) fn check(name: &'static str) {
    if cfg!(debug_assertions) {
        let names = declared();
        let service = |name: &'static str| name.split('.').next();
        let must_be_known = names.iter().any(|known| service(known) == service(name));
        assert!(
            !must_be_known || names.contains(&name),
            "the failpoint {name:?} is reached but not declared"
        );
    }
}
