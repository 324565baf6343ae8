//! How a file system is mounted.

use bitflags::bitflags;

bitflags! {
    /// What a mount forbids or spares; the bits are Linux's `MS_*`.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct MountFlags: u32 {
        /// Nothing may change.
        const RDONLY = 1;
        /// Set-id bits mean nothing.
        const NOSUID = 2;
        /// Devices' nodes cannot be opened.
        const NODEV = 4;
        /// Programs cannot be executed.
        const NOEXEC = 8;
        /// Symbolic links are not followed.
        const NOSYMFOLLOW = 256;
        /// Reads do not set access times.
        const NOATIME = 1024;
        /// Reads of directories do not set access times.
        const NODIRATIME = 2048;
        /// Reads set access times that are older than the last change.
        const RELATIME = 1 << 21;
        /// The mount cannot be bound elsewhere.
        const UNBINDABLE = 1 << 17;
    }
}

impl MountFlags {
    /// Those that say when access times are set.
    pub const ACCESS_TIMES: Self = Self::NOATIME.union(Self::NODIRATIME).union(Self::RELATIME);
    /// Those that a remount sets or clears.
    pub const CHANGEABLE: Self = Self::all().difference(Self::UNBINDABLE);
}
