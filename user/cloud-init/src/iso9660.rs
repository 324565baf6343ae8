//! ISO 9660 (ECMA-119), read only: a volume's label and the files of its root.
//!
//! The standard's own names are `USER_DAT.;1`. The true ones are in Rock Ridge's `NM` entries behind each record
//! (IEEE P1282, on SUSP), or in a second root with names of UCS-2 (Joliet); `genisoimage` and `xorriso` write either.
//!
//! ```text
//! sector 16 on   descriptors of 2048 bytes: 1 primary, 2 Joliet, 255 the last
//!   40..72       the label, with spaces      156..190  the root's record
//! a record       0 its bytes, 2 first sector, 10 bytes of content, 25 flags, 32 bytes of the name, 33 the name
//! ```

use std::io::{self, Read, Seek, SeekFrom};

use crate::TEXT_BYTES_MAX;

const SECTOR_BYTES: usize = 2048;
const FIRST_DESCRIPTOR: u64 = 16;
const DESCRIPTORS_MAX: u64 = 32;
const ROOT_AT: usize = 156;
const ESCAPES_AT: usize = 88;
/// Joliet's three levels of UCS-2.
const JOLIET: [&[u8]; 3] = [b"%/@", b"%/C", b"%/E"];
/// Of a root: a seed has three files.
const FOLDER_BYTES_MAX: u32 = 64 << 10;
const RECORD_NAME_AT: usize = 33;
const IS_FOLDER: u8 = 2;

/// A volume of ISO 9660.
#[derive(Debug)]
pub struct Volume<D> {
    disk: D,
    /// Its label without the spaces.
    pub label: String,
    primary: Extent,
    joliet: Option<Extent>,
}

/// Where content lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Extent {
    first_sector: u32,
    bytes: u32,
}

/// How names are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    RockRidge,
    Joliet,
}

impl<D: Read + Seek> Volume<D> {
    /// The volume on `disk`; `None` if it has none.
    pub fn open(mut disk: D) -> io::Result<Option<Self>> {
        let (mut primary, mut joliet) = (None, None);
        for number in 0..DESCRIPTORS_MAX {
            let Some(descriptor) = descriptor(&mut disk, FIRST_DESCRIPTOR + number)? else {
                break;
            };
            let root = || extent(descriptor.get(ROOT_AT..)?);
            match descriptor.first() {
                Some(1) => primary = root().map(|root| (root, label(&descriptor))),
                Some(2) if is_joliet(&descriptor) => joliet = root(),
                Some(255) => break,
                _ => {}
            }
        }
        Ok(primary.map(|(primary, label)| Self {
            disk,
            label,
            primary,
            joliet,
        }))
    }

    /// The file `name` of the root; of one over the bound of texts a byte more than that.
    pub fn read(&mut self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let found = match self.find(self.primary, Names::RockRidge, name)? {
            None => match self.joliet {
                Some(root) => self.find(root, Names::Joliet, name)?,
                None => None,
            },
            found => found,
        };
        let most = TEXT_BYTES_MAX as u32 + 1;
        found.map(|file| self.content(file, most)).transpose()
    }

    fn find(&mut self, root: Extent, names: Names, wanted: &str) -> io::Result<Option<Extent>> {
        let folder = self.content(root, FOLDER_BYTES_MAX)?;
        let mut records = folder.chunks(SECTOR_BYTES).flat_map(Records);
        let found = records.find(|record| {
            let is_file = record.get(25).is_some_and(|flags| flags & IS_FOLDER == 0);
            is_file && name(record, names).is_some_and(|name| name.eq_ignore_ascii_case(wanted))
        });
        Ok(found.and_then(extent))
    }

    /// At most so many bytes of it.
    fn content(&mut self, of: Extent, most: u32) -> io::Result<Vec<u8>> {
        let at = u64::from(of.first_sector) * SECTOR_BYTES as u64;
        self.disk.seek(SeekFrom::Start(at))?;
        let mut bytes = Vec::new();
        let wanted = u64::from(of.bytes.min(most));
        self.disk.by_ref().take(wanted).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// The descriptor in a sector, if one is there.
fn descriptor(disk: &mut (impl Read + Seek), sector: u64) -> io::Result<Option<Vec<u8>>> {
    disk.seek(SeekFrom::Start(sector * SECTOR_BYTES as u64))?;
    let mut bytes = Vec::new();
    disk.take(SECTOR_BYTES as u64).read_to_end(&mut bytes)?;
    let is_one = bytes.len() == SECTOR_BYTES && bytes.get(1..6) == Some(b"CD001");
    Ok(is_one.then_some(bytes))
}

fn label(descriptor: &[u8]) -> String {
    let field = descriptor.get(40..72).unwrap_or_default();
    String::from_utf8_lossy(field).trim().into()
}

fn is_joliet(descriptor: &[u8]) -> bool {
    let escapes = descriptor.get(ESCAPES_AT..).unwrap_or_default();
    JOLIET.iter().any(|level| escapes.starts_with(level))
}

/// What a record says of its content.
fn extent(record: &[u8]) -> Option<Extent> {
    let word = |at: usize| Some(u32::from_le_bytes(*record.get(at..)?.first_chunk()?));
    Some(Extent {
        first_sector: word(2)?,
        bytes: word(10)?,
    })
}

/// The records of one sector of a folder; none crosses into the next.
struct Records<'a>(&'a [u8]);

impl<'a> Iterator for Records<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<Self::Item> {
        let len = usize::from(*self.0.first()?);
        if len <= RECORD_NAME_AT {
            return None;
        }
        let (record, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(record)
    }
}

fn name(record: &[u8], names: Names) -> Option<String> {
    let len = usize::from(*record.get(32)?);
    let plain = record.get(RECORD_NAME_AT..RECORD_NAME_AT + len)?;
    let name = match names {
        Names::RockRidge => {
            // What follows begins at an even byte.
            let behind = record.get((RECORD_NAME_AT + len).next_multiple_of(2)..);
            let alternate = alternate_name(behind.unwrap_or_default());
            String::from_utf8_lossy(&alternate.unwrap_or(plain.into())).into_owned()
        }
        Names::Joliet => {
            let words = plain.chunks_exact(2);
            let words = words.map(|word| u16::from(word[0]) << 8 | u16::from(word[1]));
            String::from_utf16_lossy(&words.collect::<Vec<_>>())
        }
    };
    // The version behind the name.
    Some(name.split(';').next().unwrap_or_default().into())
}

/// The `NM` entries together: 0 two letters, 2 bytes, 3 version, 4 flags, 5 a part of the name.
fn alternate_name(mut entries: &[u8]) -> Option<Vec<u8>> {
    let mut name = None;
    while let Some(&len) = entries.get(2) {
        let Some((entry, rest)) = entries.split_at_checked(usize::from(len).max(4)) else {
            break;
        };
        if entry.starts_with(b"NM") {
            let part = entry.get(5..).unwrap_or_default();
            name.get_or_insert_with(Vec::new).extend_from_slice(part);
        }
        entries = rest;
    }
    name
}

#[cfg(test)]
mod tests;
