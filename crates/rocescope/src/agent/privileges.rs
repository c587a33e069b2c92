//! What an agent may still do once its interfaces are open: nothing that takes a privilege.
//!
//! All of this happens before there is a second thread, since the kernel keeps capabilities for
//! each thread. There is no way back, and that is tried.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use nix::unistd::{Gid, Group, Uid, User, geteuid, getuid, setgid, setgroups, setuid};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs};

use crate::config::Account;

/// A user and a group that exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    name: String,
    user: Uid,
    group: Gid,
}

impl Who {
    /// Looks a user and its group up.
    ///
    /// # Errors
    /// In a line: there is no such user or group, it is root, or this process cannot become it.
    pub fn find(account: &Account) -> Result<Self, String> {
        let name = &account.user;
        let failed = |error: nix::Error| format!("agent.user: {name}: {error}");
        let found = match name.parse() {
            Ok(number) => User::from_uid(Uid::from_raw(number)),
            Err(_) => User::from_name(name),
        };
        let found = found.map_err(failed)?;
        let user = match (&found, name.parse()) {
            (Some(found), _) => found.uid,
            // A number need not have a name, as in a container.
            (None, Ok(number)) => Uid::from_raw(number),
            (None, Err(_)) => return Err(format!("agent.user: {name}: there is no such user")),
        };
        if user.is_root() {
            return Err(format!("agent.user: {name} is root, expected a user that may do less"));
        }
        let group = match (&account.group, &found) {
            (Some(group), _) => group_of(group).map_err(|error| format!("agent.group: {error}"))?,
            (None, Some(found)) => found.gid,
            (None, None) => {
                return Err(format!(
                    "agent.group: missing, and user {name} is in no list of users"
                ));
            }
        };
        if !geteuid().is_root() && (geteuid(), getuid()) != (user, user) {
            return Err(format!(
                "agent.user: only root can become {name}, and this is user {}",
                geteuid()
            ));
        }
        Ok(Self { name: name.clone(), user, group })
    }

    /// Gives a file to the user.
    ///
    /// # Errors
    /// In a line.
    pub fn give(&self, path: &Path) -> Result<(), String> {
        if !geteuid().is_root() {
            return Ok(());
        }
        std::os::unix::fs::chown(path, Some(self.user.as_raw()), Some(self.group.as_raw()))
            .map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Becomes the user, with its one group, no capability, and no way to gain any.
    ///
    /// # Errors
    /// In a line, and then the process must not go on: it may have done a part of it.
    // SEQ-10.3
    pub fn become_it(&self) -> Result<(), String> {
        let name = &self.name;
        let failed = |error: nix::Error| format!("agent.user: cannot become {name}: {error}");
        let refused = |error: rustix::io::Errno| {
            format!("agent.user: privileges of {name} are not dropped: {error}")
        };
        if geteuid().is_root() {
            setgroups(&[self.group]).map_err(failed)?;
            setgid(self.group).map_err(failed)?;
            setuid(self.user).map_err(failed)?;
        }
        let none = CapabilitySet::empty();
        let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
        set_capabilities(None, sets).map_err(refused)?;
        set_no_new_privs(true).map_err(refused)?;
        match setuid(Uid::from_raw(0)) {
            Ok(()) => Err(format!("agent.user: {name} could still become root")),
            Err(_) => Ok(()),
        }
    }

    /// What the user is called in the configuration.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Lets a group, or the socket's own, use a socket beside its owner; nobody else.
///
/// # Errors
/// In a line: there is no such group, or it may not be done.
pub fn group_gets(path: &Path, group: Option<&str>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("socket_group: {}: {error}", path.display());
    if let Some(group) = group {
        let group = group_of(group).map_err(|error| format!("socket_group: {error}"))?;
        std::os::unix::fs::chown(path, None, Some(group.as_raw())).map_err(failed)?;
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660)).map_err(failed)
}

/// A group by its name or number.
///
/// # Errors
/// In a line, with the name: there is no such group.
pub fn group_of(name: &str) -> Result<Gid, String> {
    if let Ok(number) = name.parse() {
        return Ok(Gid::from_raw(number));
    }
    match Group::from_name(name) {
        Ok(Some(group)) => Ok(group.gid),
        Ok(None) => Err(format!("{name}: there is no such group")),
        Err(error) => Err(format!("{name}: {error}")),
    }
}
