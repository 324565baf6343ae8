//! A file's bytes, piece by piece.

use alloc::vec::Vec;

use base::PAGE_BYTES;
use mm::Page;
use sync::{Error, Result};

const PAGE: u64 = PAGE_BYTES as u64;

/// A file of the host.
pub trait Bytes {
    /// Bytes that one read or write moves at most.
    fn io_bytes(&self) -> usize;

    /// Reads at most `count` bytes, which is at most [`Bytes::io_bytes`]; none at the end.
    fn ask(&self, offset: u64, count: usize) -> Result<Vec<u8>>;

    /// Writes a piece of at most [`Bytes::io_bytes`]; returns how much of it.
    fn tell(&self, offset: u64, piece: &[u8]) -> Result<usize>;
}

/// Fills pages from page `first` on with as few requests as possible, with zeroes where the file ends.
///
/// Errors: `Io` if it ends before the last of them: it was cut off since the caller looked at its size.
pub(crate) fn fill(of: &dyn Bytes, first: u64, pages: &[Page]) -> Result<()> {
    let wanted = pages.len() * PAGE_BYTES;
    let mut filled = 0;
    while filled < wanted {
        let count = (wanted - filled).min(of.io_bytes());
        let data = of.ask(first * PAGE + filled as u64, count)?;
        let data = data.get(..wanted - filled).unwrap_or(&data);
        if data.is_empty() {
            break;
        }
        scatter(pages, filled, data);
        filled += data.len();
    }
    let last = wanted.saturating_sub(PAGE_BYTES);
    match pages.last().filter(|_| filled > last) {
        Some(page) => page.zero(filled - last..PAGE_BYTES),
        None => return Err(Error::Io),
    }
    Ok(())
}

/// Puts bytes into pages, from byte `at` of the first one on.
fn scatter(pages: &[Page], at: usize, data: &[u8]) {
    let (mut at, mut rest) = (at, data);
    while let (Some(page), false) = (pages.get(at / PAGE_BYTES), rest.is_empty()) {
        let len = (PAGE_BYTES - at % PAGE_BYTES).min(rest.len());
        let (piece, more) = rest.split_at(len);
        page.write(at % PAGE_BYTES, piece);
        (at, rest) = (at + len, more);
    }
}

/// Reads into `into` with one request; returns how many bytes there were, none at the end.
pub(crate) fn fetch(of: &dyn Bytes, offset: u64, into: &mut [u8]) -> Result<usize> {
    let data = of.ask(offset, into.len().min(of.io_bytes()))?;
    let len = data.len().min(into.len());
    let (Some(into), Some(data)) = (into.get_mut(..len), data.get(..len)) else {
        return Err(Error::Io);
    };
    into.copy_from_slice(data);
    Ok(len)
}

/// Writes all of `data`, or the beginning of it where there is no room for all; returns how much.
pub(crate) fn store(of: &dyn Bytes, offset: u64, data: &[u8]) -> Result<usize> {
    let (mut offset, mut rest) = (offset, data);
    while !rest.is_empty() {
        let piece = rest.get(..of.io_bytes()).unwrap_or(rest);
        match of.tell(offset, piece)? {
            0 if rest.len() == data.len() => return Err(Error::NoSpace),
            0 => break,
            count => {
                offset += count as u64;
                rest = rest.get(count..).ok_or(Error::Io)?;
            }
        }
    }
    Ok(data.len() - rest.len())
}

/// Writes pages from page `first` on, as far as the file has `size` bytes; returns how many.
pub(crate) fn bring(of: &dyn Bytes, first: u64, pages: &[Page], size: u64) -> Result<u64> {
    // From the reserve: these pages can be given up afterwards.
    let mut buffer = Vec::new();
    let room = buffer.try_reserve_exact(PAGE_BYTES);
    room.map_err(|_| Error::OutOfMemory)?;
    buffer.resize(PAGE_BYTES, 0);
    for (index, page) in (first..).zip(pages) {
        let len = size.saturating_sub(index * PAGE).min(PAGE) as usize;
        if let Some(bytes) = buffer.get_mut(..len) {
            page.read(0, bytes);
            if store(of, index * PAGE, bytes)? < len {
                return Err(Error::NoSpace);
            }
        }
    }
    Ok(pages.len() as u64)
}
