//! How much of memory a file system in memory may take, and its other options.

use alloc::sync::Arc;

use base::PAGE_BYTES;
use sync::{Error, Result};

use super::Tmpfs;
use vfs::FileSystem;

/// What tmpfs knows; all but the first two change nothing here.
pub(super) const NAMES: &[&str] = &[
    "size",
    "mode",
    "nr_blocks",
    "nr_inodes",
    "huge",
    "inode32",
    "inode64",
    "noswap",
    "mpol",
];

/// tmpfs with the options `size=BYTES[kmg]` and `mode=OCTAL`.
pub(super) fn make(_source: &[u8], options: &[u8]) -> Result<Arc<dyn FileSystem>> {
    let bytes_max = size(options).unwrap_or(Ok(default_bytes()))?;
    let mode = option(options, b"mode=")
        .map(|text| parse(text, 8))
        .unwrap_or(Ok(0o1777))?;
    Ok(Tmpfs::new(bytes_max, (mode & 0o7777) as u32))
}

/// The value of `size=`, if it is among the options.
pub(super) fn size(options: &[u8]) -> Option<Result<u64>> {
    option(options, b"size=").map(parse_size)
}

/// All memory that the machine has, in bytes.
pub(super) fn memory_bytes() -> u64 {
    mach::mem::stats().total * PAGE_BYTES as u64
}

/// The limit of a tmpfs that names none: half of all memory.
fn default_bytes() -> u64 {
    memory_bytes() / 2
}

/// The value of an option in a list with commas.
fn option<'a>(options: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    options
        .split(|byte| *byte == b',')
        .find_map(|option| option.strip_prefix(name))
}

fn parse(text: &[u8], radix: u32) -> Result<u64> {
    let text = core::str::from_utf8(text).map_err(|_| Error::Invalid)?;
    u64::from_str_radix(text, radix).map_err(|_| Error::Invalid)
}

fn parse_size(text: &[u8]) -> Result<u64> {
    let (digits, shift) = match text {
        [digits @ .., b'k' | b'K'] => (digits, 10),
        [digits @ .., b'm' | b'M'] => (digits, 20),
        [digits @ .., b'g' | b'G'] => (digits, 30),
        digits => (digits, 0),
    };
    parse(digits, 10)?
        .checked_mul(1 << shift)
        .ok_or(Error::Invalid)
}
