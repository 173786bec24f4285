//! Paths inside a content bundle: relative, below its root, no way out.

/// A relative path of plain segments.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentPath(String);

/// The text is no such path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a path in the content bundle is relative, without empty, '.' or '..' segments, at most 1024 bytes")]
pub struct ContentPathError;

impl ContentPath {
    /// Checks `text`.
    ///
    /// # Errors
    /// When it is absolute, has odd segments, a NUL, or starts with `-` (it would be read as an option).
    pub fn parse(text: &str) -> Result<Self, ContentPathError> {
        let plain = |segment: &str| !segment.is_empty() && segment != "." && segment != "..";
        let good = text.len() <= 1024 && !text.contains('\0') && !text.starts_with('-') && text.split('/').all(plain);
        if good {
            Ok(Self(text.to_owned()))
        } else {
            Err(ContentPathError)
        }
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
