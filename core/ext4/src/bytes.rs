//! Fields of disk structures at fixed offsets.
//!
//! Parsers check a structure's length before its fields. Should one forget, a field outside the
//! slice reads as zero and a store there is lost, so that no image can bring about a panic.

macro_rules! field {
    ($get:ident, $put:ident, $kind:ty, $from:ident, $to:ident) => {
        /// The field at `at`.
        pub(crate) fn $get(bytes: &[u8], at: usize) -> $kind {
            const LEN: usize = size_of::<$kind>();
            let field = bytes.get(at..).and_then(|rest| rest.first_chunk::<LEN>());
            field.map_or(0, |field| <$kind>::$from(*field))
        }

        /// Sets the field at `at`.
        pub(crate) fn $put(bytes: &mut [u8], at: usize, value: $kind) {
            put(bytes, at, &value.$to());
        }
    };
}

field!(le16, put_le16, u16, from_le_bytes, to_le_bytes);
field!(le32, put_le32, u32, from_le_bytes, to_le_bytes);
field!(be32, put_be32, u32, from_be_bytes, to_be_bytes);
field!(be64, put_be64, u64, from_be_bytes, to_be_bytes);

/// The big-endian number of 16 bits at `at`.
pub(crate) fn be16(bytes: &[u8], at: usize) -> u16 {
    le16(bytes, at).swap_bytes()
}

/// The byte at `at`.
pub(crate) fn byte(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

/// `len` bytes at `at`; nothing if they are not all there.
pub(crate) fn span(bytes: &[u8], at: usize, len: usize) -> &[u8] {
    let end = at.saturating_add(len);
    bytes.get(at..end).unwrap_or(&[])
}

/// Stores `from` at `at`, if there is room.
pub(crate) fn put(bytes: &mut [u8], at: usize, from: &[u8]) {
    let end = at.saturating_add(from.len());
    if let Some(to) = bytes.get_mut(at..end) {
        to.copy_from_slice(from);
    }
}

/// Zeroes `len` bytes at `at`, if they are there.
pub(crate) fn zero(bytes: &mut [u8], at: usize, len: usize) {
    if let Some(to) = bytes.get_mut(at..at.saturating_add(len)) {
        to.fill(0);
    }
}

/// Moves `len` bytes from `from` to `to`, if both are inside.
pub(crate) fn shift(bytes: &mut [u8], from: usize, to: usize, len: usize) {
    let (from_end, to_end) = (from.saturating_add(len), to.saturating_add(len));
    if from_end <= bytes.len() && to_end <= bytes.len() {
        bytes.copy_within(from..from_end, to);
    }
}

/// A number whose halves lie apart.
pub(crate) fn joined32(bytes: &[u8], low: usize, high: usize) -> u32 {
    u32::from(le16(bytes, low)) | u32::from(le16(bytes, high)) << 16
}

/// The same of 64 bits.
pub(crate) fn joined64(bytes: &[u8], low: usize, high: usize) -> u64 {
    u64::from(le32(bytes, low)) | u64::from(le32(bytes, high)) << 32
}
