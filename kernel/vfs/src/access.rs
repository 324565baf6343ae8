//! May this program do that to this file: owner, group, others, and who is above them.

use alloc::sync::Arc;

use cred::{Capability, Credentials, SECURE_NO_SETUID_FIXUP};
use sync::{Error, Result};

use super::{FileType, Metadata};

/// Ways to use a file; the bits are those of access(2).
pub const EXECUTE: u32 = 1;
/// See [`EXECUTE`].
pub const WRITE: u32 = 2;
/// See [`EXECUTE`].
pub const READ: u32 = 4;

/// Whose rights a check uses: the effective ids, but for access(2) the real ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Who {
    /// The ids of the file system (those in effect).
    Effective,
    /// The ids of the user that started the program.
    Real,
}

/// Whether the current thread is above file permissions: the usual case of a server's
/// start, answered without counting references.
pub fn is_above_permissions() -> bool {
    cred::credentials().with(|credentials| credentials.has(Capability::DacOverride))
}

/// The rights of the current thread.
pub struct Subject {
    uid: u32,
    gid: u32,
    /// Those that count; bit n is capability n.
    capabilities: u64,
    credentials: Arc<Credentials>,
}

impl Subject {
    /// Of the current thread.
    pub fn current(who: Who) -> Self {
        let credentials = cred::credentials().get();
        let (uid, gid) = match who {
            Who::Effective => (credentials.user.fs, credentials.group.fs),
            Who::Real => (credentials.user.real, credentials.group.real),
        };
        let sets = &credentials.capabilities;
        let capabilities = match who {
            Who::Effective => sets.effective,
            // What a set-id program could do is not what its user could.
            Who::Real if credentials.secure_bits & SECURE_NO_SETUID_FIXUP != 0 => sets.effective,
            Who::Real if uid != 0 => 0,
            Who::Real => sets.permitted,
        };
        Self {
            uid,
            gid,
            capabilities,
            credentials,
        }
    }

    fn has(&self, capability: Capability) -> bool {
        self.capabilities >> capability as u32 & 1 != 0
    }

    fn require(&self, capability: Capability) -> Result<()> {
        match self.has(capability) {
            true => Ok(()),
            false => Err(Error::NotPermitted),
        }
    }

    /// The owner of what it creates: user and group.
    pub fn ids(&self) -> (u32, u32) {
        (self.uid, self.gid)
    }

    /// Whether it is above file permissions.
    pub fn overrides_permissions(&self) -> bool {
        self.has(Capability::DacOverride)
    }

    /// Whether it may create devices' nodes.
    pub fn check_mknod(&self) -> Result<()> {
        self.require(Capability::Mknod)
    }

    /// Whether it may change what all programs see: mounts.
    pub fn check_administrator(&self) -> Result<()> {
        self.require(Capability::SysAdmin)
    }

    /// Whether it may change its root.
    pub fn check_chroot(&self) -> Result<()> {
        self.require(Capability::SysChroot)
    }

    /// Whether it belongs to the group.
    pub fn is_in_group(&self, gid: u32) -> bool {
        gid == self.gid || self.credentials.is_in_group(gid)
    }

    /// Checks `wanted` (bits of access(2)) against the file's mode.
    pub fn check(&self, file: &Metadata, wanted: u32) -> Result<()> {
        if self.overrides_permissions() {
            let no_execute = file.kind != FileType::Directory && file.mode & 0o111 == 0;
            let denied = wanted & EXECUTE != 0 && no_execute;
            return if denied {
                Err(Error::AccessDenied)
            } else {
                Ok(())
            };
        }
        let granted = if self.uid == file.uid {
            file.mode >> 6
        } else if self.is_in_group(file.gid) {
            file.mode >> 3
        } else {
            file.mode
        };
        if wanted & !granted & 0o7 == 0 || self.reads_all(file, wanted) {
            Ok(())
        } else {
            Err(Error::AccessDenied)
        }
    }

    /// CAP_DAC_READ_SEARCH is above permissions for looking.
    fn reads_all(&self, file: &Metadata, wanted: u32) -> bool {
        let looks = match file.kind {
            FileType::Directory => wanted & WRITE == 0,
            _ => wanted == READ,
        };
        looks && self.has(Capability::DacReadSearch)
    }

    /// Whether a file may keep its set-group-id bit when this changes the mode.
    pub fn keeps_set_group(&self, gid: u32) -> bool {
        self.is_in_group(gid) || self.has(Capability::Fsetid)
    }

    /// Whether it may change mode and times as the owner may.
    pub fn check_owner(&self, file: &Metadata) -> Result<()> {
        self.allow(self.uid == file.uid, Capability::Fowner)
    }

    /// Whether it may give the file to this owner and group.
    pub fn check_chown(&self, file: &Metadata, uid: Option<u32>, gid: Option<u32>) -> Result<()> {
        let keeps_owner = uid.is_none_or(|uid| uid == file.uid);
        let own_group = gid.is_none_or(|gid| gid == file.gid || self.is_in_group(gid));
        self.allow(
            self.uid == file.uid && keeps_owner && own_group,
            Capability::Chown,
        )
    }

    /// In a directory with the sticky bit only owners remove names.
    pub fn check_sticky(&self, directory: &Metadata, file: &Metadata) -> Result<()> {
        let sticky = directory.mode & 0o1000 != 0;
        let owner = self.uid == file.uid || self.uid == directory.uid;
        self.allow(!sticky || owner, Capability::Fowner)
    }

    fn allow(&self, allowed: bool, otherwise: Capability) -> Result<()> {
        if allowed {
            Ok(())
        } else {
            self.require(otherwise)
        }
    }
}
