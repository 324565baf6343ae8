//! GRUB's information (Multiboot2 specification, version 2.0, section 3.6).
//!
//! ```text
//! u32 total_size, u32 reserved, then tags, each at a multiple of 8:
//! u32 type, u32 size (with these eight bytes), the tag's own fields
//! ```
//!
//! [`tags`] walks them and ends at the first size that is impossible, so that a list which is
//! broken is as if it were shorter. A tag whose fields do not fit is left out.

use core::str;

use base::PhysAddr;

use crate::{Region, RegionKind, Span};

/// What the loader leaves in `eax`.
pub const LOADER_MAGIC: u32 = 0x36d7_6289;
/// Bytes before the first tag.
pub const HEADER_BYTES: usize = 8;
/// More than this no loader writes: the largest part is the map of memory.
pub const INFORMATION_BYTES_MAX: usize = 1 << 20;

const TAG_BYTES: usize = 8;
const TAG_ALIGN: usize = 8;
const MAP_HEADER_BYTES: usize = 8;
/// Of an entry in the map: address, length, type and a reserved word.
const MAP_ENTRY_BYTES: usize = 24;

/// Types of tags.
mod kind {
    pub const END: u32 = 0;
    pub const COMMAND_LINE: u32 = 1;
    pub const MODULE: u32 = 3;
    pub const MEMORY_MAP: u32 = 6;
    pub const ACPI_OLD: u32 = 14;
    pub const ACPI_NEW: u32 = 15;
}

/// A tag that the kernel has a use for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tag<'a> {
    /// The kernel's command line.
    CommandLine(&'a str),
    /// A file that the loader loaded.
    Module(Span),
    /// The map of memory.
    MemoryMap(MapEntries<'a>),
    /// A copy of ACPI's root pointer, of version 1 or later.
    AcpiRoot(&'a [u8]),
}

/// The entries of the map of memory, not yet looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MapEntries<'a> {
    entries: &'a [u8],
    entry_bytes: usize,
}

impl<'a> MapEntries<'a> {
    fn new(fields: &'a [u8]) -> Option<Self> {
        let entry_bytes = word(fields, 0)? as usize;
        let entries = fields.get(MAP_HEADER_BYTES..)?;
        (entry_bytes >= MAP_ENTRY_BYTES).then_some(Self {
            entries,
            entry_bytes,
        })
    }

    /// The regions that are listed.
    pub fn regions(self) -> impl Iterator<Item = Region> + 'a {
        let entries = self.entries.chunks_exact(self.entry_bytes);
        entries.filter_map(|entry| {
            Some(Region {
                span: Span {
                    start: PhysAddr(long(entry, 0)?),
                    bytes: long(entry, 8)?,
                },
                kind: RegionKind::of_e820(word(entry, 16)?),
            })
        })
    }
}

/// The size in bytes that information claims which begins with these bytes; `None` if no
/// loader would write that.
pub fn claimed_bytes(beginning: &[u8]) -> Option<usize> {
    let bytes = word(beginning, 0)? as usize;
    (HEADER_BYTES..=INFORMATION_BYTES_MAX)
        .contains(&bytes)
        .then_some(bytes)
}

/// The tags of `information` that we know, in the loader's order.
pub fn tags(information: &[u8]) -> impl Iterator<Item = Tag<'_>> {
    let mut rest = information.get(HEADER_BYTES..).unwrap_or(&[]);
    let all = core::iter::from_fn(move || {
        let kind = word(rest, 0)?;
        let bytes = word(rest, 4)? as usize;
        let fields = rest.get(TAG_BYTES..bytes)?;
        // The last tag may end without padding.
        let next = bytes.checked_next_multiple_of(TAG_ALIGN)?;
        rest = rest.get(next..).unwrap_or(&[]);
        (kind != kind::END).then_some((kind, fields))
    });
    all.filter_map(|(kind, fields)| tag(kind, fields))
}

fn tag(kind: u32, fields: &[u8]) -> Option<Tag<'_>> {
    match kind {
        kind::COMMAND_LINE => text(fields).map(Tag::CommandLine),
        kind::MODULE => module(fields).map(Tag::Module),
        kind::MEMORY_MAP => MapEntries::new(fields).map(Tag::MemoryMap),
        kind::ACPI_OLD | kind::ACPI_NEW => Some(Tag::AcpiRoot(fields)),
        _ => None,
    }
}

/// Text up to its NUL.
fn text(fields: &[u8]) -> Option<&str> {
    let end = fields.iter().position(|&byte| byte == 0)?;
    str::from_utf8(&fields[..end]).ok()
}

/// A module: its first byte's address, and the one behind its last.
fn module(fields: &[u8]) -> Option<Span> {
    let (start, end) = (word(fields, 0)?, word(fields, 4)?);
    Some(Span {
        start: PhysAddr(u64::from(start)),
        bytes: u64::from(end.checked_sub(start)?),
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*word))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    let long = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_le_bytes(*long))
}
