//! What controller and namespace say of themselves (NVM command set specification, section 4.1.5).

use alloc::string::String;

use block::{Bulk, Cache, Limits, SECTOR_BYTES};

use crate::error::Error;
use crate::slots::{COMMAND_BYTES_MAX, PAGES_MAX};

/// Offsets in what is said of the controller.
const SERIAL: usize = 4;
const MODEL: usize = 24;
const FIRMWARE: usize = 64;
const TRANSFER_MAX: usize = 77;
const OPTIONAL_ADMIN: usize = 256;
const NAMESPACES: usize = 516;
const OPTIONAL: usize = 520;
const VOLATILE_CACHE: usize = 525;

const OPTIONAL_DOORBELL_BUFFER: u32 = 1 << 8;
const OPTIONAL_DATASET_MANAGEMENT: u16 = 1 << 2;
const OPTIONAL_WRITE_ZEROES: u16 = 1 << 3;

/// Offsets in what is said of a namespace.
const SIZE: usize = 0;
const FEATURES: usize = 24;
const FORMATS: usize = 25;
const FORMAT: usize = 26;
const DEALLOCATE: usize = 33;
const PREFERRED_WRITE: usize = 64;
const PREFERRED_DISCARD: usize = 68;
const OPTIMAL_WRITE: usize = 72;
const ATTRIBUTES: usize = 99;
const FORMAT_TABLE: usize = 128;

const FEATURE_PREFERENCES: u8 = 1 << 4;
const ATTRIBUTE_PROTECTED: u8 = 1 << 0;
const DEALLOCATE_IN_ZEROES: u8 = 1 << 3;

/// Sectors of one discard: no longer than a time-out bears.
const DISCARD_SECTORS_MAX: u32 = 1 << 22;
/// More pages than that are as good as no limit.
const TRANSFER_SHIFT_MAX: u8 = 16;
/// Blocks of one command, whose number has sixteen bits.
const BLOCKS_MAX: u32 = 1 << 16;

/// Controllers of this model take FUA for a write and do not act on it (QEMU 10.0, seen in its `blklogwrites`): their
/// forced writes are followed by a flush.
const MODEL_WITHOUT_FUA: &str = "QEMU NVMe Ctrl";

/// What a controller is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Its serial number.
    pub serial: String,
    /// What it is sold as.
    pub model: String,
    /// The version of its program.
    pub firmware: String,
}

/// What of a controller holds for all its namespaces.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Facts {
    pub identity: Identity,
    /// The highest number of a namespace.
    pub namespaces: u32,
    /// It reads doorbells in memory.
    pub has_shadows: bool,
    command_bytes_max: u32,
    has_dataset_management: bool,
    has_write_zeroes: bool,
    has_cache: bool,
    /// It keeps to FUA.
    forces: bool,
}

