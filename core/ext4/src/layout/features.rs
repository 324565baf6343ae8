//! The three sets of features of an image, and which of them are provided.
//!
//! *compat* features may be ignored. With an unknown *ro_compat* feature an image can only be
//! read, with an unknown *incompat* one not even that.

use crate::error::MountError;

/// A journal.
pub(crate) const COMPAT_HAS_JOURNAL: u32 = 0x4;
/// Directories may be indexed.
pub(crate) const COMPAT_DIR_INDEX: u32 = 0x20;
/// Backups of the superblock are in two groups only.
pub(crate) const COMPAT_SPARSE_SUPER2: u32 = 0x200;

/// The journal has to be replayed.
pub(crate) const INCOMPAT_RECOVER: u32 = 0x4;
const INCOMPAT_FILETYPE: u32 = 0x2;
const INCOMPAT_EXTENTS: u32 = 0x40;
/// Block numbers have 64 bits.
pub(crate) const INCOMPAT_64BIT: u32 = 0x80;
const INCOMPAT_FLEX_BG: u32 = 0x200;
/// Checksums start with a seed of the superblock's.
pub(crate) const INCOMPAT_CSUM_SEED: u32 = 0x2000;
const INCOMPAT_LARGEDIR: u32 = 0x4000;
const INCOMPAT_KNOWN: u32 = INCOMPAT_RECOVER
    | INCOMPAT_FILETYPE
    | INCOMPAT_EXTENTS
    | INCOMPAT_64BIT
    | INCOMPAT_FLEX_BG
    | INCOMPAT_CSUM_SEED
    | INCOMPAT_LARGEDIR;

/// Backups of the superblock are in groups 0, 1 and powers of 3, 5 and 7.
pub(crate) const RO_COMPAT_SPARSE_SUPER: u32 = 0x1;
/// `i_blocks` may count file-system blocks.
pub(crate) const RO_COMPAT_HUGE_FILE: u32 = 0x8;
/// Group descriptors have a CRC-16.
pub(crate) const RO_COMPAT_GDT_CSUM: u32 = 0x10;
/// A directory's link count of 1 means "many".
pub(crate) const RO_COMPAT_DIR_NLINK: u32 = 0x20;
/// Everything has a CRC-32C.
pub(crate) const RO_COMPAT_METADATA_CSUM: u32 = 0x400;
const RO_COMPAT_BIGALLOC: u32 = 0x200;
const RO_COMPAT_LARGE_FILE: u32 = 0x2;
const RO_COMPAT_EXTRA_ISIZE: u32 = 0x40;
const RO_COMPAT_KNOWN: u32 = RO_COMPAT_SPARSE_SUPER
    | RO_COMPAT_LARGE_FILE
    | RO_COMPAT_HUGE_FILE
    | RO_COMPAT_GDT_CSUM
    | RO_COMPAT_DIR_NLINK
    | RO_COMPAT_EXTRA_ISIZE
    | RO_COMPAT_METADATA_CSUM;

const INCOMPAT_NAMES: [(u32, &str); 9] = [
    (0x1, "compression"),
    (0x8, "journal_dev"),
    (0x10, "meta_bg"),
    (0x100, "mmp"),
    (0x400, "ea_inode"),
    (0x1000, "dirdata"),
    (0x8000, "inline_data"),
    (0x10000, "encrypt"),
    (0x20000, "casefold"),
];

const RO_COMPAT_NAMES: [(u32, &str); 8] = [
    (0x4, "btree_dir"),
    (0x80, "has_snapshot"),
    (0x100, "quota"),
    (0x1000, "read-only"),
    (0x2000, "project"),
    (0x4000, "shared_blocks"),
    (0x8000, "verity"),
    (0x10000, "orphan_present"),
];

/// The features of an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Features {
    pub(crate) compat: u32,
    pub(crate) incompat: u32,
    pub(crate) ro_compat: u32,
}

impl Features {
    /// Whether the image can be read at all.
    pub(crate) fn check_readable(&self) -> Result<(), MountError> {
        if let Some(name) = first_unknown(self.incompat & !INCOMPAT_KNOWN, &INCOMPAT_NAMES) {
            return Err(MountError::Feature(name));
        }
        // Its bitmaps count clusters, so that not even they could be read.
        if self.has_ro_compat(RO_COMPAT_BIGALLOC) {
            return Err(MountError::Feature("bigalloc"));
        }
        match self.incompat & INCOMPAT_FILETYPE {
            0 => Err(MountError::Feature("^filetype")),
            _ => Ok(()),
        }
    }

    /// Whether it can be written, too.
    pub(crate) fn check_writable(&self) -> Result<(), MountError> {
        match first_unknown(self.ro_compat & !RO_COMPAT_KNOWN, &RO_COMPAT_NAMES) {
            Some(name) => Err(MountError::ReadOnlyFeature(name)),
            None => Ok(()),
        }
    }

    pub(crate) fn has_compat(&self, bits: u32) -> bool {
        self.compat & bits != 0
    }

    pub(crate) fn has_incompat(&self, bits: u32) -> bool {
        self.incompat & bits != 0
    }

    pub(crate) fn has_ro_compat(&self, bits: u32) -> bool {
        self.ro_compat & bits != 0
    }

    /// Whether metadata carries CRC-32C.
    pub(crate) fn has_checksums(&self) -> bool {
        self.has_ro_compat(RO_COMPAT_METADATA_CSUM)
    }
}

fn first_unknown(unknown: u32, names: &[(u32, &'static str)]) -> Option<&'static str> {
    let known_name = names.iter().find(|(bit, _)| unknown & bit != 0);
    match known_name {
        Some((_, name)) => Some(name),
        None => (unknown != 0).then_some("a feature without a name"),
    }
}
