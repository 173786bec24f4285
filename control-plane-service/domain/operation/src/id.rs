//! Ids that the operation itself hands out. A new attempt or command id is the domain's choice alone:
//! whoever carries out an effect may repeat it, but never renames it.

use kernel::typed_id;
use uuid::Uuid;

typed_id!(
    /// One asking of a gate. A gate that is asked again has another id, so a late decision on the
    /// earlier asking can be told apart.
    GateId
);
typed_id!(
    /// One intervention (command) by a person or program; applied once, for ever.
    InterventionId
);
typed_id!(
    /// One effect; whoever carries it out repeats it under this id.
    EffectId
);
typed_id!(
    /// One wish for claims; a grant names it, so that a grant for an earlier wish is not mistaken.
    ClaimRequestId
);

/// Where ids and jitter come from, so that deciding stays a pure function.
pub trait IdSource {
    /// A fresh id; time-ordered (UUIDv7) outside tests.
    fn next_id(&mut self) -> Uuid;
    /// A number from 0 to 999, for the jitter of backoffs.
    fn jitter(&mut self) -> u32;
}
