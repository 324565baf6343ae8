//! What the stack needs from the world, and what it tells it.

use core::net::IpAddr;

use base::{Duration, Instant};
use mbuf::{Chain, Mbuf, TxFrame};
use wire::MacAddr;

use crate::SocketId;
use crate::addr::Endpoint;

/// The shell around a [`Stack`](crate::Stack): the kernel, a program's library, the
/// simulator or a test. It is passed into each call; the stack keeps nothing of it.
///
/// The methods are called with the stack borrowed, so they must not call back into it:
/// `wake` notes or unblocks a waiter, `transmit` queues a frame.
pub trait Env {
    /// The monotonic clock. May be a value cached for the batch.
    fn now(&self) -> Instant;

    /// What has passed since [`now`](Self::now) was read: how long a batch took, when it ends.
    /// Without an answer, answers to unsolicited packets cost nothing and have no limit.
    fn spent(&self) -> Duration {
        Duration::ZERO
    }

    /// 64 unpredictable bits.
    fn random(&mut self) -> u64;

    /// An empty buffer for what leaves at once: headers, an acknowledgement. `None` while there
    /// is no memory at all.
    fn alloc(&mut self) -> Option<Mbuf>;

    /// An empty buffer for bytes that a program sends, which may wait for long. `None` while
    /// memory [is scarce](Self::is_scarce).
    fn alloc_to_queue(&mut self) -> Option<Mbuf> {
        self.alloc()
    }

    /// Whether there is so little other memory that connections which peers open are refused.
    fn is_heap_short(&self) -> bool {
        false
    }

    /// Whether so little memory is left that it is only for what passes through: nothing that
    /// is received is kept then.
    fn is_scarce(&self) -> bool {
        false
    }

    /// Hands a frame to the port. The port drops it if it cannot send it, as a wire would.
    fn transmit(&mut self, frame: TxFrame);

    /// The port is to let frames for the station of a group through, or no longer. Each group has
    /// one call of either kind; two groups may share a station.
    fn group(&mut self, _station: MacAddr, _is_member: bool) {}

    /// A packet, from its IP header on, goes from us to us: for sniffers to see.
    fn looped(&mut self, _packet: &Chain) {}

    /// A packet for us; of TCP and UDP only after
    /// [`show_transports`](crate::Stack::show_transports). Says whether somebody takes it: then
    /// its sender is not told that nobody knows its protocol.
    fn raw(&mut self, _packet: &RawPacket<'_>) -> bool {
        false
    }

    /// How many bytes of `packet`, which starts with its transport header and came behind
    /// `headers`, the filter of `socket` wants; none drops it. Asked only of sockets whose
    /// options say that they have one.
    fn filter(&mut self, _socket: SocketId, _headers: &[u8], _packet: &Chain) -> usize {
        usize::MAX
    }

    /// A datagram came for a socket in whose queue there is nothing. Says whether it was taken out of
    /// `payload`, in the order in which such come: then it is not queued, and nobody is woken.
    fn take_datagram(&mut self, _socket: SocketId, _from: Endpoint, _payload: &mut Chain) -> bool {
        false
    }

    /// Something happened to a socket. Edges, not levels: [`Stack::poll`](crate::Stack::poll)
    /// tells what is true now. May name a socket that nobody has accepted yet. Without an event
    /// bytes have come, but fewer than the program waits for.
    fn wake(&mut self, socket: SocketId, events: Events);
}

/// A received packet as raw sockets see it.
#[derive(Clone, Copy, Debug)]
pub struct RawPacket<'a> {
    /// Who sent it.
    pub src: IpAddr,
    /// To which of our addresses.
    pub dst: IpAddr,
    /// IANA's number of what it carries.
    pub protocol: u8,
    /// Its IP headers; of a packet that came in fragments, the first one's.
    pub header: &'a [u8],
    /// What follows.
    pub payload: &'a Chain,
}

bitflags::bitflags! {
    /// What a socket is ready for, or what happened to it; `poll(2)` in our words.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct Events: u8 {
        /// Bytes, a datagram, a connection to accept, the peer's end of stream or an
        /// error can be received.
        const READABLE = 1;
        /// Bytes can be sent, or connecting has ended.
        const WRITABLE = 2;
        /// The peer has sent its last byte, or receiving was shut down.
        const READ_CLOSED = 4;
        /// Both directions are closed.
        const HANGUP = 8;
        /// An error waits in [`Stack::take_error`](crate::Stack::take_error).
        const ERROR = 16;
        /// Something waits in [`Stack::take_failure`](crate::Stack::take_failure).
        const FAILURE = 32;
    }
}
