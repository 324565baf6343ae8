//! From a record's words to what they say.

use crate::mapping::{self, Mapping, Path};
use crate::ring::{Kind, STAMP_WORDS, Stamp};
use crate::stack::{Stack, has_stack};

/// A record, decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event<'a> {
    /// A sample, a wait or a wake-up.
    Stack(Stack<'a>),
    /// A mapped file.
    Mapping(Mapping<Path<'a>>),
}

/// Decodes a record that [`crate::Cursor::take`] gave; `None` for what this version does
/// not know.
pub fn decode(record: &[u64]) -> Option<Event<'_>> {
    let (stamp, words) = record.split_first_chunk::<STAMP_WORDS>()?;
    let stamp = Stamp {
        kind: Kind::from_number(stamp[0] >> 32 & 0xffff)?,
        cpu: (stamp[0] >> 48) as u16,
        cycles: stamp[2],
    };
    if has_stack(stamp.kind) {
        Stack::decode(stamp, words).map(Event::Stack)
    } else {
        mapping::decode(words).map(Event::Mapping)
    }
}
