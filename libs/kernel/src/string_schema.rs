//! OpenAPI schemas of types that are strings of a stated form on the wire.

/// Implements `utoipa`'s schema traits for a type that serializes as a string matching `pattern`.
#[macro_export]
macro_rules! string_schema {
    ($name:ident, $description:literal, $pattern:literal, $max:expr, $example:literal) => {
        impl ::utoipa::PartialSchema for $name {
            fn schema() -> ::utoipa::openapi::RefOr<::utoipa::openapi::schema::Schema> {
                ::utoipa::openapi::ObjectBuilder::new()
                    .schema_type(::utoipa::openapi::schema::Type::String)
                    .description(Some($description))
                    .pattern(Some($pattern))
                    .max_length(Some($max))
                    .examples([::serde_json::json!($example)])
                    .into()
            }
        }
        impl ::utoipa::ToSchema for $name {}
    };
}
