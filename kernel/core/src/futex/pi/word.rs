//! The word of a lock, read and changed without waiting for its page.

use base::VirtAddr;
use mach::mem;

use crate::error::Error;

/// Somebody waits in the kernel (FUTEX_WAITERS).
pub const WAITERS: u32 = 0x8000_0000;
/// The last owner died with the lock (FUTEX_OWNER_DIED).
pub const OWNER_DIED: u32 = 0x4000_0000;
/// The owner's number.
pub const TID_MASK: u32 = 0x3fff_ffff;

/// Why something was not done.
pub(super) enum Stop {
    /// A page is missing.
    Fault(mem::Fault),
    /// It cannot be.
    Refused(Error),
}

pub(super) type Seen<T> = Result<T, Stop>;

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl From<mem::Fault> for Stop {
    fn from(fault: mem::Fault) -> Self {
        Self::Fault(fault)
    }
}

/// What the word holds.
pub(super) fn load(address: VirtAddr) -> Seen<u32> {
    Ok(mem::load_user_u32(address)?)
}

/// Changes it if it still holds `old`; whether it did.
pub(super) fn exchange(address: VirtAddr, old: u32, new: u32) -> Seen<bool> {
    Ok(mem::compare_exchange_user_u32(address, old, new)? == old)
}
