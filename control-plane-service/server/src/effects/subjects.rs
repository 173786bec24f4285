//! One thing at a time on one subject (an attempt, a command), many subjects at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use uuid::Uuid;

/// Subjects that someone works on.
#[derive(Default)]
pub struct Subjects(Mutex<HashMap<Uuid, Weak<AsyncMutex<()>>>>);

impl Subjects {
    /// Waits until nobody works on `subject`.
    pub async fn wait_for(&self, subject: Uuid) -> OwnedMutexGuard<()> {
        let lock = {
            let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if table.len() > 1_024 {
                table.retain(|_, lock| lock.strong_count() > 0);
            }
            let known = table.get(&subject).and_then(Weak::upgrade);
            let lock = known.unwrap_or_default();
            table.insert(subject, Arc::downgrade(&lock));
            lock
        };
        lock.lock_owned().await
    }
}
