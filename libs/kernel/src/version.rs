//! Software versions in capability attributes, compared as semantic versions after a stated
//! normalization.
//!
//! Real inventories say `6.1.0-13-amd64`, `22.04` and `12`. The normalization: an optional leading
//! `v`; one to three numeric components, missing ones are zero, leading zeros are dropped
//! (`22.04` is 22.4.0); what follows the numbers is kept as build metadata (`+13-amd64`), so that a
//! distribution's suffix does not make a release a pre-release. A suffix that *is* a pre-release by
//! its first word (`alpha`, `beta`, `rc`, `pre`, `dev`, `snapshot`) stays one. What fits none of this is
//! an error that says so, never silently skipped.

use core::fmt;
use core::str::FromStr;

use semver::{BuildMetadata, Prerelease, Version, VersionReq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A normalized version with the text it came from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SoftwareVersion {
    normalized: Version,
    text: String,
}

/// The text cannot be read as a version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} cannot be read as a version: {problem}")]
pub struct VersionError {
    /// The text as given (cut at 80 characters).
    pub text: String,
    /// What is wrong with it.
    pub problem: String,
}

const PRE_RELEASE_WORDS: [&str; 6] = ["alpha", "beta", "rc", "pre", "dev", "snapshot"];

impl SoftwareVersion {
    /// The normalized semantic version.
    #[must_use]
    pub const fn normalized(&self) -> &Version {
        &self.normalized
    }
}

fn refuse(text: &str, problem: impl Into<String>) -> VersionError {
    VersionError {
        text: text.chars().take(80).collect(),
        problem: problem.into(),
    }
}

impl FromStr for SoftwareVersion {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bare = text.trim().strip_prefix(['v', 'V']).unwrap_or(text.trim());
        let mut numbers = [0_u64; 3];
        let mut rest = bare;
        let mut count = 0;
        while count < 3 {
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            if digits == 0 {
                break;
            }
            numbers[count] = rest[..digits]
                .parse()
                .map_err(|_| refuse(text, "a component is too large"))?;
            count += 1;
            rest = &rest[digits..];
            match rest.strip_prefix('.') {
                Some(next) if count < 3 && next.starts_with(|c: char| c.is_ascii_digit()) => rest = next,
                _ => break,
            }
        }
        if count == 0 {
            return Err(refuse(text, "it does not start with a number"));
        }
        let mut normalized = Version::new(numbers[0], numbers[1], numbers[2]);
        suffix(rest, &mut normalized).map_err(|problem| refuse(text, problem))?;
        Ok(Self {
            normalized,
            text: text.to_owned(),
        })
    }
}

fn suffix(rest: &str, version: &mut Version) -> Result<(), String> {
    if rest.is_empty() {
        return Ok(());
    }
    let (head, build) = rest.split_once('+').unwrap_or((rest, ""));
    let word = head.trim_start_matches(['-', '.', '~', '_']);
    let clean = |s: &str| -> Result<String, String> {
        let mapped: String = s
            .chars()
            .map(|c| if matches!(c, '~' | '_' | ':' | '+') { '-' } else { c })
            .collect();
        if mapped
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.'))
        {
            Ok(mapped
                .split('.')
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join("."))
        } else {
            Err(format!("unexpected characters in {s:?}"))
        }
    };
    let lower = word.to_ascii_lowercase();
    let is_pre = PRE_RELEASE_WORDS.iter().any(|pre| {
        lower
            .strip_prefix(pre)
            .is_some_and(|after| !after.starts_with(|c: char| c.is_ascii_alphabetic()))
    });
    if is_pre {
        let identifiers = clean(word)?;
        version.pre = Prerelease::new(&identifiers).map_err(|e| e.to_string())?;
        version.build = BuildMetadata::new(&clean(build)?).map_err(|e| e.to_string())?;
    } else {
        let whole = [clean(word)?, clean(build)?]
            .into_iter()
            .filter(|s| !s.is_empty())
            .collect::<Vec<_>>()
            .join(".");
        version.build = BuildMetadata::new(&whole).map_err(|e| e.to_string())?;
    }
    Ok(())
}

impl fmt::Display for SoftwareVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for SoftwareVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for SoftwareVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// A range of versions in Cargo's syntax: `>=1.28, <2`, `~1.30`, `12`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VersionRequirement(VersionReq);

impl FromStr for VersionRequirement {
    type Err = VersionError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        VersionReq::parse(text)
            .map(Self)
            .map_err(|e| refuse(text, e.to_string()))
    }
}

impl VersionRequirement {
    /// Whether `version`, normalized, lies in the range.
    #[must_use]
    pub fn accepts(&self, version: &SoftwareVersion) -> bool {
        self.0.matches(version.normalized())
    }
}

impl fmt::Display for VersionRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn versions_of_the_field_are_normalized() {
        for (text, normalized) in [
            ("1.30.2", "1.30.2"),
            ("v1.30", "1.30.0"),
            ("12", "12.0.0"),
            ("22.04", "22.4.0"),
            ("6.1.0-13-amd64", "6.1.0+13-amd64"),
            ("1.30.2-rc.1", "1.30.2-rc.1"),
            ("15.18-0+deb12u1", "15.18.0+0.deb12u1"),
            ("1.2.3.4", "1.2.3+4"),
            ("2.0.0-beta2", "2.0.0-beta2"),
            ("1.2.3-device", "1.2.3+device"),
            ("4.2~rc1", "4.2.0-rc1"),
        ] {
            assert_eq!(
                text.parse::<SoftwareVersion>().unwrap().normalized().to_string(),
                normalized,
                "{text}"
            );
        }
        for bad in ["", "latest", "-1", "1.2.3 (custom)", "99999999999999999999"] {
            assert!(bad.parse::<SoftwareVersion>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_distribution_suffix_does_not_make_a_release_a_pre_release() {
        let range: VersionRequirement = ">=6.1, <7".parse().unwrap();
        assert!(range.accepts(&"6.1.0-13-amd64".parse().unwrap()));
        assert!(!range.accepts(&"6.1.0-rc.1".parse().unwrap()));
        assert!(!range.accepts(&"7".parse().unwrap()));
    }

    proptest! {
        #[test]
        fn no_text_panics_and_what_parses_displays_as_given(text in ".{0,24}") {
            if let Ok(version) = text.parse::<SoftwareVersion>() {
                prop_assert_eq!(version.to_string(), text);
            }
        }
    }
}
