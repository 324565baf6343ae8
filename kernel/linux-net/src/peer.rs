//! What getsockopt tells of the program at the other end: SO_PEERGROUPS, SO_PEERPIDFD,
//! SO_PEERNAME.

use linux_raw_sys::general::O_CLOEXEC;
use mm::user;
use sync::{Error, Result};
use task::pid_file;
use vfs::file::StatusFlags;
use vfs::socket::Socket;

use crate::address;
use linux_abi::call::{Call, Outcome};

const SOL_SOCKET: u32 = 1;
const SO_PEERNAME: u32 = 28;
const SO_PEERGROUPS: u32 = 59;
const SO_PEERPIDFD: u32 = 77;

/// The answer to a getsockopt about the peer; `None` if it is about something else.
pub fn tell(call: &Call<'_>, socket: &dyn Socket) -> Option<Outcome> {
    let told = match (call.uint(1), call.uint(2)) {
        (SOL_SOCKET, SO_PEERNAME) => tell_name(call, socket),
        (SOL_SOCKET, SO_PEERGROUPS) => tell_groups(call, socket),
        (SOL_SOCKET, SO_PEERPIDFD) => tell_process(call, socket),
        _ => return None,
    };
    Some(told.map(|()| 0).map_err(Into::into))
}

/// Bytes that the program has room for.
fn room(call: &Call<'_>) -> Result<usize> {
    let room: i32 = user::read(call.addr(4))?;
    usize::try_from(room).map_err(|_| Error::Invalid)
}

/// As much of the name as was asked for, which is an error if it is shorter.
fn tell_name(call: &Call<'_>, socket: &dyn Socket) -> Result<()> {
    let room = room(call)?;
    let name = socket.peer_address()?;
    let len = address::write(call.addr(3), room as u32, &name)?;
    match room > len as usize {
        true => Err(Error::Invalid),
        false => Ok(()),
    }
}

/// Without room for all of them the program learns how much it needs.
fn tell_groups(call: &Call<'_>, socket: &dyn Socket) -> Result<()> {
    let room = room(call)?;
    let groups = socket.peer().ok_or(Error::NoData)?.groups;
    let bytes = groups.len() * size_of::<u32>();
    user::write(call.addr(4), bytes as u32)?;
    if room < bytes {
        return Err(Error::OutOfRange);
    }
    for (group, at) in groups.iter().zip((0..).step_by(size_of::<u32>())) {
        user::write(call.addr(3) + at, *group)?;
    }
    Ok(())
}

fn tell_process(call: &Call<'_>, socket: &dyn Socket) -> Result<()> {
    let room = room(call)?.min(size_of::<i32>());
    let process = sockets::process_of(&socket.peer().ok_or(Error::NoData)?)?;
    let fd = call.open_fd(pid_file(process), StatusFlags::RDWR, O_CLOEXEC)?;
    let number = (fd as i32).to_ne_bytes();
    let shown = number.get(..room).unwrap_or_default();
    let told =
        user::copy_out(shown, call.addr(3)).and_then(|()| user::write(call.addr(4), room as u32));
    if told.is_err() {
        call.close_fd(fd);
    }
    told
}
