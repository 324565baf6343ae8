//! The buffer of one request under way.

use core::ops::Range;

use hal::caching::WriteBack;
use hal::owner::Device;
use hal::{DmaBuf, DmaRequest, DmaSource, HasDeviceAddr, Span};
use virtq::Part;

/// Where a reply may begin.
const ALIGNMENT: usize = 8;

/// Memory for a request and its reply.
pub(crate) enum Slot {
    /// No request uses it.
    Idle(DmaBuf),
    /// The device reads the request, and writes the reply into this room.
    InFlight(DmaBuf<WriteBack, Device>, Range<usize>),
}

/// A chain: the message, and the room for the reply if there is one.
pub(crate) struct Chain {
    message: Span,
    room: Option<Span>,
}

impl Chain {
    /// The parts, in order.
    pub(crate) fn parts(&self) -> impl Iterator<Item = Part> + Clone {
        let room = self.room.map(Part::Write);
        [Part::Read(self.message)].into_iter().chain(room)
    }
}

impl Slot {
    /// Memory that the device does not know yet.
    pub(crate) fn alloc(memory: &impl DmaSource, bytes: usize) -> Option<DmaBuf> {
        memory.dma_alloc(&DmaRequest::new(bytes, ALIGNMENT)).ok()
    }

    /// Copies `message` in and hands the memory over; the chain that says so, unless message and
    /// reply are too long together.
    pub(crate) fn fill(
        memory: DmaBuf,
        message: &[u8],
        reply_bytes: usize,
    ) -> (Self, Option<Chain>) {
        let reply_at = message.len().next_multiple_of(ALIGNMENT);
        if reply_at + reply_bytes > memory.bytes() {
            return (Self::Idle(memory), None);
        }
        memory.copy_in(0, message);
        let memory = memory.give();
        let message = memory.dev_addr(0, message.len());
        let chain = match reply_bytes {
            0 => message.map(|message| (message, None)),
            bytes => message
                .zip(memory.dev_addr(reply_at, bytes))
                .map(|(message, room)| (message, Some(room))),
        };
        let chain = chain.map(|(message, room)| Chain { message, room });
        let room = reply_at..reply_at + reply_bytes;
        (Self::InFlight(memory, room), chain)
    }

    /// The memory, which the device is done with or was never told of, and the room for the reply.
    pub(crate) fn take_back(self) -> (DmaBuf, Range<usize>) {
        match self {
            Self::Idle(memory) => (memory, 0..0),
            Self::InFlight(memory, room) => (memory.take_back(), room),
        }
    }
}
