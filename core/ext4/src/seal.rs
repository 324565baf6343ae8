//! What a block of metadata is, and hence how it is checked and checksummed.
//!
//! Checks are made once, when a block is read; checksums once for each commit, whatever the number
//! of changes. A block that is asked for as two different things is corruption: the seal of a
//! cached block has to be the one that the caller expects.

use checksum::Crc32c;

use crate::error::Corrupt;
use crate::layout::superblock::{Geometry, Totals};
use crate::layout::{attributes, dirent, extent, group, index, inode, superblock};

/// The kind of a block of metadata, with what its checksum depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Seal {
    /// The block with the superblock.
    Superblock,
    /// Descriptors from this group on.
    Descriptors { first_group: u32 },
    /// A bitmap; its checksum is in the descriptor.
    BlockBitmap { group: u32 },
    /// The same for inodes.
    InodeBitmap { group: u32 },
    /// Inodes from this number on, each with a checksum of its own.
    Inodes { first: u32 },
    /// A node of an extent tree with so many levels below.
    ExtentNode {
        inode: u32,
        seed: Crc32c,
        depth: u16,
    },
    /// Entries of a directory.
    DirectoryLeaf { inode: u32, seed: Crc32c },
    /// The first block of an indexed directory.
    IndexRoot { inode: u32, seed: Crc32c },
    /// Another block of the index.
    IndexNode { inode: u32, seed: Crc32c },
    /// Extended attributes.
    Attributes,
    /// The text of a long symbolic link.
    LinkText { inode: u32 },
}

impl Seal {
    /// Whether `bytes`, as they came from block `number`, are what they ought to be.
    pub(crate) fn check(
        &self,
        number: u64,
        bytes: &[u8],
        geometry: &Geometry,
    ) -> Result<(), Corrupt> {
        let sums = geometry.features.has_checksums();
        let require = |holds: bool, what: Corrupt| if holds { Ok(()) } else { Err(what) };
        match *self {
            Self::Descriptors { first_group } => check_descriptors(first_group, bytes, geometry),
            Self::ExtentNode { inode, seed, depth } => require(
                extent::check(bytes, depth, geometry.blocks)
                    && extent::count(bytes) != 0
                    && (!sums || extent::is_sealed(bytes, seed)),
                Corrupt::ExtentTree(inode),
            ),
            Self::DirectoryLeaf { inode, seed } => require(
                dirent::check(bytes) && (!sums || dirent::is_sealed(bytes, seed)),
                Corrupt::Directory(inode),
            ),
            Self::IndexRoot { inode, seed } | Self::IndexNode { inode, seed } => require(
                index::check(bytes, self.is_index_root(), sums)
                    && (!sums || index::is_sealed(bytes, seed)),
                Corrupt::Directory(inode),
            ),
            Self::Attributes => require(
                attributes::check(bytes)
                    && (!sums || attributes::is_sealed(bytes, number, geometry.checksum_seed)),
                Corrupt::BlockNumber(number),
            ),
            // Bitmaps are checked against their descriptor, inodes one by one.
            Self::Superblock
            | Self::BlockBitmap { .. }
            | Self::InodeBitmap { .. }
            | Self::Inodes { .. }
            | Self::LinkText { .. } => Ok(()),
        }
    }

    fn is_index_root(&self) -> bool {
        matches!(self, Self::IndexRoot { .. })
    }

    /// Stores the checksums of a block; of inodes and descriptors those that `touched` names.
    pub(crate) fn apply(&self, number: u64, bytes: &mut [u8], touched: u64, context: &Context<'_>) {
        let geometry = context.geometry;
        // Who shares a bit with another gets the sum that it has: descriptors are checked as they are loaded, and no
        // block has more than 64 inodes.
        let is_touched = |place: usize| touched >> (place & 63) & 1 != 0;
        match *self {
            Self::Superblock => {
                let at = geometry.superblock_place().1;
                if let Some(sb) = bytes.get_mut(at..at + superblock::BYTES) {
                    context.totals.seal(sb, geometry);
                }
            }
            Self::Descriptors { first_group } => {
                let each = bytes.chunks_exact_mut(geometry.descriptor_bytes);
                let each = (first_group..geometry.groups).zip(each).enumerate();
                for (_, (group, raw)) in each.filter(|(place, _)| is_touched(*place)) {
                    group::seal(group, raw, geometry);
                }
            }
            _ if !geometry.features.has_checksums() => {}
            Self::Inodes { first } => {
                let each = bytes.chunks_exact_mut(geometry.inode_bytes);
                for (place, raw) in each.enumerate().filter(|(place, _)| is_touched(*place)) {
                    inode::seal(first + place as u32, raw, geometry.checksum_seed);
                }
            }
            Self::ExtentNode { seed, .. } => extent::seal(bytes, seed),
            Self::DirectoryLeaf { seed, .. } => dirent::seal(bytes, seed),
            Self::IndexRoot { seed, .. } | Self::IndexNode { seed, .. } => {
                index::seal(bytes, seed);
            }
            Self::Attributes => {
                attributes::seal(bytes, number, geometry.checksum_seed);
            }
            Self::BlockBitmap { .. } | Self::InodeBitmap { .. } | Self::LinkText { .. } => {}
        }
    }
}

/// What checksums are made with.
pub(crate) struct Context<'a> {
    pub(crate) geometry: &'a Geometry,
    pub(crate) totals: &'a Totals,
}

fn check_descriptors(first: u32, bytes: &[u8], geometry: &Geometry) -> Result<(), Corrupt> {
    let each = bytes.chunks_exact(geometry.descriptor_bytes);
    for (number, raw) in (first..geometry.groups).zip(each) {
        let group = group::Group::parse(raw, geometry);
        let inside = |block: u64, len: u64| {
            block > geometry.first_data_block && block.saturating_add(len) <= geometry.blocks
        };
        let is_right = group::is_sealed(number, raw, geometry)
            && inside(group.block_bitmap, 1)
            && inside(group.inode_bitmap, 1)
            && inside(group.inode_table, geometry.inode_table_blocks())
            && group.free_blocks <= geometry.group_blocks(number)
            && group.free_inodes <= geometry.inodes_per_group;
        if !is_right {
            return Err(Corrupt::GroupDescriptor(number));
        }
    }
    Ok(())
}
