//! The kernel's command line, copied from where the loader left it.

/// Text of a few thousand bytes at most; what is longer is cut off.
#[derive(Debug)]
pub struct CommandLine {
    bytes: [u8; Self::BYTES_MAX],
    count: usize,
}

impl CommandLine {
    /// Twice what Linux takes on x86.
    const BYTES_MAX: usize = 4096;
    pub(super) const EMPTY: Self = Self {
        bytes: [0; Self::BYTES_MAX],
        count: 0,
    };

    /// A copy of `text`.
    pub(super) fn of(text: &str) -> Self {
        let mut line = Self::EMPTY;
        line.count = text.floor_char_boundary(Self::BYTES_MAX);
        line.bytes[..line.count].copy_from_slice(&text.as_bytes()[..line.count]);
        line
    }

    pub(super) fn text(&self) -> &str {
        core::str::from_utf8(&self.bytes[..self.count]).unwrap_or("")
    }
}
