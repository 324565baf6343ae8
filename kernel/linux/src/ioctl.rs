//! ioctl: requests that every descriptor knows; the rest is the file's own matter.

use linux_raw_sys::general::__NR_ioctl;
use mm::user;
use vfs::file::{OpenFile, StatusFlags};

use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;
use linux_abi::missing;
use linux_files::async_io;
use linux_net::interface;

/// The calls of this family.
pub const CALLS: &[Entry] = &[Entry {
    number: __NR_ioctl,
    name: "ioctl",
    args: &[Arg::Fd, Arg::Flags, Arg::Address],
    handler: ioctl,
}];

/// include/uapi/asm-generic/ioctls.h, include/uapi/linux/fs.h.
const FIONREAD: u32 = 0x541b;
const FIONBIO: u32 = 0x5421;
const FIONCLEX: u32 = 0x5450;
const FIOCLEX: u32 = 0x5451;
const FIOASYNC: u32 = 0x5452;
const FIGETBSZ: u32 = 2;
/// FICLONE: a copy that shares blocks, which no file system here can make.
const FICLONE: u32 = 0x4004_9409;
/// Requests that only ask "are you a terminal?": their refusal is no lack of ours.
const TERMINAL_REQUESTS: core::ops::RangeInclusive<u32> = 0x5401..=0x54ff;
/// What disks are asked to learn that they are no optical drive, no flash chip and have no zones: their
/// refusal is no lack either.
const OTHER_DISKS_REQUESTS: [u32; 4] = [0x5331, 0x5395, 0x8004_1284, 0x8028_0215];

fn ioctl(call: Call<'_>) -> Outcome {
    let open = call.file(0)?;
    let request = call.uint(1);
    match request {
        FIOCLEX | FIONCLEX => {
            let files = call.thread.files.get();
            files.set_close_on_exec(call.uint(0), request == FIOCLEX)?;
            Ok(0)
        }
        FIONBIO => set_nonblocking(&call, &open),
        FIOASYNC => async_io::set_async(&call, &open),
        FIONREAD if open.is_regular() => bytes_left(&call, &open),
        FIGETBSZ if open.inode().is_some() => {
            user::write(call.addr(2), open.metadata()?.block_bytes())?;
            Ok(0)
        }
        FICLONE => Err(Errno::EOPNOTSUPP),
        _ if async_io::is_socket_request(request) && open.file.as_socket().is_some() => {
            async_io::socket_request(&call, &open)
        }
        _ => match open.file.as_socket() {
            Some(socket) if interface::is_known(request) => {
                interface::ioctl(&call, request, socket.family())
            }
            _ => own(&call, &open, request),
        },
    }
}

/// The number at the address says whether the flag is to be on.
fn set_nonblocking(call: &Call<'_>, open: &OpenFile) -> Outcome {
    let on: i32 = user::read(call.addr(2))?;
    let mut flags = open.flags();
    flags.set(StatusFlags::NONBLOCK, on != 0);
    open.set_flags(flags);
    Ok(0)
}

fn bytes_left(call: &Call<'_>, open: &OpenFile) -> Outcome {
    let position = *open.position.lock();
    let left = open.metadata()?.size.saturating_sub(position);
    user::write(call.addr(2), u32::try_from(left).unwrap_or(i32::MAX as u32))?;
    Ok(0)
}

fn own(call: &Call<'_>, open: &OpenFile, request: u32) -> Outcome {
    let outcome = open
        .file
        .ioctl(open, request, call.arg(2))
        .map_err(Errno::from);
    let is_known = TERMINAL_REQUESTS.contains(&request) || OTHER_DISKS_REQUESTS.contains(&request);
    if outcome == Err(Errno::ENOTTY) && !is_known {
        missing::count_option("ioctl", u64::from(request));
    }
    outcome
}
