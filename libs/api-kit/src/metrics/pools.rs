//! How much of the connections to the database is in use.

use std::sync::{Mutex, PoisonError};

use database::Database;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::Number;

type Labels = [(&'static str, &'static str); 3];

pub(super) struct Pools {
    connections: Family<Labels, Number>,
    waiting: Family<[(&'static str, &'static str); 1], Number>,
    watched: Mutex<Vec<(&'static str, Database)>>,
}

impl Pools {
    pub(super) fn registered(registry: &mut Registry) -> Self {
        let pools = Self {
            connections: Family::default(),
            waiting: Family::default(),
            watched: Mutex::default(),
        };
        registry.register(
            "database_connections",
            "Connections of a pool: in use, idle, and the most there may be",
            pools.connections.clone(),
        );
        registry.register(
            "database_connection_waiters",
            "Tasks that wait for a connection of the pool for hot statements",
            pools.waiting.clone(),
        );
        pools
    }

    pub(super) fn add(&self, role: &'static str, database: Database) {
        self.watched
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((role, database));
    }

    /// Sets the numbers to what they are now.
    pub(super) fn look(&self) {
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        for (role, database) in &*watched {
            let hot = database.hot().status();
            let idle = hot.available;
            self.set(role, "hot", [hot.size.saturating_sub(idle), idle, hot.max_size]);
            self.waiting.get_or_create(&[("role", *role)]).set(hot.waiting as f64);
            let sqlx = database.sqlx();
            let (size, idle) = (sqlx.size() as usize, sqlx.num_idle());
            let most = sqlx.options().get_max_connections() as usize;
            self.set(role, "sqlx", [size.saturating_sub(idle), idle, most]);
        }
    }

    fn set(&self, role: &'static str, pool: &'static str, [used, idle, most]: [usize; 3]) {
        for (state, number) in [("used", used), ("idle", idle), ("most", most)] {
            let labels = [("role", role), ("pool", pool), ("state", state)];
            self.connections.get_or_create(&labels).set(number as f64);
        }
    }
}
