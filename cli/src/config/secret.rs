use std::path::Path;

use secrecy::SecretString;

/// Reads what a reference names: `file:///absolute/path` (one line break at the end is dropped) or `env://NAME`.
///
/// # Errors
/// What is wrong with the reference, never what it holds.
pub fn resolve(reference: &str) -> Result<SecretString, String> {
    if let Some(path) = reference.strip_prefix("file://") {
        if !Path::new(path).is_absolute() {
            return Err("file:// takes an absolute path".to_owned());
        }
        let text = std::fs::read_to_string(path).map_err(|error| format!("{path} cannot be read: {error}"))?;
        let text = text.strip_suffix('\n').unwrap_or(&text);
        return if text.is_empty() {
            Err(format!("{path} is empty"))
        } else {
            Ok(text.to_owned().into())
        };
    }
    if let Some(name) = reference.strip_prefix("env://") {
        return std::env::var(name)
            .map(SecretString::from)
            .map_err(|_| format!("the variable {name} is not set"));
    }
    Err("a secret is a reference: file:///path or env://NAME".to_owned())
}

#[cfg(test)]
mod tests {
    use super::resolve;
    use secrecy::ExposeSecret as _;

    #[test]
    fn a_value_in_place_of_a_reference_is_refused_without_repeating_it() {
        let error = resolve("hunter2").unwrap_err();
        assert!(!error.contains("hunter2"));
    }

    #[test]
    fn a_file_is_read_without_its_last_line_break() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("s");
        std::fs::write(&file, "a\nb\n").unwrap();
        assert_eq!(
            resolve(&format!("file://{}", file.display())).unwrap().expose_secret(),
            "a\nb"
        );
        assert!(resolve("file://relative").is_err());
        assert!(resolve("env://PLATFORM_TEST_NO_SUCH_VARIABLE").is_err());
    }
}
