//! Where things lie: data, socket, password, log and lock of one server.

use std::{
    env,
    fs::{self, DirBuilder, File, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown},
    path::{Path, PathBuf},
};

use child_process::Account;
use rustix::fs::{FlockOperation, flock};
use uuid::Uuid;

use crate::{Error, account};

/// The kernel's limit for a socket's path is 108 bytes with its final NUL.
const LONGEST_SOCKET_PATH: usize = 107;

/// Where a platform keeps its data when nobody says: a place that a lesser account can reach too.
pub fn default_root() -> PathBuf {
    if Account::current().is_root() {
        return PathBuf::from("/var/lib/platform-core/postgres");
    }
    let data = env::var_os("XDG_DATA_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    let data = data.or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/share")));
    data.unwrap_or_else(env::temp_dir).join("platform-core/postgres")
}

#[derive(Debug)]
pub(crate) struct Layout {
    pub root: PathBuf,
    pub data: PathBuf,
    pub sockets: PathBuf,
    pub password: PathBuf,
    pub log: PathBuf,
    pub account: Account,
    /// Held for as long as this process owns the directory.
    _lock: File,
}

impl Layout {
    /// Makes the directories, takes the lock and settles the account.
    pub fn prepare(root: &Path) -> Result<Self, Error> {
        fs::create_dir_all(root).map_err(Error::files("create", root))?;
        let root = root.canonicalize().map_err(Error::files("resolve", root))?;
        let data = root.join("data");
        let account = account::choose(&data)?;
        account::check_reachable(&root, account)?;
        let mode = if account == Account::current() { 0o700 } else { 0o711 };
        fs::set_permissions(&root, Permissions::from_mode(mode)).map_err(Error::files("open", &root))?;
        let lock = lock(&root)?;
        let sockets = socket_directory(&root);
        own_directory(&sockets, account)?;
        Ok(Self {
            data,
            sockets,
            password: root.join("superuser.password"),
            log: root.join("postgres.log"),
            account,
            _lock: lock,
            root,
        })
    }

    /// What a start of PostgreSQL writes to, in addition to what is there.
    pub fn open_log(&self) -> Result<File, Error> {
        let open = File::options().create(true).append(true).open(&self.log);
        open.map_err(Error::files("open", &self.log))
    }

    /// The socket directory lies outside the root when the root's path is long.
    pub fn remove_sockets(&self) {
        if !self.sockets.starts_with(&self.root) {
            let _ = fs::remove_dir_all(&self.sockets);
        }
    }
}

fn lock(root: &Path) -> Result<File, Error> {
    let path = root.join("lock");
    let file = File::options().create(true).write(true).truncate(false).open(&path);
    let file = file.map_err(Error::files("open", &path))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::InUse(root.to_owned())),
        Err(error) => Err(Error::Files {
            what: "lock",
            path,
            source: error.into(),
        }),
    }
}

/// Beside the data where the path is short enough, else a short path that the root determines, so
/// that a later start finds and reuses it.
fn socket_directory(root: &Path) -> PathBuf {
    let near = root.join("run");
    let plain = near.to_str().is_some_and(|path| !path.contains([',', '"', '\'', ' ']));
    if plain && socket_path(&near, u16::MAX).as_os_str().len() <= LONGEST_SOCKET_PATH {
        return near;
    }
    let name = Uuid::new_v5(&Uuid::NAMESPACE_OID, root.as_os_str().as_encoded_bytes())
        .simple()
        .to_string();
    Path::new("/tmp").join(format!("platform-postgres-{}", &name[..16]))
}

/// The longest name that PostgreSQL makes there is the socket's lock file.
fn socket_path(directory: &Path, port: u16) -> PathBuf {
    directory.join(format!(".s.PGSQL.{port}.lock"))
}

/// A directory that only the account can enter; one of the same name that is someone else's is refused.
fn own_directory(path: &Path, account: Account) -> Result<(), Error> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(source) => {
            return Err(Error::Files {
                what: "create",
                path: path.to_owned(),
                source,
            });
        }
    }
    let meta = fs::symlink_metadata(path).map_err(Error::files("inspect", path))?;
    let ours = [account.uid, Account::current().uid].contains(&meta.uid());
    if !meta.is_dir() || !ours {
        return Err(Error::ForeignOwner {
            path: path.to_owned(),
            owner: meta.uid(),
        });
    }
    if meta.uid() != account.uid {
        chown(path, Some(account.uid), Some(account.gid)).map_err(Error::files("hand over", path))?;
    }
    fs::set_permissions(path, Permissions::from_mode(0o700)).map_err(Error::files("close", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_path_always_fits_the_kernels_limit() {
        let deep = PathBuf::from(format!("/srv/{}", "d/".repeat(80)));
        for root in [Path::new("/srv/short"), deep.as_path(), Path::new("/srv/with space")] {
            let path = socket_path(&socket_directory(root), 65535);
            assert!(path.as_os_str().len() <= LONGEST_SOCKET_PATH, "{}", path.display());
        }
        assert_eq!(socket_directory(Path::new("/srv/short")), Path::new("/srv/short/run"));
        assert_eq!(socket_directory(&deep), socket_directory(&deep));
    }

    #[test]
    fn a_second_owner_of_the_same_root_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let first = lock(root.path()).unwrap();
        assert!(matches!(lock(root.path()), Err(Error::InUse(_))));
        drop(first);
        lock(root.path()).unwrap();
    }

    #[test]
    fn a_place_that_the_servers_account_cannot_enter_is_named() {
        let root = tempfile::tempdir().unwrap();
        fs::set_permissions(root.path(), Permissions::from_mode(0o700)).unwrap();
        let stranger = Account {
            uid: 4_000_000,
            gid: 4_000_000,
        };
        let error = account::check_reachable(&root.path().join("postgres"), stranger).unwrap_err();
        assert!(
            error.to_string().contains(&root.path().display().to_string()),
            "{error}"
        );
    }
}
