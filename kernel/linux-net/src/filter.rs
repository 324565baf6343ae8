//! Filters of sockets: SO_ATTACH_FILTER, SO_DETACH_FILTER, SO_GET_FILTER, SO_LOCK_FILTER.
//!
//! A program is a `struct sock_fprog`: the number of its instructions and where they are.
//! SO_GET_FILTER counts in instructions too, both ways.

use alloc::vec::Vec;

use base::VirtAddr;
use mach::mem::fallible::TryGrow;
use mm::user;
use sync::{Error, Result};
use vfs::socket::{Filter, FilterInstruction, OptionValue, Socket};

use crate::option_value::{Layout, decode};
use linux_abi::call::{Call, Outcome};

const SOL_SOCKET: u32 = 1;
/// SO_GET_FILTER has the same number.
const SO_ATTACH_FILTER: u32 = 26;
const SO_DETACH_FILTER: u32 = 27;
const SO_LOCK_FILTER: u32 = 44;
const SO_BPF_EXTENSIONS: u32 = 48;
const SO_ATTACH_BPF: u32 = 50;

/// Bytes of a C `int`.
const INT_BYTES: u32 = 4;
/// Bytes of `struct sock_fprog`.
const PROGRAM_BYTES: u32 = 16;
/// Instructions that a program may have (BPF_MAXINSNS).
const INSTRUCTIONS_MAX: usize = 4096;
/// Extensions of the language that we have (SKF_AD_MAX).
const EXTENSIONS: i32 = 64;

/// Does what a setsockopt of these asks for; `None` if it is another.
pub fn set(call: &Call<'_>, socket: &dyn Socket) -> Option<Outcome> {
    let done = match (call.uint(1), call.uint(2)) {
        (SOL_SOCKET, SO_ATTACH_FILTER) => attach(call, socket),
        // The value says nothing, but it has to be there.
        (SOL_SOCKET, SO_DETACH_FILTER) if call.uint(4) < INT_BYTES => Err(Error::Invalid),
        (SOL_SOCKET, SO_DETACH_FILTER) => detach(socket),
        (SOL_SOCKET, SO_LOCK_FILTER) => lock(call, socket),
        // No descriptor is a program of the extended machine.
        (SOL_SOCKET, SO_ATTACH_BPF) => Err(Error::Invalid),
        _ => return None,
    };
    Some(done.map(|()| 0).map_err(Into::into))
}

/// The answer to a getsockopt of a number; `None` if it is another.
pub fn get(socket: &dyn Socket, level: u32, number: u32) -> Option<Result<OptionValue>> {
    match (level, number) {
        (SOL_SOCKET, SO_LOCK_FILTER) => Some(of(socket).map(|filter| filter.is_locked().into())),
        (SOL_SOCKET, SO_BPF_EXTENSIONS) => Some(Ok(OptionValue::Number(EXTENSIONS))),
        _ => None,
    }
}

/// Does what SO_GET_FILTER asks for; `None` if it is another.
pub fn tell(call: &Call<'_>, socket: &dyn Socket) -> Option<Outcome> {
    let is_asked = (call.uint(1), call.uint(2)) == (SOL_SOCKET, SO_ATTACH_FILTER);
    is_asked.then(|| Ok(tell_program(call, socket).map(|()| 0)?))
}

fn of(socket: &dyn Socket) -> Result<&dyn Filter> {
    socket.filter().ok_or(Error::NoSuchOption)
}

fn attach(call: &Call<'_>, socket: &dyn Socket) -> Result<()> {
    if call.uint(4) != PROGRAM_BYTES {
        return Err(Error::Invalid);
    }
    let [count, at] = user::read::<[u64; 2]>(call.addr(3))?;
    let filter = of(socket)?;
    if filter.is_locked() {
        return Err(Error::NotPermitted);
    }
    let count = usize::from(count as u16);
    if count == 0 || count > INSTRUCTIONS_MAX {
        return Err(Error::Invalid);
    }
    let mut instructions: Vec<FilterInstruction> = Vec::new();
    let room = instructions.make_room(count);
    room.map_err(|_| Error::OutOfMemory)?;
    instructions.resize(count, FilterInstruction::default());
    user::copy_in(VirtAddr(at), instructions.as_flattened_mut())?;
    filter.attach(instructions)?;
    socket.filter_changed()
}

fn detach(socket: &dyn Socket) -> Result<()> {
    of(socket)?.detach()?;
    socket.filter_changed()
}

fn lock(call: &Call<'_>, socket: &dyn Socket) -> Result<()> {
    let value = decode(Layout::Int, call.addr(3), call.uint(4))?;
    of(socket)?.lock(value.flag()?)
}

/// Stores the program, if there is room for all of it; without room, only how long it is.
fn tell_program(call: &Call<'_>, socket: &dyn Socket) -> Result<()> {
    let room: i32 = user::read(call.addr(4))?;
    let room = usize::try_from(room).map_err(|_| Error::Invalid)?;
    of(socket)?.show(&mut |program| {
        if room != 0 && !program.is_empty() {
            if room < program.len() {
                return Err(Error::Invalid);
            }
            user::copy_out(program.as_flattened(), call.addr(3))?;
        }
        user::write(call.addr(4), program.len() as u32)
    })
}
