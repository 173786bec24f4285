//! What an answer says beside its body.

/// A decoded answer with what its headers say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer<T> {
    /// The HTTP status: 200, 201, 202.
    pub status: u16,
    /// The object's version, from `ETag`.
    pub version: Option<i64>,
    /// The body.
    pub body: T,
}

/// Reads `"7"` or `W/"7"`.
pub(crate) fn version_of(etag: &str) -> Option<i64> {
    etag.trim().trim_start_matches("W/").trim_matches('"').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::version_of;

    #[test]
    fn an_entity_tag_is_a_version_in_quotes() {
        assert_eq!(version_of("\"7\""), Some(7));
        assert_eq!(version_of("W/\"12\""), Some(12));
        assert_eq!(version_of("\"abc\""), None);
    }
}
