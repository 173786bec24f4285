//! The names of one service's database and roles.

use crate::url::DatabaseUrl;

/// Which database: `resource_catalog`, `control_plane` or `execution_plane`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ServiceDatabase(&'static str);

/// One of the three roles of a service's database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ServiceRole {
    /// Owns the tables and runs migrations; serves nothing.
    Owner,
    /// Serves requests, one organization a transaction.
    Api,
    /// Carries work on; sees all organizations only where a policy says so.
    Worker,
}

impl ServiceRole {
    /// All three.
    pub const ALL: [Self; 3] = [Self::Owner, Self::Api, Self::Worker];

    /// `owner`, `api` or `worker`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Api => "api",
            Self::Worker => "worker",
        }
    }
}

impl ServiceDatabase {
    /// Names a service's database. Meant for constants: a bad name fails the build.
    ///
    /// # Panics
    /// When `name` is not made of `a-z` and `_`: it becomes part of role names in SQL.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        let bytes = name.as_bytes();
        assert!(
            !bytes.is_empty() && bytes.len() <= 40,
            "a service's database needs a short name"
        );
        let mut index = 0;
        while index < bytes.len() {
            assert!(
                bytes[index].is_ascii_lowercase() || bytes[index] == b'_',
                "a service's database is named with a-z and _"
            );
            index += 1;
        }
        Self(name)
    }

    /// The name of the database.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.0
    }

    /// The name of one of its roles.
    #[must_use]
    pub fn role(self, role: ServiceRole) -> String {
        format!("{}_{}", self.0, role.as_str())
    }
}

/// The URLs of one service's database, one a role.
#[derive(Debug, Clone)]
pub struct ServiceUrls {
    /// For migrations.
    pub owner: DatabaseUrl,
    /// For requests.
    pub api: DatabaseUrl,
    /// For background work.
    pub worker: DatabaseUrl,
}

impl ServiceUrls {
    /// The URL of `role`.
    #[must_use]
    pub const fn of(&self, role: ServiceRole) -> &DatabaseUrl {
        match role {
            ServiceRole::Owner => &self.owner,
            ServiceRole::Api => &self.api,
            ServiceRole::Worker => &self.worker,
        }
    }
}
