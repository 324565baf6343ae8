//! The buffer of one request under way.

use hal::caching::WriteBack;
use hal::owner::Device;
use hal::{DmaBuf, DmaRequest, DmaSource, HasDeviceAddr, Span};
use ninep::Request;
use virtq::Part;

/// Replies that carry no data are shorter than this, names and link texts included.
const SMALL_REPLY_BYTES: usize = 4096 + 64;

/// Memory for a request and its reply, `msize` bytes each.
pub(crate) enum Slot {
    /// No request uses it.
    Idle(DmaBuf),
    /// The device reads the request or writes the reply.
    InFlight(DmaBuf<WriteBack, Device>),
}

impl Slot {
    /// Memory that the device does not know yet.
    pub(crate) fn alloc(memory: &impl DmaSource, msize: usize) -> Option<DmaBuf> {
        memory.dma_alloc(&DmaRequest::new(2 * msize, 8)).ok()
    }

    /// Copies `message` in and hands the memory over; the chain that says so, unless
    /// the message is too long.
    pub(crate) fn fill(
        memory: DmaBuf,
        message: &[u8],
        request: &Request<'_>,
        msize: usize,
    ) -> (Self, Option<[Part; 2]>) {
        if message.len() > msize {
            return (Self::Idle(memory), None);
        }
        memory.copy_in(0, message);
        let memory = memory.give();
        let asked = memory.dev_addr(0, message.len());
        let chain = asked
            .zip(room(&memory, request, msize))
            .map(|(asked, room)| [Part::Read(asked), Part::Write(room)]);
        (Self::InFlight(memory), chain)
    }

    /// The memory, which the device is done with or was never told of.
    pub(crate) fn take_back(self) -> DmaBuf {
        match self {
            Self::Idle(memory) => memory,
            Self::InFlight(memory) => memory.take_back(),
        }
    }
}

/// Room for the reply: what can come, so that the device need not map more.
fn room(memory: &DmaBuf<WriteBack, Device>, request: &Request<'_>, msize: usize) -> Option<Span> {
    let bytes = match *request {
        Request::Read { .. } | Request::Readdir { .. } => msize,
        _ => msize.min(SMALL_REPLY_BYTES),
    };
    memory.dev_addr(msize, bytes)
}
