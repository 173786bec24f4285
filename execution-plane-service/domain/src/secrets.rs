//! Which secrets an organization's jobs may name. A reference outside is refused at submission, and
//! again by the runner that would resolve it.

use std::collections::BTreeMap;

use contracts::SecretRef;
use kernel::id::OrganizationId;

/// Prefixes of references, as `vault://MOUNT/PATH`, cut at segments: `vault://ssh/prod` covers
/// `vault://ssh/prod/web` and not `vault://ssh/production`. `vault://` covers everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretRules {
    /// For organizations that have no rule of their own.
    pub others: Vec<String>,
    pub organizations: BTreeMap<OrganizationId, Vec<String>>,
}

impl Default for SecretRules {
    /// Everything: the store's own permissions decide.
    fn default() -> Self {
        Self {
            others: vec!["vault://".into()],
            organizations: BTreeMap::new(),
        }
    }
}

impl SecretRules {
    /// The rules as configuration lists them, each an organization or all others, and a prefix. Without
    /// any rule everything may be named; with one, what no rule allows may not.
    #[must_use]
    pub fn of(rules: impl IntoIterator<Item = (Option<OrganizationId>, String)>) -> Self {
        let mut rules = rules.into_iter().peekable();
        if rules.peek().is_none() {
            return Self::default();
        }
        let mut read = Self {
            others: Vec::new(),
            organizations: BTreeMap::new(),
        };
        for (organization, prefix) in rules {
            match organization {
                Some(named) => read.organizations.entry(named).or_default().push(prefix),
                None => read.others.push(prefix),
            }
        }
        read
    }

    /// Whether jobs of `organization` may name `reference`.
    #[must_use]
    pub fn allow(&self, organization: OrganizationId, reference: &SecretRef) -> bool {
        let prefixes = self.organizations.get(&organization).unwrap_or(&self.others);
        let named = format!("vault://{}/{}", reference.mount, reference.path);
        prefixes.iter().any(|prefix| covers(prefix, &named))
    }
}

fn covers(prefix: &str, named: &str) -> bool {
    let Some(rest) = named.strip_prefix(prefix) else {
        return false;
    };
    rest.is_empty() || prefix.ends_with('/') || rest.starts_with('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_covers_whole_segments_of_its_organization_only() {
        let (ours, theirs) = (OrganizationId::new_v7(), OrganizationId::new_v7());
        let rules = SecretRules {
            others: Vec::new(),
            organizations: [(ours, vec!["vault://ssh/prod".to_owned(), "vault://kv/".to_owned()])].into(),
        };
        let allow = |organization, text: &str| rules.allow(organization, &text.parse().unwrap());
        for good in ["vault://ssh/prod", "vault://ssh/prod/web#key", "vault://kv/x/y"] {
            assert!(allow(ours, good), "{good}");
            assert!(!allow(theirs, good), "{good}");
        }
        for bad in ["vault://ssh/production", "vault://ssh/dev", "vault://kv2/x"] {
            assert!(!allow(ours, bad), "{bad}");
        }
        assert!(SecretRules::default().allow(theirs, &"vault://any/thing".parse().unwrap()));
    }
}
