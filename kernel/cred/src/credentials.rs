//! Who a thread acts for: users, groups and capabilities.
//!
//! Credentials belong to a thread, as in Linux (libc spreads a `setuid` to all threads).
//! They never change in place: a thread exchanges its whole set (`Thread::credentials`).
//! The rules for user numbers and capabilities are those of credentials(7) and
//! capabilities(7).

use alloc::sync::Arc;
use alloc::vec::Vec;

use sync::{Error, Result};

/// The numbers of one kind, user or group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IdSet {
    /// Who started it.
    pub real: u32,
    /// Who it acts for.
    pub effective: u32,
    /// Who it may act for again.
    pub saved: u32,
    /// Who it acts for in file systems.
    pub fs: u32,
}

impl IdSet {
    /// Whether `id` is the real, the effective and the saved one.
    pub fn is_all(&self, id: u32) -> bool {
        [self.real, self.effective, self.saved] == [id; 3]
    }

    /// Whether an unprivileged thread may take `id`.
    pub fn holds(&self, id: u32) -> bool {
        [self.real, self.effective, self.saved].contains(&id)
    }
}

/// Privileges that the kernel asks for (linux/capability.h).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are Linux's own")]
pub enum Capability {
    Chown = 0,
    DacOverride = 1,
    DacReadSearch = 2,
    Fowner = 3,
    Fsetid = 4,
    Kill = 5,
    Setgid = 6,
    Setuid = 7,
    Setpcap = 8,
    NetBindService = 10,
    NetAdmin = 12,
    NetRaw = 13,
    IpcLock = 14,
    IpcOwner = 15,
    SysRawio = 17,
    SysChroot = 18,
    SysPtrace = 19,
    SysAdmin = 21,
    SysBoot = 22,
    SysNice = 23,
    SysResource = 24,
    SysTime = 25,
    SysTtyConfig = 26,
    Mknod = 27,
    Syslog = 34,
    Perfmon = 38,
}

/// The highest capability number we know (CAP_CHECKPOINT_RESTORE).
pub const CAPABILITY_MAX: u32 = 40;
/// All capabilities.
pub const CAPABILITIES_ALL: u64 = (1 << (CAPABILITY_MAX + 1)) - 1;

/// Those that an ordinary user of file systems has not (capabilities(7), "Effect of user ID
/// changes"): CHOWN to FSETID, LINUX_IMMUTABLE, MKNOD, MAC_OVERRIDE.
const CAPABILITIES_FS: u64 = 0x1f | 1 << 9 | 1 << 27 | 1 << 32;

/// A thread's five sets; bit n is capability n.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capabilities {
    /// In force.
    pub effective: u64,
    /// May be put in force.
    pub permitted: u64,
    /// Pass to the next program, if that is marked so.
    pub inheritable: u64,
    /// The most that a program can get.
    pub bounding: u64,
    /// Pass to the next program in any case.
    pub ambient: u64,
}

/// Everything that says who a thread is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Credentials {
    /// Users.
    pub user: IdSet,
    /// Groups.
    pub group: IdSet,
    /// Further groups.
    pub groups: Arc<Vec<u32>>,
    /// Privileges.
    pub capabilities: Capabilities,
    /// How root and capabilities hang together (`SECBIT_*`, [`SECURE_NO_ROOT`] and its kin).
    pub secure_bits: u32,
}

/// Root gets no capabilities from exec. Each bit has another above it that locks it.
pub const SECURE_NO_ROOT: u32 = 1;
/// Capabilities do not follow a change of user.
pub const SECURE_NO_SETUID_FIXUP: u32 = 1 << 2;
/// Permitted capabilities survive the change to an ordinary user, up to the next exec.
pub const SECURE_KEEP_CAPS: u32 = 1 << 4;
/// The ambient set is not raised.
pub const SECURE_NO_AMBIENT_RAISE: u32 = 1 << 6;
/// All bits that lock another.
pub const SECURE_LOCKS: u32 = 0xaa;
/// All bits.
pub const SECURE_ALL: u32 = 0xff;

