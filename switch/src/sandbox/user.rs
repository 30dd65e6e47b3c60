//! User that the process becomes once its start is over.
//!
//! Law: a user who is named exists, or the switch does not start; the default user need not exist, and then every start says that the
//! switch stays root's process.

use std::ffi::CString;

use anyhow::{Context, anyhow};
use nix::errno::Errno;
use nix::unistd::{Gid, User, geteuid, getgrouplist};
use npcc_config::Config;
use npcc_config::model::Sandbox;
use npcc_dpdk::Ids;

use npcc_engine::log::note;

/// User whom the package makes.
const DEFAULT: &str = "npcc-switch";

/// User of a host, who is not root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Name of the user.
    pub name: String,
    /// IDs of the user and of the groups that the host's user database has for it.
    pub ids: Ids,
}

impl Account {
    /// Returns the user that this process is to become; `None` if it stays who it is: it was not started by root, the configuration wants
    /// root or no sandbox, or the host lacks the default user.
    ///
    /// # Errors
    /// The host does not have the user that the configuration names.
    pub fn of(config: &Config) -> anyhow::Result<Option<Account>> {
        if config.sandbox == Sandbox::Off || !geteuid().is_root() {
            return Ok(None);
        }
        match named(config.user.as_deref())? {
            Wanted::Account(account) => return Ok(Some(account)),
            Wanted::Root => {}
            Wanted::Missing => note(&format!(
                "note: the switch stays root's process, as the host has no user {DEFAULT}: useradd --system --shell /usr/sbin/nologin {DEFAULT}, \
                 or write `user: root` if that is intended"
            )),
        }
        Ok(None)
    }
}

/// User of a configuration, as the host has it.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    Account(Account),
    /// User ID 0.
    Root,
    /// The host lacks the default user.
    Missing,
}

fn named(name: Option<&str>) -> anyhow::Result<Wanted> {
    let user = match User::from_name(name.unwrap_or(DEFAULT)) {
        // A host without a user database says so for every name (getpwnam(3)).
        Err(Errno::ENOENT | Errno::ESRCH | Errno::EBADF | Errno::EPERM) => None,
        found => found.context("cannot read the host's users")?,
    };
    let user = match (user, name) {
        (Some(user), _) if user.uid.is_root() => return Ok(Wanted::Root),
        (None, Some("root")) => return Ok(Wanted::Root),
        (Some(user), _) => user,
        (None, None) => return Ok(Wanted::Missing),
        (None, Some(name)) => {
            return Err(anyhow!(
                "the host has no user {name} (user): useradd --system --shell /usr/sbin/nologin {name}, or name another, or `root`"
            ));
        }
    };
    let of_name = CString::new(user.name.as_str()).context("the user's name")?;
    let groups = getgrouplist(&of_name, user.gid).context("cannot read the groups of the user")?;
    Ok(Wanted::Account(Account {
        name: user.name,
        ids: Ids {
            user: user.uid.as_raw(),
            group: user.gid.as_raw(),
            groups: groups.into_iter().map(Gid::as_raw).collect(),
        },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law: a user that the file names exists; root is nobody to become.
    #[test]
    fn a_named_user_exists_and_is_not_root() {
        assert_eq!(named(Some("root")).unwrap(), Wanted::Root);
        let Wanted::Account(nobody) = named(Some("nobody")).unwrap() else {
            panic!("nobody is a user of every host");
        };
        assert_eq!(nobody.name, "nobody");
        assert!(nobody.ids.user != 0 && nobody.ids.group != 0, "{nobody:?}");
        assert!(nobody.ids.groups.contains(&nobody.ids.group), "{nobody:?}");
        let why = named(Some("npcc-no-such-user")).unwrap_err().to_string();
        assert!(why.contains("no user npcc-no-such-user"), "{why}");
    }
}
