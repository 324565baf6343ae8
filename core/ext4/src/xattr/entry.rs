//! Attributes as they lie on the disk: entries from the front, values from the back.

use alloc::vec::Vec;

use crate::bytes::{byte, le16, le32, put, put_le16, put_le32, span};

const HEADER_BYTES: usize = 16;
/// Prefixes of names that are stored as a number.
const PREFIXES: [(u8, &[u8]); 4] = [
    (1, b"user."),
    (4, b"trusted."),
    (6, b"security."),
    (7, b"system."),
];
/// Attributes of an inode at most: as many as a block and an inode have room for.
const COUNT_MAX: usize = 512;

/// One attribute.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Attribute {
    pub(super) index: u8,
    pub(super) name: Vec<u8>,
    pub(super) value: Vec<u8>,
}

/// The number of a name's prefix, and the rest.
pub(super) fn split_name(name: &[u8]) -> Option<(u8, &[u8])> {
    if name.starts_with(b"system.posix_acl_") {
        return None;
    }
    let split = |(index, prefix): &(u8, &[u8])| Some((*index, name.strip_prefix(*prefix)?));
    PREFIXES
        .iter()
        .find_map(split)
        .filter(|(_, rest)| !rest.is_empty())
}

impl Attribute {
    pub(super) fn is(&self, index: u8, name: &[u8]) -> bool {
        self.index == index && self.name == name
    }

    /// The name with its prefix, if it has one that is shown.
    pub(super) fn full_name(&self) -> Option<Vec<u8>> {
        let (_, prefix) = PREFIXES.iter().find(|(index, _)| *index == self.index)?;
        Some([prefix, self.name.as_slice()].concat())
    }

    fn entry_bytes(&self) -> usize {
        HEADER_BYTES + self.name.len().next_multiple_of(4)
    }

    fn value_bytes(&self) -> usize {
        self.value.len().next_multiple_of(4)
    }

    /// The hash of name and value that Linux and e2fsck expect.
    pub(super) fn hash(&self) -> u32 {
        let of_name = self
            .name
            .iter()
            .fold(0u32, |hash, byte| hash.rotate_left(5) ^ u32::from(*byte));
        self.value.chunks(4).fold(of_name, |hash, word| {
            let mut four = [0; 4];
            put(&mut four, 0, word);
            hash.rotate_left(16) ^ u32::from_le_bytes(four)
        })
    }
}

/// Bytes of entries, of the word that ends them, and of values.
pub(super) fn bytes<'a>(attributes: impl Iterator<Item = &'a Attribute>) -> usize {
    4 + attributes
        .map(|one| one.entry_bytes() + one.value_bytes())
        .sum::<usize>()
}

/// The attributes whose entries begin with `area`, and whose values are in `values`.
pub(super) fn parse(area: &[u8], values: &[u8]) -> Option<Vec<Attribute>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at + 4 <= area.len() && le32(area, at) != 0 {
        let name_len = usize::from(byte(area, at));
        let name = area.get(at + HEADER_BYTES..at + HEADER_BYTES + name_len)?;
        let (offset, len) = (usize::from(le16(area, at + 2)), le32(area, at + 8) as usize);
        let value = values.get(offset..offset.checked_add(len)?)?;
        if le32(area, at + 4) != 0 || found.len() >= COUNT_MAX {
            return None;
        }
        found.push(Attribute {
            index: byte(area, at + 1),
            name: name.to_vec(),
            value: value.to_vec(),
        });
        at += HEADER_BYTES + name_len.next_multiple_of(4);
    }
    Some(found)
}

/// Stores attributes into `area`: entries from `first` on, values from the end, whose offsets are
/// counted from `base` bytes before the area. There is room, and it is zeroed.
pub(super) fn fill(area: &mut [u8], first: usize, base: usize, attributes: &[Attribute]) {
    let (mut at, mut end) = (first, area.len() / 4 * 4);
    for one in attributes {
        end = end.saturating_sub(one.value_bytes());
        put(area, at, &[one.name.len() as u8, one.index]);
        let offset = if one.value.is_empty() { 0 } else { end + base };
        put_le16(area, at + 2, offset as u16);
        put_le32(area, at + 8, one.value.len() as u32);
        put_le32(area, at + 12, one.hash());
        put(area, at + HEADER_BYTES, &one.name);
        put(area, end, &one.value);
        at += one.entry_bytes();
    }
}

/// How entries of a block are sorted.
pub(super) fn key(attribute: &Attribute) -> (u8, usize, &[u8]) {
    (
        attribute.index,
        attribute.name.len(),
        span(&attribute.name, 0, attribute.name.len()),
    )
}
