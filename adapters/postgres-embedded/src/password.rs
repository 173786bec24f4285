//! The superuser's password: made once, kept in a file that only this process's account reads.

use std::{
    fs::{self, File},
    io::{ErrorKind, Write},
    os::unix::fs::{OpenOptionsExt, chown},
    path::Path,
};

use child_process::Account;

use crate::{Error, layout::Layout};

/// Reads the password, or makes it when there is no data yet that would need an older one.
pub(crate) fn read_or_create(layout: &Layout) -> Result<String, Error> {
    let path = &layout.password;
    match fs::read_to_string(path) {
        Ok(password) if !password.trim().is_empty() => Ok(password.trim().to_owned()),
        Ok(_) => Err(Error::PasswordLost { path: path.clone() }),
        Err(error) if error.kind() == ErrorKind::NotFound && !layout.data.exists() => create(path),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(Error::PasswordLost { path: path.clone() }),
        Err(source) => Err(Error::Files {
            what: "read",
            path: path.clone(),
            source,
        }),
    }
}

fn create(path: &Path) -> Result<String, Error> {
    let password = hex::encode(rand::random::<[u8; 24]>());
    let unfinished = path.with_extension("new");
    write_private(&unfinished, &password)?;
    fs::rename(&unfinished, path).map_err(Error::files("create", path))?;
    Ok(password)
}

/// A copy that `initdb` can read as its own account; the caller removes it.
pub(crate) fn write_copy(path: &Path, password: &str, account: Account) -> Result<(), Error> {
    write_private(path, password)?;
    if account != Account::current() {
        chown(path, Some(account.uid), Some(account.gid)).map_err(Error::files("hand over", path))?;
    }
    Ok(())
}

fn write_private(path: &Path, password: &str) -> Result<(), Error> {
    let _ = fs::remove_file(path);
    let open = File::options().write(true).create_new(true).mode(0o600).open(path);
    let mut file = open.map_err(Error::files("create", path))?;
    file.write_all(password.as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(Error::files("write", path))
}
