//! The card's registers (section 13).

use hal::{Mmio, Registers};

/// Device control (13.4.1); see `intel::link` too.
pub(crate) const CTRL_LINK_RESET: u32 = 1 << 3;
pub(crate) const CTRL_AUTO_SPEED: u32 = 1 << 5;
pub(crate) const CTRL_LINK_UP: u32 = 1 << 6;
pub(crate) const CTRL_RESET: u32 = 1 << 26;
/// The EtherType of VLAN tags (13.4.9).
pub(crate) const VET: usize = 0x0038;
pub(crate) const VET_TAG: u32 = 0x8100;
/// Interrupt causes: reading clears them (13.4.17).
pub(crate) const ICR: usize = 0x00c0;
/// Least time between two interrupts (13.4.18).
pub(crate) const ITR: usize = 0x00c4;
pub(crate) const ITR_UNIT_NANOS: u64 = 256;
pub(crate) const ITR_UNITS_MAX: u64 = 0xffff;
/// Enables causes; writing zeros changes nothing (13.4.20).
pub(crate) const IMS: usize = 0x00d0;
/// Disables causes (13.4.21).
pub(crate) const IMC: usize = 0x00d8;
/// Buffers run low, none was left, a frame was stored.
pub(crate) const CAUSES_RECEIVE: u32 = 1 << 4 | 1 << 6 | 1 << 7;
/// Transmit control (13.4.33).
pub(crate) const TCTL: usize = 0x0400;
pub(crate) const TCTL_ENABLE: u32 = 1 << 1;
pub(crate) const TCTL_PAD_SHORT: u32 = 1 << 3;
/// Collision threshold and distance for full duplex, as the manual recommends.
pub(crate) const TCTL_COLLISIONS: u32 = 0x0f << 4 | 0x40 << 12;
/// Gaps between frames: the manual's values for copper (13.4.34).
pub(crate) const TIPG: usize = 0x0410;
pub(crate) const TIPG_COPPER: u32 = 10 | 8 << 10 | 6 << 20;
/// The receive and the transmit ring (13.4.25 and following); see `intel`.
pub(crate) const RX_RING: usize = 0x2800;
pub(crate) const TX_RING: usize = 0x3800;
pub(crate) const RING_BYTES: usize = 0x20;
/// Which checksums of received frames are verified (13.4.44).
pub(crate) const RXCSUM: usize = 0x5000;
pub(crate) const RXCSUM_IP_AND_TRANSPORT: u32 = 1 << 8 | 1 << 9;
/// Bytes that the registers take at least.
pub(crate) const BYTES_MIN: usize = 0x6000;

/// What an interrupt handler needs of the card.
#[derive(Debug)]
pub struct Interrupt<R = Mmio>(pub(crate) R);

impl<R: Registers> Interrupt<R> {
    /// Silences the card until its port is armed again: whoever calls this must see to it
    /// that the port is looked at, even if the interrupt was late and its frames are gone.
    pub fn acknowledge(&self) {
        self.0.write32(IMC, u32::MAX);
        self.0.read32(ICR);
    }
}
