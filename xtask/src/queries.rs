//! The committed descriptions of SQL queries (`<server>/.sqlx`), made and checked against real
//! databases with the migrations applied.
//!
//! A build takes them for true, because it has no database. So they are compared with what the
//! database itself says, whenever anything that they depend on has changed; a digest of all that is
//! left in the build directory when they agreed, and saves the next run the work.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
    time::SystemTime,
};

use anyhow::{Context, Result, bail, ensure};
use database::{DatabaseUrl, RolePasswords, ServiceDatabase, migrate, provision};
use postgres_embedded::{Config, Server};
use secrecy::SecretString;
use sha2::{Digest, Sha256};
use sqlx::migrate::Migrator;
use walkdir::WalkDir;

use crate::Violation;

/// A server crate, its database, and the variable that its queries are checked under (its sqlx.toml).
struct Checked {
    package: &'static str,
    directory: &'static str,
    database: ServiceDatabase,
    variable: &'static str,
}

const SERVERS: [Checked; 3] = [
    Checked {
        package: "resource-catalog-server",
        directory: "resource-catalog-service/server",
        database: ServiceDatabase::new("resource_catalog"),
        variable: "RESOURCE_CATALOG_DATABASE_URL",
    },
    Checked {
        package: "control-plane-server",
        directory: "control-plane-service/server",
        database: ServiceDatabase::new("control_plane"),
        variable: "CONTROL_PLANE_DATABASE_URL",
    },
    Checked {
        package: "execution-plane-server",
        directory: "execution-plane-service/server",
        database: ServiceDatabase::new("execution_plane"),
        variable: "EXECUTION_PLANE_DATABASE_URL",
    },
];

/// File name to content.
type Descriptions = BTreeMap<String, Vec<u8>>;

pub fn check(root: &Path) -> Result<Vec<Violation>> {
    let mut found = Vec::new();
    for server in &SERVERS {
        let stamp = stamp(root, server)?;
        if stamp.exists() {
            continue;
        }
        let committed = read(&root.join(server.directory).join(".sqlx"))?;
        let real = describe(root, server)?;
        let differences = differences(server.directory, &committed, &real);
        if differences.is_empty() {
            fs::create_dir_all(stamp.parent().unwrap_or(root))?;
            File::create(&stamp)?;
        }
        found.extend(differences);
    }
    Ok(found)
}

pub fn write(root: &Path) -> Result<()> {
    for server in &SERVERS {
        let real = describe(root, server)?;
        let directory = root.join(server.directory).join(".sqlx");
        if directory.exists() {
            fs::remove_dir_all(&directory)?;
        }
        fs::create_dir_all(&directory)?;
        for (name, content) in real {
            fs::write(directory.join(name), content)?;
        }
    }
    Ok(())
}

fn differences(directory: &str, committed: &Descriptions, real: &Descriptions) -> Vec<Violation> {
    let names: std::collections::BTreeSet<&String> = committed.keys().chain(real.keys()).collect();
    let mut found = Vec::new();
    for name in names {
        let what = match (committed.get(name), real.get(name)) {
            (Some(_), None) => "describes a query that no code has",
            (None, Some(_)) => "is missing: a query is not described",
            (Some(ours), Some(theirs)) if !same(ours, theirs) => "differs from what the database says",
            _ => continue,
        };
        found.push(Violation::new(
            format!("{directory}/.sqlx/{name}"),
            format!("{what}; run: xtask queries --write"),
        ));
    }
    found
}

/// Equal as JSON: a formatter may have laid it out anew.
fn same(a: &[u8], b: &[u8]) -> bool {
    let parse = |bytes| serde_json::from_slice::<serde_json::Value>(bytes).ok();
    parse(a).is_some() && parse(a) == parse(b)
}

fn read(directory: &Path) -> Result<Descriptions> {
    let mut found = Descriptions::new();
    if directory.exists() {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with("query-") {
                found.insert(name, fs::read(path)?);
            }
        }
    }
    Ok(found)
}

/// Compiles the server against a database of its own and takes what the macros write down.
fn describe(root: &Path, server: &Checked) -> Result<Descriptions> {
    let scratch = tempfile::tempdir()?;
    let runtime = tokio::runtime::Runtime::new()?;
    let database = runtime.block_on(start_database(root, server, scratch.path()))?;
    let described = scratch.path().join("described");
    fs::create_dir(&described)?;
    let compiled = compile(root, server, &database.url(server.database.name()), &described);
    runtime.block_on(database.stop())?;
    compiled?;
    read(&described)
}

