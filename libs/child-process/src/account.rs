//! The user account that a child runs as when the parent is root and the program must not be.

use std::{fs, io, os::unix::fs::MetadataExt, path::Path};

use thiserror::Error;

/// Numeric user and group of one account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    pub uid: u32,
    pub gid: u32,
}

#[derive(Debug, Error)]
pub enum AccountError {
    #[error("cannot read the list of accounts /etc/passwd")]
    Unreadable(#[source] io::Error),
    #[error("none of the accounts {0} exists on this machine")]
    Missing(String),
}

impl Account {
    /// The account that this process runs as.
    pub fn current() -> Self {
        Self {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
        }
    }

    pub fn is_root(self) -> bool {
        self.uid == 0
    }

    /// The owner of a file or directory.
    pub fn owner_of(path: &Path) -> io::Result<Self> {
        let meta = fs::metadata(path)?;
        Ok(Self {
            uid: meta.uid(),
            gid: meta.gid(),
        })
    }

    /// The first of `names` that the machine knows.
    pub fn first_of(names: &[&str]) -> Result<Self, AccountError> {
        let passwd = fs::read_to_string("/etc/passwd").map_err(AccountError::Unreadable)?;
        names
            .iter()
            .find_map(|name| find_in(&passwd, name))
            .ok_or_else(|| AccountError::Missing(names.join(", ")))
    }
}

fn find_in(passwd: &str, name: &str) -> Option<Account> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next()? != name {
            return None;
        }
        let uid = fields.nth(1)?.parse().ok()?;
        let gid = fields.next()?.parse().ok()?;
        Some(Account { uid, gid })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\npostgres:x:101:104::/var:/bin/sh\nbad line\n";

    #[test]
    fn finds_an_account_by_its_whole_name() {
        assert_eq!(find_in(PASSWD, "postgres"), Some(Account { uid: 101, gid: 104 }));
        assert_eq!(find_in(PASSWD, "post"), None);
        assert_eq!(find_in(PASSWD, "bad line"), None);
    }
}