impl Default for Credentials {
    /// Those of the first program: root, with all privileges.
    fn default() -> Self {
        Self {
            user: IdSet::default(),
            group: IdSet::default(),
            groups: Arc::default(),
            capabilities: Capabilities {
                effective: CAPABILITIES_ALL,
                permitted: CAPABILITIES_ALL,
                inheritable: 0,
                bounding: CAPABILITIES_ALL,
                ambient: 0,
            },
            secure_bits: 0,
        }
    }
}

impl Credentials {
    /// Whether the privilege is in force.
    pub fn has(&self, capability: Capability) -> bool {
        self.capabilities.effective >> capability as u32 & 1 != 0
    }

    /// `Ok` if the privilege is in force.
    pub fn require(&self, capability: Capability) -> Result<()> {
        if self.has(capability) {
            Ok(())
        } else {
            Err(Error::NotPermitted)
        }
    }

    /// Whether the file-system group or a further one is `group`.
    pub fn is_in_group(&self, group: u32) -> bool {
        self.group.fs == group || self.groups.contains(&group)
    }

    /// Whether they act for other users or groups than `old`, or may do more.
    pub fn differs_in_rights(&self, old: &Self) -> bool {
        let ids = |who: &Self| [who.user, who.group].map(|ids| (ids.effective, ids.fs));
        ids(self) != ids(old) || self.capabilities.permitted & !old.capabilities.permitted != 0
    }

    /// Takes other users; capabilities follow, as capabilities(7) says: they end when
    /// the last of the users is no longer root, and go out of force with the effective one.
    pub fn set_user(&mut self, user: IdSet) {
        let old = self.user;
        self.user = user;
        if self.secure_bits & SECURE_NO_SETUID_FIXUP != 0 {
            return;
        }
        let keeps = self.keeps_capabilities();
        let caps = &mut self.capabilities;
        if old.holds(0) && !user.holds(0) {
            // Programs expect that what they run next has no rights left.
            caps.ambient = 0;
            if !keeps {
                caps.permitted = 0;
                caps.effective = 0;
            }
        }
        if old.effective == 0 && user.effective != 0 {
            caps.effective = 0;
        } else if old.effective != 0 && user.effective == 0 {
            caps.effective = caps.permitted;
        }
    }

    /// Takes another user for file systems: the capabilities that are about those go out of
    /// force with root, and come back with it.
    pub fn set_fs_user(&mut self, id: u32) {
        let old = core::mem::replace(&mut self.user.fs, id);
        let caps = &mut self.capabilities;
        match (old, id) {
            (0, 1..) => caps.effective &= !CAPABILITIES_FS,
            (1.., 0) => caps.effective |= caps.permitted & CAPABILITIES_FS,
            _ => {}
        }
    }

    /// What they become in a new program.
    #[must_use]
    pub fn for_new_program(&self) -> Self {
        let mut next = self.clone();
        next.user.saved = next.user.effective;
        next.user.fs = next.user.effective;
        next.group.saved = next.group.effective;
        next.group.fs = next.group.effective;
        next.secure_bits &= !SECURE_KEEP_CAPS;
        let caps = &mut next.capabilities;
        if self.is_set_id() {
            caps.ambient = 0;
        }
        let counts = self.secure_bits & SECURE_NO_ROOT == 0;
        let root = counts && (self.user.effective == 0 || self.user.real == 0);
        caps.permitted = if root {
            caps.inheritable | caps.bounding
        } else {
            caps.ambient
        };
        caps.effective = if root && self.user.effective == 0 {
            caps.permitted
        } else {
            caps.ambient
        };
        next
    }

    /// Whether they act for another user or group than the one that started the program.
    fn is_set_id(&self) -> bool {
        let differs = |ids: IdSet| ids.real != ids.effective;
        differs(self.user) || differs(self.group)
    }

    /// Whether permitted capabilities survive the change to an ordinary user.
    pub fn keeps_capabilities(&self) -> bool {
        self.secure_bits & SECURE_KEEP_CAPS != 0
    }
}
