//! SO_ATTACH_FILTER and SO_DETACH_FILTER: a `struct sock_fprog`, which is the number of
//! instructions and where they are.

use alloc::vec::Vec;

use base::VirtAddr;
use kernel::error::{Error, Result};
use kernel::socket::Socket;
use kernel::user;
use mach::mem::fallible::TryGrow;

use crate::call::{Call, Outcome};

const SOL_SOCKET: u32 = 1;
const SO_ATTACH_FILTER: u32 = 26;
const SO_DETACH_FILTER: u32 = 27;

/// Bytes of a C `int`.
const INT_BYTES: u32 = 4;
/// Bytes of `struct sock_fprog`.
const PROGRAM_BYTES: u32 = 16;
/// Instructions that a program may have (BPF_MAXINSNS).
const INSTRUCTIONS_MAX: usize = 4096;

/// Does what a setsockopt of these two asks for; `None` if it is another.
pub fn set(call: &Call<'_>, socket: &dyn Socket) -> Option<Outcome> {
    let done = match (call.uint(1), call.uint(2)) {
        (SOL_SOCKET, SO_ATTACH_FILTER) => attach(call, socket),
        // The value says nothing, but it has to be there.
        (SOL_SOCKET, SO_DETACH_FILTER) if call.uint(4) < INT_BYTES => Err(Error::Invalid),
        (SOL_SOCKET, SO_DETACH_FILTER) => socket.detach_filter(),
        _ => return None,
    };
    Some(done.map(|()| 0).map_err(Into::into))
}

fn attach(call: &Call<'_>, socket: &dyn Socket) -> Result<()> {
    if call.uint(4) != PROGRAM_BYTES {
        return Err(Error::Invalid);
    }
    let [count, at] = user::read::<[u64; 2]>(call.addr(3))?;
    let count = usize::from(count as u16);
    if count == 0 || count > INSTRUCTIONS_MAX {
        return Err(Error::Invalid);
    }
    let mut instructions: Vec<[u8; 8]> = Vec::new();
    let room = instructions.make_room(count);
    room.map_err(|_| Error::OutOfMemory)?;
    instructions.resize(count, [0; 8]);
    user::copy_in(VirtAddr(at), instructions.as_flattened_mut())?;
    socket.attach_filter(&instructions)
}
