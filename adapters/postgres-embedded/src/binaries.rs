//! Finds the server programs. Debian keeps them out of PATH, one directory a major version.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::Error;

/// The oldest major version that the services' SQL is written for.
const MINIMUM: u32 = 15;
const DEBIAN: &str = "/usr/lib/postgresql";

/// A directory that holds `initdb` and `postgres` of one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    pub directory: PathBuf,
    pub major: u32,
}

impl Binaries {
    /// The newest server programs of this machine, PATH before Debian's own places.
    pub fn find() -> Result<Self, Error> {
        Self::candidates()
            .into_iter()
            .next()
            .ok_or(Error::NoBinaries { minimum: MINIMUM })
    }

    /// The programs in a directory that the operator named.
    pub fn in_directory(directory: &Path) -> Result<Self, Error> {
        if !holds_server(directory) {
            return Err(Error::NoBinaries { minimum: MINIMUM });
        }
        let major = major_of(directory)?;
        Ok(Self {
            directory: directory.to_owned(),
            major,
        })
    }

    /// Programs of exactly the version that made `data`: no other can read it.
    pub(crate) fn of_version(major: u32, data: &Path) -> Result<Self, Error> {
        Self::candidates()
            .into_iter()
            .find(|binaries| binaries.major == major)
            .ok_or_else(|| Error::NoBinariesOfVersion {
                data: data.to_owned(),
                wanted: major,
            })
    }

    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn candidates() -> Vec<Self> {
        let search = env::var_os("PATH").unwrap_or_default();
        let on_path = env::split_paths(&search).filter(|directory| directory.is_absolute());
        let places: Vec<PathBuf> = on_path.chain(debian_directories(Path::new(DEBIAN))).collect();
        let mut found: Vec<Self> = Vec::new();
        for directory in places.iter().filter(|directory| holds_server(directory)) {
            match major_of(directory) {
                Ok(major) if major >= MINIMUM => found.push(Self {
                    directory: directory.clone(),
                    major,
                }),
                Ok(_) => {}
                Err(error) => tracing::debug!(?directory, %error, "passed over PostgreSQL programs"),
            }
        }
        found
    }
}

/// `<root>/<major>/bin`, newest first.
fn debian_directories(root: &Path) -> Vec<PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = fs::read_dir(root)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .collect();
    versions.sort_by(|a, b| b.cmp(a));
    versions.into_iter().map(|(_, directory)| directory).collect()
}

fn holds_server(directory: &Path) -> bool {
    ["initdb", "postgres"].iter().all(|name| directory.join(name).is_file())
}

fn major_of(directory: &Path) -> Result<u32, Error> {
    let program = directory.join("postgres");
    let run = Command::new(&program)
        .arg("--version")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let output = match run {
        Ok(output) => output,
        Err(source) => {
            return Err(Error::Version {
                program,
                source: Some(source),
            });
        }
    };
    parse_major(&String::from_utf8_lossy(&output.stdout)).ok_or(Error::Version { program, source: None })
}

/// `postgres (PostgreSQL) 15.20 (Debian 15.20-0+deb12u1)` and `postgres (PostgreSQL) 17beta1`.
fn parse_major(text: &str) -> Option<u32> {
    let version = text.split("(PostgreSQL)").nth(1)?.trim_start();
    let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_major_version_of_releases_and_betas() {
        assert_eq!(
            parse_major("postgres (PostgreSQL) 15.20 (Debian 15.20-0+deb12u1)\n"),
            Some(15)
        );
        assert_eq!(parse_major("postgres (PostgreSQL) 19beta1\n"), Some(19));
        assert_eq!(parse_major("something else 15.1"), None);
    }

    #[test]
    fn prefers_the_newest_of_debians_versions() {
        let root = tempfile::tempdir().unwrap();
        for version in ["9.6", "15", "17", "notes"] {
            fs::create_dir_all(root.path().join(version).join("bin")).unwrap();
        }
        let found = debian_directories(root.path());
        assert_eq!(found, [root.path().join("17/bin"), root.path().join("15/bin")]);
    }

    #[test]
    fn names_the_command_that_installs_what_is_missing() {
        let empty = tempfile::tempdir().unwrap();
        let error = Binaries::in_directory(empty.path()).unwrap_err().to_string();
        assert!(
            error.contains("apt-get install --no-install-recommends postgresql"),
            "{error}"
        );
    }
}
