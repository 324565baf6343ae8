//! Requests on internet sockets: what waits in their queues.

use base::VirtAddr;
use mm::user;
use sync::{Error, Result};

use inet::Transport;

use super::handle::Handle;

/// Bytes that can be received now (include/uapi/asm-generic/ioctls.h).
const FIONREAD: u32 = 0x541b;
/// Bytes sent and not acknowledged, or gathered and not sent.
pub(crate) const SIOCOUTQ: u32 = 0x5411;

/// Of these, bytes not even sent.
const SIOCOUTQNSD: u32 = 0x894b;
/// Whether what is read next is urgent; nothing ever is.
const SIOCATMARK: u32 = 0x8905;

/// Answers `request`; the number goes to the program's memory at `argument`.
pub(crate) fn ioctl(handle: &Handle, request: u32, argument: u64) -> Result<usize> {
    let count = match request {
        FIONREAD => unread(handle)?,
        SIOCOUTQNSD if handle.transport == Transport::Tcp => {
            handle.with(|id, stack, _| Ok(stack.info(id)?.unsent))?
        }
        SIOCATMARK if handle.transport == Transport::Tcp => {
            // A listener has no bytes.
            handle.with(|id, stack, _| Ok(stack.unsent(id)?))?;
            0
        }
        SIOCOUTQ => handle.with(|id, stack, _| Ok(stack.unsent(id)?))?,
        _ => return Err(Error::NotTerminal),
    };
    tell(count, argument)
}

/// Stores a number of bytes in the program's memory at `argument`.
pub(crate) fn tell(count: usize, argument: u64) -> Result<usize> {
    user::write(VirtAddr(argument), i32::try_from(count).unwrap_or(i32::MAX))?;
    Ok(0)
}

/// Of the member from which a receive call would take.
fn unread(handle: &Handle) -> Result<usize> {
    let found = handle.first_of(handle.stack.own_for_loopback(), |id, stack, _| match stack
        .unread(id)?
    {
        0 => Err(Error::WouldBlock.into()),
        count => Ok(count),
    });
    match found {
        Err(Error::WouldBlock) => Ok(0),
        done => done,
    }
}
