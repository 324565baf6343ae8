//! The kinds of file system that mount(2) can make, by name.

use alloc::sync::Arc;
use alloc::vec::Vec;

use base::PAGE_BYTES;
use mach::sync::Spin;
use sync::{Error, Result};

use super::FileSystem;
use super::tmpfs::Tmpfs;

/// Makes a file system from its source and its options.
pub type Make = fn(source: &[u8], options: &[u8]) -> Result<Arc<dyn FileSystem>>;

/// A kind: its name, whether it needs no device, and how it is made.
#[derive(Clone, Copy)]
pub struct Kind {
    /// As mount(2) calls it.
    pub name: &'static str,
    /// Shown as `nodev` in /proc/filesystems.
    pub nodev: bool,
    /// The names of its options.
    pub options: &'static [&'static str],
    /// Makes one.
    pub make: Make,
}

static KINDS: Spin<Vec<Kind>> = Spin::new(Vec::new());

/// Adds a kind; at boot.
pub fn register(kind: Kind) {
    KINDS.lock().push(kind);
}

/// All kinds.
pub fn all() -> Vec<Kind> {
    KINDS.lock().clone()
}

/// The kind `name`.
///
/// Errors: `WrongDevice` if there is none.
pub fn find(name: &[u8]) -> Result<Kind> {
    let kind = all().into_iter().find(|kind| kind.name.as_bytes() == name);
    kind.ok_or(Error::WrongDevice)
}

impl Kind {
    /// Whether it has an option of this name.
    pub fn takes(&self, name: &[u8]) -> bool {
        self.options.iter().any(|option| option.as_bytes() == name)
    }
}

/// Makes a file system of the kind `name`.
///
/// Errors: `WrongDevice` for an unknown kind, `Invalid` for an unknown option, and what the kind
/// says.
pub fn make(name: &[u8], source: &[u8], options: &[u8]) -> Result<Arc<dyn FileSystem>> {
    let kind = find(name)?;
    let names = options
        .split(|byte| *byte == b',')
        .filter(|option| !option.is_empty());
    let mut names = names.map(|option| option.split(|byte| *byte == b'=').next().unwrap_or(option));
    match names.all(|name| kind.takes(name) || name == b"source") {
        true => (kind.make)(source, options),
        false => Err(Error::Invalid),
    }
}

/// What tmpfs knows; all but the first two change nothing here.
pub const TMPFS_OPTIONS: &[&str] = &[
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
pub fn make_tmpfs(_source: &[u8], options: &[u8]) -> Result<Arc<dyn FileSystem>> {
    let size = size_option(options).unwrap_or(Ok(default_bytes()))?;
    let mode = option(options, b"mode=")
        .map(|text| parse(text, 8))
        .unwrap_or(Ok(0o1777))?;
    Ok(Tmpfs::new(size, (mode & 0o7777) as u32))
}

/// The value of `size=`, if it is among the options.
pub fn size_option(options: &[u8]) -> Option<Result<u64>> {
    option(options, b"size=").map(parse_size)
}

/// All memory that the machine has, in bytes.
pub fn memory_bytes() -> u64 {
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
