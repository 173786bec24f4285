//! Which account the server runs as, and whether that account can reach the data.
//!
//! PostgreSQL refuses root. So a platform run by root gives the server to a lesser account, and
//! the directories with it; a platform run by anyone else keeps its own account.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use child_process::Account;

use crate::Error;

/// Existing data says by its owner who it was made for; new data goes to `postgres`, else `nobody`.
pub(crate) fn choose(data: &Path) -> Result<Account, Error> {
    let me = Account::current();
    let owner = data.exists().then(|| Account::owner_of(data)).transpose();
    let owner = owner.map_err(Error::files("inspect", data))?;
    match owner {
        Some(owner) if owner.uid == me.uid && !me.is_root() => Ok(me),
        Some(owner) if me.is_root() && !owner.is_root() => Ok(owner),
        Some(owner) if owner.uid != me.uid => Err(Error::ForeignOwner {
            path: data.to_owned(),
            owner: owner.uid,
        }),
        _ if me.is_root() => Ok(Account::first_of(&["postgres", "nobody"])?),
        _ => Ok(me),
    }
}

/// Every directory above `root` must let the server's account pass. (`root` itself is ours to open.)
pub(crate) fn check_reachable(root: &Path, account: Account) -> Result<(), Error> {
    if account == Account::current() {
        return Ok(());
    }
    for directory in root.ancestors().skip(1) {
        let meta = fs::metadata(directory).map_err(Error::files("inspect", directory))?;
        if !may_enter(meta.uid(), meta.gid(), meta.mode(), account) {
            return Err(Error::Unreachable {
                directory: PathBuf::from(directory),
                uid: account.uid,
            });
        }
    }
    Ok(())
}

fn may_enter(owner: u32, group: u32, mode: u32, account: Account) -> bool {
    let bit = if owner == account.uid {
        0o100
    } else if group == account.gid {
        0o010
    } else {
        0o001
    };
    mode & bit != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_permission_decides() {
        let account = Account { uid: 5, gid: 6 };
        assert!(may_enter(0, 0, 0o711, account));
        assert!(!may_enter(0, 0, 0o700, account));
        assert!(may_enter(5, 0, 0o100, account));
        assert!(!may_enter(5, 0, 0o011, account));
        assert!(!may_enter(0, 6, 0o701, account));
    }
}