async fn start_database(root: &Path, server: &Checked, scratch: &Path) -> Result<Server> {
    open_for_others(scratch)?;
    let database = Server::start(Config::for_tests(scratch.join("postgres"))).await?;
    let superuser: DatabaseUrl = database.url("postgres").parse()?;
    let owner = Some(SecretString::from(hex::encode(Sha256::digest(
        database.url("postgres"),
    ))));
    let passwords = RolePasswords {
        owner,
        ..RolePasswords::default()
    };
    let urls = provision(&superuser, server.database, &passwords).await?;
    let migrations = root.join(server.directory).join("migrations");
    let migrator = Migrator::new(migrations.clone())
        .await
        .with_context(|| format!("cannot read {migrations:?}"))?;
    migrate(&urls.owner, &migrator)
        .await
        .with_context(|| format!("cannot apply {migrations:?}"))?;
    Ok(database)
}

/// The database server's account must be able to pass through.
fn open_for_others(directory: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(fs::set_permissions(directory, fs::Permissions::from_mode(0o711))?)
}

fn compile(root: &Path, server: &Checked, url: &str, described: &Path) -> Result<()> {
    let source = root.join(server.directory).join("src/lib.rs");
    // Cargo does not know that the macros look at a database: only a newer file makes it compile.
    let file = File::options()
        .append(true)
        .open(&source)
        .with_context(|| format!("cannot open {source:?}"))?;
    file.set_modified(SystemTime::now())?;
    let run = Command::new("cargo")
        .args([
            "check",
            "--quiet",
            "--locked",
            "--all-targets",
            "--package",
            server.package,
        ])
        .current_dir(root)
        .env(server.variable, url)
        .env("SQLX_OFFLINE", "false")
        .env("SQLX_OFFLINE_DIR", described)
        .output()?;
    // The variable holds the password of a database that is gone in a moment; the text does not.
    ensure!(
        run.status.success(),
        "{} does not compile:\n{}",
        server.package,
        String::from_utf8_lossy(&run.stderr)
    );
    Ok(())
}

/// Named after everything that the descriptions depend on.
fn stamp(root: &Path, server: &Checked) -> Result<PathBuf> {
    let mut digest = Sha256::new();
    let directory = root.join(server.directory);
    let mut inputs: Vec<PathBuf> = vec![root.join("Cargo.lock"), directory.join("sqlx.toml")];
    for part in ["src", "tests", "migrations", ".sqlx"] {
        let files = WalkDir::new(directory.join(part)).into_iter().flatten();
        inputs.extend(
            files
                .filter(|entry| entry.file_type().is_file())
                .map(walkdir::DirEntry::into_path),
        );
    }
    inputs.sort();
    for path in inputs {
        let content = match fs::read(&path) {
            Ok(content) => content,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => bail!("cannot read {path:?}: {error}"),
        };
        digest.update(path.strip_prefix(root)?.as_os_str().as_encoded_bytes());
        digest.update(Sha256::digest(content));
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(target.join("queries-checked").join(hex::encode(digest.finalize())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptions(entries: &[(&str, &str)]) -> Descriptions {
        entries
            .iter()
            .map(|(name, content)| ((*name).to_owned(), content.as_bytes().to_vec()))
            .collect()
    }

    #[test]
    fn what_is_missing_left_over_or_different_is_told() {
        let committed = descriptions(&[("query-a", "{}"), ("query-b", "{}"), ("query-c", r#"{"x": 1}"#)]);
        let real = descriptions(&[("query-b", "{ }"), ("query-c", r#"{"x": 2}"#), ("query-d", "{}")]);
        let told: Vec<String> = differences("s", &committed, &real)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[0].contains("query-a") && told[0].contains("no code has"));
        assert!(told[1].contains("query-c") && told[1].contains("differs"));
        assert!(told[2].contains("query-d") && told[2].contains("missing"));
    }

    #[test]
    fn what_is_no_json_is_never_the_same() {
        assert!(!same(b"", b""));
        assert!(same(b"{\"a\":1}", b"{ \"a\": 1 }"));
    }
}
