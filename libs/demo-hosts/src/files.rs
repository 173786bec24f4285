//! The directory of one host: its own `/etc`, home, `/tmp` and log, seen from outside.

use std::{
    fs::{self, File, Permissions},
    net::Ipv4Addr,
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
};

use child_process::Account;

use crate::{HostError, USER};

/// Accounts that exist inside the hosts only, when root starts them.
const DEPLOY: Account = Account {
    uid: 61_001,
    gid: 61_001,
};
const PRIVILEGE_SEPARATION: Account = Account {
    uid: 61_000,
    gid: 61_000,
};

/// Files of the machine that programs in a host need to see, besides `/usr`.
pub(crate) const SHARED_ETC: [&str; 4] = ["alternatives", "ld.so.cache", "localtime", "ssl"];

/// Writes down each command that SSH brings, then does what sshd itself would have done.
const RECORD_COMMAND: &str = r#"#!/bin/bash
printf '%(%Y-%m-%dT%H:%M:%S%z)T\t%q\n' -1 "${SSH_ORIGINAL_COMMAND-login}" >>/var/log/host/commands.log
if [[ -n ${SSH_ORIGINAL_COMMAND+set} ]]; then
    exec "$SHELL" -c "$SSH_ORIGINAL_COMMAND"
fi
exec -l "$SHELL"
"#;

#[derive(Debug, Clone)]
pub(crate) struct HostFiles {
    pub root: PathBuf,
    /// Who logs in: `deploy`'s account as the machine sees it.
    pub account: Account,
}

impl HostFiles {
    /// Lays out everything but the keys.
    pub fn create(root: &Path, name: &str, address: Ipv4Addr, port: u16) -> Result<Self, HostError> {
        let me = Account::current();
        let files = Self {
            root: root.to_owned(),
            account: if me.is_root() { DEPLOY } else { me },
        };
        for (directory, mode) in [("", 0o755), ("etc", 0o755), ("etc/ssh", 0o755), ("log", 0o755)] {
            files.directory(directory, mode)?;
        }
        files.own(&files.directory("home", 0o750)?)?;
        files.directory("tmp", 0o1777)?;
        files.accounts()?;
        files.write("etc/hostname", &format!("{name}\n"), 0o644)?;
        files.write("etc/hosts", &format!("127.0.0.1 localhost\n{address} {name}\n"), 0o644)?;
        files.write(
            "etc/nsswitch.conf",
            "passwd: files\ngroup: files\nshadow: files\nhosts: files\n",
            0o644,
        )?;
        files.write("etc/ssh/sshd_config", &sshd_config(address, port), 0o644)?;
        files.write("etc/ssh/record-command", RECORD_COMMAND, 0o755)?;
        files.own(&files.write("log/commands.log", "", 0o644)?)?;
        files.mount_points()?;
        Ok(files)
    }

    pub fn at(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    pub fn write(&self, path: &str, text: &str, mode: u32) -> Result<PathBuf, HostError> {
        let path = self.at(path);
        fs::write(&path, text).map_err(HostError::files("write", &path))?;
        fs::set_permissions(&path, Permissions::from_mode(mode)).map_err(HostError::files("open", &path))?;
        Ok(path)
    }

    /// Hands a path to the account that logs in.
    pub fn own(&self, path: &Path) -> Result<(), HostError> {
        if self.account == Account::current() {
            return Ok(());
        }
        chown(path, Some(self.account.uid), Some(self.account.gid)).map_err(HostError::files("hand over", path))
    }

    fn directory(&self, path: &str, mode: u32) -> Result<PathBuf, HostError> {
        let path = self.at(path);
        fs::create_dir_all(&path).map_err(HostError::files("create", &path))?;
        fs::set_permissions(&path, Permissions::from_mode(mode)).map_err(HostError::files("open", &path))?;
        Ok(path)
    }

    fn accounts(&self) -> Result<(), HostError> {
        let Account { uid, gid } = self.account;
        let Account {
            uid: separated,
            gid: separated_group,
        } = PRIVILEGE_SEPARATION;
        let passwd = format!(
            "root:*:0:0:root:/:/bin/bash\n\
             sshd:*:{separated}:{separated_group}:sshd:/run/sshd:/usr/sbin/nologin\n\
             {USER}:*:{uid}:{gid}:{USER}:/home/{USER}:/bin/bash\n"
        );
        self.write("etc/passwd", &passwd, 0o644)?;
        let group = format!("root:*:0:\nsshd:*:{separated_group}:\n{USER}:*:{gid}:\ntty:*:5:\n");
        self.write("etc/group", &group, 0o644)?;
        let shadow = format!("root:*:19000::::::\nsshd:*:19000::::::\n{USER}:*:19000::::::\n");
        self.write("etc/shadow", &shadow, 0o600).map(drop)
    }

    /// `/etc` is read-only inside, so what the machine lends must have its place beforehand.
    fn mount_points(&self) -> Result<(), HostError> {
        for name in SHARED_ETC {
            let source = Path::new("/etc").join(name);
            let place = self.at("etc").join(name);
            if source.is_dir() {
                fs::create_dir_all(&place).map_err(HostError::files("create", &place))?;
            } else if source.exists() {
                File::create(&place).map_err(HostError::files("create", &place))?;
            }
        }
        Ok(())
    }
}

fn sshd_config(address: Ipv4Addr, port: u16) -> String {
    format!(
        "ListenAddress {address}\n\
         Port {port}\n\
         HostKey /etc/ssh/ssh_host_ed25519_key\n\
         AuthorizedKeysFile /etc/ssh/authorized_keys\n\
         AllowUsers {USER}\n\
         PermitRootLogin no\n\
         PasswordAuthentication no\n\
         KbdInteractiveAuthentication no\n\
         UsePAM no\n\
         UseDNS no\n\
         PidFile none\n\
         PrintMotd no\n\
         X11Forwarding no\n\
         AcceptEnv LANG LC_*\n\
         MaxStartups 200:30:400\n\
         MaxSessions 100\n\
         Subsystem sftp /usr/lib/openssh/sftp-server\n\
         ForceCommand /etc/ssh/record-command\n"
    )
}
