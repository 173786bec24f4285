//! Faults that operators meet, made for real on the data volume, and mended again.

use std::{
    fs::{self, File, Permissions},
    io::{self, ErrorKind, Write},
    os::unix::fs::{PermissionsExt, lchown},
    path::Path,
};

use child_process::Account;

use crate::{DATA_VOLUME, Host, HostError};

const FILLER: &str = ".filler";
const WRITE_BITS: u32 = 0o222;

impl Host {
    /// Fills the data volume to its last byte: what writes there now gets "no space left on device".
    pub fn break_disk_full(&self) -> Result<(), HostError> {
        let path = self.inside(DATA_VOLUME).join(FILLER);
        fill(&path).map_err(HostError::files("fill the volume with", &path))
    }

    /// Takes the right to write to the data volume from everyone. Hosts started by root lose the
    /// ownership as well; else a program there can give itself the right again to what it owns.
    pub fn break_no_write(&self) -> Result<(), HostError> {
        let volume = self.inside(DATA_VOLUME);
        let me = Account::current();
        change(&volume, me, &|mode| mode & !WRITE_BITS).map_err(HostError::files("protect", &volume))
    }

    /// Undoes both faults. A host that has none is left as it is.
    pub fn mend(&self) -> Result<(), HostError> {
        let volume = self.inside(DATA_VOLUME);
        match fs::remove_file(volume.join(FILLER)) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(HostError::files("free", &volume)(error)),
        }
        change(&volume, self.account(), &|mode| mode | 0o200).map_err(HostError::files("open", &volume))
    }
}

fn fill(path: &Path) -> io::Result<()> {
    let mut file = File::options().create(true).append(true).open(path)?;
    // Ever smaller pieces, so that not a page is left.
    for size in [1 << 20, 1 << 12, 1] {
        let piece = vec![0; size];
        loop {
            match file.write(&piece) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => break,
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

fn change(path: &Path, owner: Account, mode: &dyn Fn(u32) -> u32) -> io::Result<()> {
    let meta = fs::symlink_metadata(path)?;
    if Account::current().is_root() {
        lchown(path, Some(owner.uid), Some(owner.gid))?;
    }
    if meta.is_symlink() {
        return Ok(());
    }
    let changed = mode(meta.permissions().mode()) & 0o7777;
    fs::set_permissions(path, Permissions::from_mode(changed))?;
    if meta.is_dir() {
        for entry in fs::read_dir(path)? {
            change(&entry?.path(), owner, mode)?;
        }
    }
    Ok(())
}
