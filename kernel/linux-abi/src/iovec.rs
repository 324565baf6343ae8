//! Arrays of ranges, as readv, writev and their kin take them.

use alloc::vec::Vec;

use base::VirtAddr;
use mach::mem::fallible;
use mm::io::{Sink, Source, UserRange};
use mm::user;
use sync::{Error, Result};

use crate::call::Call;

/// Ranges in one call (Linux's UIO_MAXIOV).
pub const RANGES_MAX: usize = 1024;
/// Bytes in one call; more is cut off (Linux's MAX_RW_COUNT).
pub const TRANSFER_BYTES_MAX: usize = 0x7fff_f000;
/// Bytes of struct iovec: address and length.
const IOVEC_BYTES: u64 = 16;

/// Reads `count` iovecs at `at`; their sum is cut to what one call moves.
pub fn read_ranges(at: VirtAddr, count: usize) -> Result<Vec<UserRange>> {
    if count > RANGES_MAX {
        return Err(Error::Invalid);
    }
    let mut ranges = fallible::vec(count)?;
    let mut room = TRANSFER_BYTES_MAX;
    for index in 0..count as u64 {
        let [start, len]: [u64; 2] = user::read(at + index * IOVEC_BYTES)?;
        let len = isize::try_from(len).map_err(|_| Error::Invalid)?;
        let mut range = UserRange::new(VirtAddr(start), len.unsigned_abs())?;
        range.len = range.len.min(room);
        room -= range.len;
        ranges.push(range);
    }
    Ok(ranges)
}

/// The buffer in two arguments of a call from `index` on: where it is, and its length.
fn buffer(call: &Call<'_>, index: usize) -> Result<UserRange> {
    let range = UserRange::new(call.addr(index), call.size(index + 1))?;
    Ok(UserRange {
        len: range.len.min(TRANSFER_BYTES_MAX),
        ..range
    })
}

/// Where `read` puts its bytes, by its arguments from `index` on.
pub fn sink_at<'a>(call: &Call<'_>, index: usize) -> Result<Sink<'a>> {
    let to = buffer(call, index)?;
    Ok(Sink::user(to.start, to.len))
}

/// Where `write` takes its bytes from, by its arguments from `index` on.
pub fn source_at<'a>(call: &Call<'_>, index: usize) -> Result<Source<'a>> {
    let from = buffer(call, index)?;
    Ok(Source::user(from.start, from.len))
}

/// Where `readv` puts its bytes.
pub fn sink<'a>(at: VirtAddr, count: usize) -> Result<Sink<'a>> {
    read_ranges(at, count).map(Sink::user_vec)
}

/// Where `writev` takes its bytes from.
pub fn source<'a>(at: VirtAddr, count: usize) -> Result<Source<'a>> {
    read_ranges(at, count).map(Source::user_vec)
}
