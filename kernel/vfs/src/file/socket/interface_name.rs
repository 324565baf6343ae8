//! How a network interface is called.

use core::ops::Deref;

/// The name of an interface: at most 15 bytes, as Linux has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InterfaceName {
    bytes: [u8; Self::BYTES_MAX],
    len: u8,
}

impl InterfaceName {
    const BYTES_MAX: usize = 15;

    /// `None` if it is too long.
    pub const fn new(text: &str) -> Option<Self> {
        let text = text.as_bytes();
        if text.len() > Self::BYTES_MAX {
            return None;
        }
        let mut bytes = [0; Self::BYTES_MAX];
        let (head, _) = bytes.split_at_mut(text.len());
        head.copy_from_slice(text);
        let len = text.len() as u8;
        Some(Self { bytes, len })
    }
}

impl Deref for InterfaceName {
    type Target = str;

    fn deref(&self) -> &str {
        // It was made of a whole text.
        str::from_utf8(&self.bytes[..self.len.into()]).unwrap_or_default()
    }
}

impl core::fmt::Display for InterfaceName {
    fn fmt(&self, to: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        to.pad(self)
    }
}
