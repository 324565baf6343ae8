//! sendfile, copy_file_range: bytes from a file to another without the program.

use ipc::transfer;
use linux_raw_sys::general::*;
use mm::user;
use vfs::file::{OpenFile, StatusFlags};

use linux_abi::call::{Arg, Call, Entry, Outcome};
use linux_abi::errno::Errno;
use linux_abi::iovec::TRANSFER_BYTES_MAX;

/// The calls of this family.
pub const CALLS: &[Entry] = &[
    Entry {
        number: __NR_sendfile,
        name: "sendfile",
        args: &[Arg::Fd, Arg::Fd, Arg::Address, Arg::Size],
        handler: sendfile,
    },
    Entry {
        number: __NR_copy_file_range,
        name: "copy_file_range",
        args: &[
            Arg::Fd,
            Arg::Address,
            Arg::Fd,
            Arg::Address,
            Arg::Size,
            Arg::Flags,
        ],
        handler: copy_file_range,
    },
];

/// The offset at the address in argument `index`, or the file's position.
fn offset(call: &Call<'_>, index: usize, open: &OpenFile) -> Result<u64, Errno> {
    let offset = match call.optional_addr(index) {
        Some(at) => user::read::<i64>(at)?,
        None => *open.position.lock() as i64,
    };
    u64::try_from(offset).map_err(|_| Errno::EINVAL)
}

/// Stores where the next call goes on.
fn store_offset(call: &Call<'_>, index: usize, open: &OpenFile, offset: u64) -> Result<(), Errno> {
    match call.optional_addr(index) {
        Some(at) => user::write(at, offset)?,
        None => *open.position.lock() = offset,
    }
    Ok(())
}

fn sendfile(call: Call<'_>) -> Outcome {
    let (to, from) = (call.file(0)?, call.file(1)?);
    if !from.is_readable() || !to.is_writable() {
        return Err(Errno::EBADF);
    }
    if !from.is_regular() || to.flags().contains(StatusFlags::APPEND) {
        return Err(Errno::EINVAL);
    }
    let start = offset(&call, 2, &from)?;
    let count = call.size(3).min(TRANSFER_BYTES_MAX);
    let sent = transfer::to_stream(&from, start, &to, count)?;
    store_offset(&call, 2, &from, start + sent as u64)?;
    Ok(sent)
}

fn copy_file_range(call: Call<'_>) -> Outcome {
    let (from, to) = (call.file(0)?, call.file(2)?);
    if call.uint(5) != 0 {
        return Err(Errno::EINVAL);
    }
    if !from.is_readable() || !to.is_writable() || to.flags().contains(StatusFlags::APPEND) {
        return Err(Errno::EBADF);
    }
    if !from.is_regular() || !to.is_regular() {
        return Err(Errno::EINVAL);
    }
    let (source, target) = (offset(&call, 1, &from)?, offset(&call, 3, &to)?);
    let count = call.size(4).min(TRANSFER_BYTES_MAX);
    let overlap = source.abs_diff(target) < count as u64;
    let same = from
        .inode()
        .zip(to.inode())
        .is_some_and(|(a, b)| alloc::sync::Arc::ptr_eq(a, b));
    if same && overlap {
        return Err(Errno::EINVAL);
    }
    let copied = transfer::between_files(&from, source, &to, target, count)?;
    store_offset(&call, 1, &from, source + copied as u64)?;
    store_offset(&call, 3, &to, target + copied as u64)?;
    Ok(copied)
}
