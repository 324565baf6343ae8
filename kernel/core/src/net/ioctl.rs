//! Requests on internet sockets: what waits in their queues.

use base::VirtAddr;

use super::handle::{Handle, stack};
use crate::error::{Error, Result};
use crate::user;

/// Bytes that can be received now (include/uapi/asm-generic/ioctls.h).
const FIONREAD: u32 = 0x541b;
/// Bytes sent and not acknowledged.
const SIOCOUTQ: u32 = 0x5411;

/// Answers `request`; the number goes to the program's memory at `argument`.
pub(super) fn ioctl(handle: &Handle, request: u32, argument: u64) -> Result<usize> {
    let count = match request {
        FIONREAD => stack(|stack, _| Ok(stack.unread(handle.id)?))?,
        SIOCOUTQ => stack(|stack, _| Ok(stack.unsent(handle.id)?))?,
        _ => return Err(Error::NotTerminal),
    };
    user::write(VirtAddr(argument), i32::try_from(count).unwrap_or(i32::MAX))?;
    Ok(0)
}
