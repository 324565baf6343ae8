//! How memory is used (section 5.5.6.3): `tag[2] value[8]` each, little endian.

use hal::MemoryUse;

const MAJOR_FAULTS: u16 = 2;
const MINOR_FAULTS: u16 = 3;
const FREE: u16 = 4;
const TOTAL: u16 = 5;
const AVAILABLE: u16 = 6;
const CACHES: u16 = 7;

/// Figures of an answer.
const COUNT: usize = 6;
/// Bytes of one.
const RECORD_BYTES: usize = 10;
/// Bytes of an answer.
pub(crate) const ANSWER_BYTES: usize = COUNT * RECORD_BYTES;

pub(crate) fn records(memory: &MemoryUse) -> [[u8; RECORD_BYTES]; COUNT] {
    let record = |(tag, value): (u16, u64)| {
        let [a, b] = tag.to_le_bytes();
        let [c, d, e, f, g, h, i, j] = value.to_le_bytes();
        [a, b, c, d, e, f, g, h, i, j]
    };
    [
        (TOTAL, memory.total_bytes),
        (FREE, memory.free_bytes),
        (AVAILABLE, memory.available_bytes),
        (CACHES, memory.cache_bytes),
        (MAJOR_FAULTS, memory.major_faults),
        (MINOR_FAULTS, memory.minor_faults),
    ]
    .map(record)
}
