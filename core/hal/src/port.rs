//! A network port: what a stack or a link layer needs of a NIC.

use mbuf::{RxFrame, TxFrame};

/// What a port does for its user.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Capabilities {
    /// Completes the checksum of TCP and UDP in frames to send.
    pub checksum: bool,
    /// Cuts TCP over IPv4 into segments; implies `checksum`.
    pub segment_v4: bool,
    /// Cuts TCP over IPv6 into segments; implies `checksum`.
    pub segment_v6: bool,
}

/// One pair of queues of a NIC.
pub trait FramePort {
    /// The station's address.
    fn mac(&self) -> [u8; 6];

    /// The largest IP packet, in bytes.
    fn mtu(&self) -> u16;

    /// What the device does on transmission.
    fn capabilities(&self) -> Capabilities;

    /// Queues a frame; the device is told by [`kick`](Self::kick). A full queue gives the
    /// frame back.
    fn transmit(&mut self, frame: TxFrame) -> Result<(), TxFrame>;

    /// Tells the device about all frames queued since the last time.
    fn kick(&mut self);

    /// Hands at most `budget` received frames to `take`; returns how many.
    fn receive(&mut self, budget: usize, take: &mut dyn FnMut(RxFrame)) -> usize;

    /// Asks for an interrupt at the next frame. True if frames wait already, for which
    /// none may come: receive them and arm again.
    fn arm(&mut self) -> bool;
}
