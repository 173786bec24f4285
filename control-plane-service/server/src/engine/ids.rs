//! Where the domain's ids and jitter come from in a running service.

use control_plane_operation::IdSource;
use uuid::Uuid;

/// UUIDv7 and the operating system's randomness.
pub struct FreshIds;

impl IdSource for FreshIds {
    fn next_id(&mut self) -> Uuid {
        Uuid::now_v7()
    }

    fn jitter(&mut self) -> u32 {
        rand::random_range(0..1_000)
    }
}
