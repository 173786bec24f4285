//! Makes the data directory. It appears complete or not at all: `initdb` works under another name,
//! and a rename publishes the result.

use std::{
    fs::{self, DirBuilder},
    os::unix::fs::{DirBuilderExt, chown},
    path::Path,
    time::Duration,
};

use child_process::{Account, DeathSignal, Launch};

use crate::{Binaries, Config, Durability, Error, layout::Layout, log, password};

const INITDB_LIMIT: Duration = Duration::from_secs(300);

/// The programs that fit the data: the version that made it, else the newest.
pub(crate) fn programs_for(config: &Config, data: &Path) -> Result<Binaries, Error> {
    let made_by = fs::read_to_string(data.join("PG_VERSION"))
        .ok()
        .and_then(|text| text.trim().parse().ok());
    let found = match (&config.binaries, made_by) {
        (Some(directory), _) => Binaries::in_directory(directory)?,
        (None, Some(major)) => return Binaries::of_version(major, data),
        (None, None) => Binaries::find()?,
    };
    match made_by {
        Some(wanted) if wanted != found.major => Err(Error::NoBinariesOfVersion {
            data: data.to_owned(),
            wanted,
        }),
        _ => Ok(found),
    }
}

pub(crate) fn create_if_missing(
    config: &Config,
    layout: &Layout,
    binaries: &Binaries,
    secret: &str,
) -> Result<(), Error> {
    if layout.data.exists() {
        return Ok(());
    }
    let unfinished = layout.root.join("data.new");
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished).map_err(Error::files("remove", &unfinished))?;
    }
    DirBuilder::new()
        .mode(0o700)
        .create(&unfinished)
        .map_err(Error::files("create", &unfinished))?;
    if layout.account != Account::current() {
        let Account { uid, gid } = layout.account;
        chown(&unfinished, Some(uid), Some(gid)).map_err(Error::files("hand over", &unfinished))?;
    }
    let password_copy = layout.root.join("initdb.password");
    password::write_copy(&password_copy, secret, layout.account)?;
    let made = run_initdb(config, layout, binaries, &unfinished, &password_copy);
    let _ = fs::remove_file(&password_copy);
    made?;
    fs::rename(&unfinished, &layout.data).map_err(Error::files("create", &layout.data))
}

fn run_initdb(
    config: &Config,
    layout: &Layout,
    binaries: &Binaries,
    data: &Path,
    password: &Path,
) -> Result<(), Error> {
    let since = log::end_of(&layout.log);
    let mut initdb = Launch::new(binaries.program("initdb"), DeathSignal::Kill)
        .clear_env()
        .env("LC_ALL", "C.UTF-8")
        .args(["--username=postgres", "--auth=scram-sha-256", "--data-checksums"])
        .args(["--encoding=UTF8", "--locale=C.UTF-8", "--no-instructions"])
        .arg("--pgdata")
        .arg(data)
        .arg("--pwfile")
        .arg(password)
        .directory(&layout.root)
        .stdout(layout.open_log()?)
        .stderr(layout.open_log()?);
    if config.durability == Durability::Off {
        initdb = initdb.arg("--no-sync");
    }
    if layout.account != Account::current() {
        initdb = initdb.account(layout.account);
    }
    let status = initdb.spawn()?.wait_for(INITDB_LIMIT);
    match status {
        Some(status) if status.success() => Ok(()),
        _ => Err(Error::InitDb {
            log: log::last_lines(&layout.log, since),
        }),
    }
}
