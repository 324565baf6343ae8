//! Records that say which file is mapped where, so that addresses can be named.
//!
//! After the stamp: the process; the address space; start, end, offset in the file; bytes
//! of the path; the path, eight bytes a word.

use crate::ring::{Kind, Ring, Stamp};

/// Bytes kept of a path.
pub const PATH_BYTES_MAX: usize = 256;
const FIXED_WORDS: usize = 6;

/// An executable mapping of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mapping<P> {
    /// The process.
    pub pid: u32,
    /// Its address space.
    pub space: u64,
    /// The first address.
    pub start: u64,
    /// One past the last address.
    pub end: u64,
    /// The byte of the file that lies at `start`.
    pub offset: u64,
    /// The file's path in the machine.
    pub path: P,
}

/// Writes the record; a longer path than [`PATH_BYTES_MAX`] is cut. False if the ring is too
/// small.
pub fn write_mapping(ring: &Ring<'_>, cpu: u16, cycles: u64, mapping: &Mapping<&[u8]>) -> bool {
    let path = &mapping.path[..mapping.path.len().min(PATH_BYTES_MAX)];
    let stamp = Stamp {
        kind: Kind::Mapping,
        cpu,
        cycles,
    };
    let words = path.chunks(8);
    let Some(mut draft) = ring.begin(stamp, FIXED_WORDS + words.len()) else {
        return false;
    };
    let fixed: [u64; FIXED_WORDS] = [
        u64::from(mapping.pid),
        mapping.space,
        mapping.start,
        mapping.end,
        mapping.offset,
        path.len() as u64,
    ];
    for word in fixed {
        draft.push(word);
    }
    for chunk in words {
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        draft.push(u64::from_le_bytes(bytes));
    }
    draft.finish();
    true
}

/// A path as it lies in a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Path<'a> {
    words: &'a [u64],
    bytes: usize,
}

impl Path<'_> {
    /// Its bytes.
    pub fn bytes(&self) -> impl Iterator<Item = u8> + '_ {
        let all = self.words.iter().flat_map(|word| word.to_le_bytes());
        all.take(self.bytes)
    }
}

pub(crate) fn decode(words: &[u64]) -> Option<Mapping<Path<'_>>> {
    let (fixed, path) = words.split_first_chunk::<FIXED_WORDS>()?;
    let [pid, space, start, end, offset, bytes] = *fixed;
    Some(Mapping {
        pid: pid as u32,
        space,
        start,
        end,
        offset,
        path: Path {
            words: path,
            bytes: bytes as usize,
        },
    })
}
