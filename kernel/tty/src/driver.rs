//! Where a terminal's output goes.

use alloc::collections::VecDeque;
use alloc::sync::Arc;

use mach::sync::Spin;
use sync::poll::{Events, Pollee};

use super::packet::{PacketMode, PacketStatus};
use super::ports::HostStream;

/// Bytes of output that wait for the master of a pseudo terminal.
const OUTPUT_MAX: usize = 16 << 10;

/// Bytes that a stream of the host takes at least if it takes any.
const PORT_ROOM: usize = 4096;

/// The other side of a terminal.
pub(super) enum Driver {
    /// The serial port; always takes everything.
    Serial,
    /// A stream of the host.
    Port(&'static HostStream),
    /// The master of a pseudo terminal.
    Master(Arc<MasterQueue>),
}

impl Driver {
    /// Bytes that it takes now.
    pub(super) fn room(&self) -> usize {
        match self {
            Self::Serial => usize::MAX,
            // Nobody looks any more: what is shown is lost, as on a terminal that is gone.
            Self::Port(port) if port.is_over() => usize::MAX,
            Self::Port(port) => match port.has_room_or_wants_it() {
                true => PORT_ROOM,
                false => 0,
            },
            Self::Master(queue) => OUTPUT_MAX.saturating_sub(queue.len()),
        }
    }

    /// Shows `bytes`; the caller has asked for room.
    pub(super) fn put(&self, bytes: &[u8]) {
        match self {
            Self::Serial => mach::console::write(bytes),
            Self::Port(port) => _ = port.put(bytes),
            Self::Master(queue) => queue.put(bytes),
        }
    }

    /// Something happened to the terminal that a master in packet mode hears of.
    pub(super) fn note(&self, what: PacketStatus) {
        if let Some(master) = self.master()
            && master.packet.note(what)
        {
            master.pollee.notify(Events::READABLE | Events::PRI);
        }
    }

    /// The master, if it is one.
    pub(super) fn master(&self) -> Option<&MasterQueue> {
        match self {
            Self::Serial | Self::Port(_) => None,
            Self::Master(queue) => Some(queue),
        }
    }
}

/// Output on its way to a master.
#[derive(Default)]
pub(super) struct MasterQueue {
    bytes: Spin<VecDeque<u8>>,
    /// Of the master.
    pub(super) pollee: Pollee,
    pub(super) packet: PacketMode,
}

impl MasterQueue {
    pub(super) fn len(&self) -> usize {
        self.bytes.lock().len()
    }

    fn put(&self, bytes: &[u8]) {
        let mut queue = self.bytes.lock();
        queue.extend(bytes);
        drop(queue);
        self.pollee.notify(Events::READABLE);
    }

    /// Moves bytes to `to`; returns how many.
    pub(super) fn take(&self, to: &mut [u8]) -> usize {
        let mut queue = self.bytes.lock();
        let count = to.len().min(queue.len());
        for (place, byte) in to.iter_mut().zip(queue.drain(..count)) {
            *place = byte;
        }
        count
    }

    pub(super) fn clear(&self) {
        self.bytes.lock().clear();
    }
}