impl Facts {
    /// Out of the 4096 bytes that Identify returns.
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let optional = word(bytes, OPTIONAL) as u16;
        let command_bytes_max = match byte(bytes, TRANSFER_MAX) {
            0 => COMMAND_BYTES_MAX,
            pages => 4096u32 << pages.min(TRANSFER_SHIFT_MAX),
        };
        let model = text(bytes, MODEL, 40);
        Self {
            forces: model != MODEL_WITHOUT_FUA,
            identity: Identity {
                serial: text(bytes, SERIAL, 20),
                model,
                firmware: text(bytes, FIRMWARE, 8),
            },
            namespaces: word(bytes, NAMESPACES),
            has_shadows: word(bytes, OPTIONAL_ADMIN) & OPTIONAL_DOORBELL_BUFFER != 0,
            command_bytes_max: command_bytes_max.min(COMMAND_BYTES_MAX),
            has_dataset_management: optional & OPTIONAL_DATASET_MANAGEMENT != 0,
            has_write_zeroes: optional & OPTIONAL_WRITE_ZEROES != 0,
            has_cache: byte(bytes, VOLATILE_CACHE) & 1 != 0,
        }
    }

    /// The shape of a namespace, out of what Identify returns of it.
    ///
    /// Errors: `NoNamespace` if there is nothing in it, `NotSupported` if its blocks have an impossible
    /// size, or more in them than data.
    pub(crate) fn namespace(&self, bytes: &[u8]) -> Result<Shape, Error> {
        let blocks = u64::from(word(bytes, SIZE + 4)) << 32 | u64::from(word(bytes, SIZE));
        if blocks == 0 {
            return Err(Error::NoNamespace);
        }
        let shift = block_shift(bytes)?;
        let block_bytes = 1 << shift;
        let sectors = blocks.saturating_mul(block_bytes / SECTOR_BYTES);
        let may_deallocate = byte(bytes, DEALLOCATE) & DEALLOCATE_IN_ZEROES != 0;
        let limits = self.limits(bytes, block_bytes as u32, sectors);
        Ok(Shape {
            limits: limits.checked().ok_or(Error::NotSupported)?,
            block_shift: shift,
            may_deallocate,
        })
    }

    fn limits(&self, bytes: &[u8], block_bytes: u32, sectors: u64) -> Limits {
        let has_preferences = byte(bytes, FEATURES) & FEATURE_PREFERENCES != 0;
        // Counted from 0, in blocks.
        let preferred = |at: usize| match has_preferences {
            true => ((word(bytes, at) & 0xffff) + 1).saturating_mul(block_bytes),
            false => block_bytes,
        };
        let optimal = match has_preferences && word(bytes, OPTIMAL_WRITE) & 0xffff != 0 {
            true => preferred(OPTIMAL_WRITE),
            false => 0,
        };
        let block_sectors = block_bytes / SECTOR_BYTES as u32;
        let zeroes_max = (self.command_bytes_max / SECTOR_BYTES as u32)
            .min(BLOCKS_MAX.saturating_mul(block_sectors));
        Limits {
            block_bytes,
            physical_bytes: preferred(PREFERRED_WRITE),
            optimal_bytes: optimal,
            segments_max: PAGES_MAX,
            segment_bytes_max: self.command_bytes_max,
            segment_align: 4,
            page_bytes: Some(4096),
            command_bytes_max: self.command_bytes_max,
            is_read_only: byte(bytes, ATTRIBUTES) & ATTRIBUTE_PROTECTED != 0,
            cache: match self.has_cache {
                true => Cache::WriteBack {
                    forces: self.forces,
                },
                false => Cache::WriteThrough,
            },
            discard: self.has_dataset_management.then(|| Bulk {
                sectors_max: DISCARD_SECTORS_MAX,
                granularity: preferred(PREFERRED_DISCARD) / SECTOR_BYTES as u32,
            }),
            zeroes: self.has_write_zeroes.then_some(Bulk {
                sectors_max: zeroes_max,
                granularity: 1,
            }),
            ..Limits::plain(sectors)
        }
    }
}

/// A namespace as a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    pub limits: Limits,
    /// A block has two to the power of so many bytes.
    pub block_shift: u32,
    /// Zeroes may give up room.
    pub may_deallocate: bool,
}

impl Shape {
    /// Takes the size of `new`, if nothing else has changed.
    pub(crate) fn resize(&mut self, new: Self) {
        if self.is_alike(&new) {
            *self = new;
        }
    }

    /// Whether they differ in size alone.
    pub(crate) fn is_alike(&self, other: &Self) -> bool {
        let limits = Limits {
            sectors: self.limits.sectors,
            ..other.limits
        };
        *self == Self { limits, ..*other }
    }
}

/// The size of blocks in the format that is in use.
fn block_shift(bytes: &[u8]) -> Result<u32, Error> {
    let format = byte(bytes, FORMAT);
    let index = format & 0xf | format >> 1 & 0x30;
    if index > byte(bytes, FORMATS) {
        return Err(Error::NotSupported);
    }
    let format = word(bytes, FORMAT_TABLE + 4 * usize::from(index));
    let (metadata, shift) = (format & 0xffff, format >> 16 & 0xff);
    match metadata == 0 && (9..=12).contains(&shift) {
        true => Ok(shift),
        false => Err(Error::NotSupported),
    }
}

pub(crate) fn byte(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

pub(crate) fn word(bytes: &[u8], at: usize) -> u32 {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    found.map_or(0, |word| u32::from_le_bytes(*word))
}

/// What can be printed, without the blanks at the end.
fn text(bytes: &[u8], at: usize, len: usize) -> String {
    let bytes = bytes.get(at..at + len).unwrap_or(&[]);
    let printable = bytes.iter().map(|byte| match byte {
        b' '..=b'~' => char::from(*byte),
        _ => '?',
    });
    let text: String = printable.collect();
    text.trim_end().into()
}
