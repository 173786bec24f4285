//! The size of a list page.

use core::fmt;

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// How many items a page may have: 1 to 1,000, by default 100. A number outside is refused, not
/// bent. Use it as `#[serde(default)] limit: Limit` in a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Limit(u32);

impl Limit {
    /// The largest page.
    pub const MAX: u32 = 1000;

    /// The number of items.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl Default for Limit {
    fn default() -> Self {
        Self(100)
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = Limit;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number from 1 to 1000")
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<Limit, E> {
                match u32::try_from(number) {
                    Ok(limit @ 1..=Limit::MAX) => Ok(Limit(limit)),
                    _ => Err(E::custom(format_args!("{number} is not a number from 1 to 1000"))),
                }
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Limit, E> {
                let number = text.parse().map_err(|_| E::custom("not a number from 1 to 1000"))?;
                self.visit_u64(number)
            }
        }
        // A query gives text, a body a number.
        deserializer.deserialize_any(Number)
    }
}

impl PartialSchema for Limit {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(1))
            .maximum(Some(1000))
            .default(Some(100.into()))
            .description(Some("The largest number of items to return."))
            .into()
    }
}

impl ToSchema for Limit {}
