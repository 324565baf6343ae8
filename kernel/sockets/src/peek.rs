//! Where a look at what waits begins (SO_PEEK_OFF).
//!
//! A program that sets an offset looks at more with each MSG_PEEK, not at the same again: the
//! offset moves on by what it has seen, and back by what it takes. Two threads that look at once
//! may see the same bytes; which of them was first nobody can tell.

use core::sync::atomic::{AtomicI32, Ordering};

use sync::Result;

use vfs::socket::{MessageFlags, OptionValue};

/// Every look begins at the first byte.
const OFF: i32 = -1;

/// The offset of one socket.
pub struct PeekOffset(AtomicI32);

impl Default for PeekOffset {
    fn default() -> Self {
        Self(AtomicI32::new(OFF))
    }
}

impl PeekOffset {
    /// As a program asks for it.
    pub fn get(&self) -> OptionValue {
        OptionValue::Number(self.0.load(Ordering::Relaxed))
    }

    /// As a program sets it; a negative number is none.
    pub fn set(&self, value: OptionValue) -> Result<()> {
        self.0.store(value.number()?.max(OFF), Ordering::Relaxed);
        Ok(())
    }

    /// Bytes that a receive with these flags leaves out; `None` if no offset is set, or it takes
    /// what it receives.
    pub fn skip(&self, flags: MessageFlags) -> Option<usize> {
        let offset = usize::try_from(self.0.load(Ordering::Relaxed)).ok();
        offset.filter(|_| flags.contains(MessageFlags::PEEK))
    }

    /// A receive with these flags has seen or taken so many bytes.
    pub fn note(&self, flags: MessageFlags, bytes: usize) {
        let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
        let moved = |offset: i32| match flags.contains(MessageFlags::PEEK) {
            _ if offset < 0 => None,
            true => Some(offset.saturating_add(bytes)),
            false => Some((offset - bytes).max(0)),
        };
        // Without an offset there is nothing to move.
        let _ = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, moved);
    }
}
