//! Datagrams that wait to be read, in bounded number.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use mach::mem::fallible::TryGrow;

/// What a datagram costs besides its bytes, so that small ones are bounded too.
const OVERHEAD_BYTES: usize = 512;

/// Whole messages, to be read at once.
pub(crate) struct Datagram {
    /// The messages.
    pub bytes: Vec<u8>,
    /// The group that it was for; zero if for this socket.
    pub group: u32,
}

/// The datagrams of one socket, in order.
#[derive(Default)]
pub(crate) struct Queue {
    waiting: VecDeque<Arc<Datagram>>,
    /// What they cost.
    bytes: usize,
    /// Datagrams were lost since the program was last told.
    has_overrun: bool,
    dropped: u64,
}

impl Queue {
    /// Adds a datagram; one that does not fit within `limit_bytes` is lost.
    pub fn push(&mut self, datagram: Datagram, limit_bytes: usize) {
        let cost = datagram.bytes.len() + OVERHEAD_BYTES;
        let has_room = self.bytes == 0 || self.bytes + cost <= limit_bytes;
        if !has_room || self.waiting.make_room(1).is_err() {
            self.lose();
            return;
        }
        self.bytes += cost;
        self.waiting.push_back(Arc::new(datagram));
    }

    /// Counts one that was lost.
    pub fn lose(&mut self) {
        self.has_overrun = true;
        self.dropped += 1;
    }

    /// The first one.
    pub fn first(&self) -> Option<Arc<Datagram>> {
        self.waiting.front().cloned()
    }

    /// Takes the first one.
    pub fn pop(&mut self) -> Option<Arc<Datagram>> {
        let datagram = self.waiting.pop_front()?;
        self.bytes -= datagram.bytes.len() + OVERHEAD_BYTES;
        Some(datagram)
    }

    /// Whether something was lost and the program has not been told.
    pub fn has_overrun(&self) -> bool {
        self.has_overrun
    }

    /// The same; now it is told.
    pub fn take_overrun(&mut self) -> bool {
        core::mem::take(&mut self.has_overrun)
    }

    /// Whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// What waits, in bytes with what it costs to keep.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Datagrams lost in all.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}
