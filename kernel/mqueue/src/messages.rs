//! The messages of a queue, the highest priority first, each as it came.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use mach::mem::fallible::TryGrow;
use sync::Result;

/// Priorities, from 0 on (MQ_PRIO_MAX).
pub const PRIORITIES: u32 = 32_768;

/// One message.
pub struct Message {
    /// Those of higher ones go first.
    pub priority: u32,
    /// What it says.
    pub bytes: Vec<u8>,
}

/// Messages in the order in which they go.
#[derive(Default)]
pub struct Messages {
    waiting: VecDeque<Message>,
    bytes: usize,
}

impl Messages {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Bytes of all.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Puts a message behind those that go before it.
    ///
    /// Errors: `OutOfMemory`.
    pub fn put(&mut self, message: Message) -> Result<()> {
        self.waiting.make_room(1)?;
        let place = self
            .waiting
            .partition_point(|before| before.priority >= message.priority);
        self.bytes += message.bytes.len();
        self.waiting.insert(place, message);
        Ok(())
    }

    /// Takes the first one.
    pub fn take(&mut self) -> Option<Message> {
        let message = self.waiting.pop_front()?;
        self.bytes -= message.bytes.len();
        Some(message)
    }
}
