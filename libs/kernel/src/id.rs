//! Typed identifiers: one Rust type per kind of entity, so that an attempt id can never be passed
//! where an operation id is meant. On the wire all of them are plain UUIDs.

/// Declares a UUID newtype with serde, ordering, display, parsing and an OpenAPI schema.
#[macro_export]
macro_rules! typed_id {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(
            Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ::serde::Serialize,
            ::serde::Deserialize, ::utoipa::ToSchema,
        )]
        #[serde(transparent)]
        #[schema(value_type = ::uuid::Uuid)]
        pub struct $name(pub ::uuid::Uuid);

        impl $name {
            /// A fresh, time-ordered identifier (UUIDv7).
            #[must_use]
            pub fn new_v7() -> Self {
                Self(::uuid::Uuid::now_v7())
            }

            /// The bare UUID, for stores and wires.
            #[must_use]
            pub const fn as_uuid(self) -> ::uuid::Uuid {
                self.0
            }
        }

        impl ::core::fmt::Display for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::core::fmt::Display::fmt(&self.0, f)
            }
        }

        impl ::core::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl ::core::str::FromStr for $name {
            type Err = ::uuid::Error;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                ::uuid::Uuid::parse_str(text).map(Self)
            }
        }

        impl From<::uuid::Uuid> for $name {
            fn from(value: ::uuid::Uuid) -> Self {
                Self(value)
            }
        }
    };
}

typed_id!(
    /// The tenant that owns an object. What another organization owns does not exist for a caller.
    OrganizationId
);
typed_id!(
    /// One operation of control-plane; also the id of its durable workflow.
    OperationId
);
typed_id!(
    /// One try of a job. Chosen by control-plane; the idempotency key of its submission, for ever.
    AttemptId
);
typed_id!(
    /// One incarnation of a resource: a deleted and re-created `node/worker-3` has another.
    ResourceUid
);
typed_id!(
    /// One stored plan (all its revisions belong to one operation).
    PlanId
);
typed_id!(
    /// One resource update command; de-duplicated for ever.
    CommandId
);
typed_id!(
    /// One registered runner process.
    RunnerId
);
