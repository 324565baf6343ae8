//! io_uring_register.

use alloc::sync::Arc;

use ipc::eventfd::EventFd;
use kernel_uring::Ring;
use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;
use linux_raw_sys::general::__NR_io_uring_register;
use mm::user;

use crate::with_ring;

/// The calls of this family.
pub const CALLS: &[Entry] = &[Entry {
    number: __NR_io_uring_register,
    name: "io_uring_register",
    args: &[Arg::Fd, Arg::Int, Arg::Address, Arg::Int],
    handler: register,
}];

/// What may be registered (IORING_REGISTER_*).
mod op {
    pub const REGISTER_BUFFERS: u32 = 0;
    pub const UNREGISTER_BUFFERS: u32 = 1;
    pub const REGISTER_FILES: u32 = 2;
    pub const UNREGISTER_FILES: u32 = 3;
    pub const REGISTER_EVENTFD: u32 = 4;
    pub const UNREGISTER_EVENTFD: u32 = 5;
    pub const REGISTER_FILES_UPDATE: u32 = 6;
    pub const REGISTER_EVENTFD_ASYNC: u32 = 7;
    pub const REGISTER_PROBE: u32 = 8;
    pub const REGISTER_ENABLE_RINGS: u32 = 12;
    pub const REGISTER_PBUF_RING: u32 = 22;
    pub const UNREGISTER_PBUF_RING: u32 = 23;
}

/// Operations that there are.
const OPERATIONS: [u8; 37] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
    26, 27, 28, 29, 34, 35, 36, 37, 38, 39, 45,
];
/// The last operation that there is.
const LAST: u8 = 45;
/// IO_URING_OP_SUPPORTED.
const SUPPORTED: u16 = 1;
/// The most entries that a probe has room for.
const PROBE_ENTRIES_MAX: u32 = 256;

fn register(call: Call<'_>) -> Outcome {
    with_ring(&call, |ring| register_with(&call, ring))
}

fn register_with(call: &Call<'_>, ring: &Arc<Ring>) -> Outcome {
    let (at, count) = (call.arg(2), call.uint(3));
    let none = |fits: bool| fits.then_some(()).ok_or(Errno::EINVAL);
    let is_bare = at == 0 && count == 0;
    match call.uint(1) {
        op::REGISTER_BUFFERS => ring.registered.lock().set_buffers(Some(at), count)?,
        op::UNREGISTER_BUFFERS => {
            none(is_bare)?;
            ring.registered.lock().clear_buffers()?;
        }
        op::REGISTER_FILES => {
            ring.registered
                .lock()
                .set_files(call.thread, Some(at), count)?;
        }
        op::UNREGISTER_FILES => {
            none(is_bare)?;
            // Dropped with nothing locked: the last reference of a file may wait.
            let files = ring.registered.lock().clear_files()?;
            drop(files);
        }
        op::REGISTER_FILES_UPDATE => {
            let [first, files] = user::read::<[u64; 2]>(call.addr(2))?;
            none(first >> 32 == 0)?;
            let mut registered = ring.registered.lock();
            return Ok(registered.update_files(call.thread, first as u32, files, count)?);
        }
        op::REGISTER_EVENTFD | op::REGISTER_EVENTFD_ASYNC => {
            none(count == 1)?;
            register_eventfd(call, ring)?;
        }
        op::UNREGISTER_EVENTFD => {
            none(is_bare)?;
            let old = ring.eventfd.lock().take();
            old.ok_or(Errno::ENXIO)?;
        }
        op::REGISTER_PROBE => probe(call, count)?,
        op::REGISTER_ENABLE_RINGS => {
            none(is_bare)?;
            enable(ring)?;
        }
        op::REGISTER_PBUF_RING => {
            none(count == 1)?;
            let [address, facts, rest @ ..] = user::read::<[u64; 5]>(call.addr(2))?;
            none(rest == [0; 3] && facts >> 48 == 0)?;
            let group = (facts >> 32) as u16;
            ring.registered
                .lock()
                .add_group(group, address, facts as u32)?;
        }
        op::UNREGISTER_PBUF_RING => {
            none(count == 1)?;
            let [_, facts, rest @ ..] = user::read::<[u64; 5]>(call.addr(2))?;
            none(rest == [0; 3] && facts >> 48 == 0)?;
            ring.registered.lock().remove_group((facts >> 32) as u16)?;
        }
        _ => return Err(Errno::EINVAL),
    }
    Ok(0)
}

fn register_eventfd(call: &Call<'_>, ring: &Ring) -> Result<(), Errno> {
    let fd: i32 = user::read(call.addr(2))?;
    let open = call.thread.files.with(|files| files.get(fd as u32))?;
    if !open.file.as_any().is::<EventFd>() {
        return Err(Errno::EINVAL);
    }
    let mut eventfd = ring.eventfd.lock();
    if eventfd.is_some() {
        return Err(Errno::EBUSY);
    }
    *eventfd = Some(open);
    Ok(())
}

fn enable(ring: &Ring) -> Result<(), Errno> {
    let mut registered = ring.registered.lock();
    if !registered.is_disabled {
        return Err(Errno::EBADFD);
    }
    registered.is_disabled = false;
    Ok(())
}

/// Says which operations there are: a head of 16 bytes, then 8 for each.
fn probe(call: &Call<'_>, room: u32) -> Result<(), Errno> {
    if room > PROBE_ENTRIES_MAX {
        return Err(Errno::EINVAL);
    }
    let head: [u64; 2] = user::read(call.addr(2))?;
    if head != [0; 2] {
        return Err(Errno::EINVAL);
    }
    let count = room.min(u32::from(LAST) + 1);
    for number in 0..count as u8 {
        let is_known = OPERATIONS.contains(&number);
        let flags = if is_known { SUPPORTED } else { 0 };
        let entry = u64::from(number) | u64::from(flags) << 16;
        let place = call.addr(2) + 16 + u64::from(number) * 8;
        user::write(place, entry)?;
    }
    let head = u64::from(LAST) | u64::from(count) << 8;
    Ok(user::write(call.addr(2), [head, 0])?)
}
