//! The card's registers (section 13).

use hal::{Mmio, Registers};

/// Device control (13.4.1).
pub(crate) const CTRL: usize = 0x0000;
pub(crate) const CTRL_LINK_RESET: u32 = 1 << 3;
pub(crate) const CTRL_AUTO_SPEED: u32 = 1 << 5;
pub(crate) const CTRL_LINK_UP: u32 = 1 << 6;
pub(crate) const CTRL_RESET: u32 = 1 << 26;
/// Interrupt causes: reading clears them (13.4.17).
pub(crate) const ICR: usize = 0x00c0;
/// Enables causes; writing zeros changes nothing (13.4.20).
pub(crate) const IMS: usize = 0x00d0;
/// Disables causes (13.4.21).
pub(crate) const IMC: usize = 0x00d8;
/// Buffers run low, none was left, a frame was stored.
pub(crate) const CAUSES_RECEIVE: u32 = 1 << 4 | 1 << 6 | 1 << 7;
/// Receive control (13.4.22).
pub(crate) const RCTL: usize = 0x0100;
pub(crate) const RCTL_ENABLE: u32 = 1 << 1;
pub(crate) const RCTL_ALL_MULTICAST: u32 = 1 << 4;
pub(crate) const RCTL_BROADCAST: u32 = 1 << 15;
/// Leaves the frame check sequence out.
pub(crate) const RCTL_STRIP_FCS: u32 = 1 << 26;
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
/// Frames missed for want of room or buffers; reading clears it (13.7.5).
pub(crate) const MPC: usize = 0x4010;
/// Which checksums of received frames are verified (13.4.44).
pub(crate) const RXCSUM: usize = 0x5000;
pub(crate) const RXCSUM_IP_AND_TRANSPORT: u32 = 1 << 8 | 1 << 9;
/// Groups whose frames are wanted: a table of bits (13.5.1).
pub(crate) const MTA: usize = 0x5200;
pub(crate) const MTA_WORDS: usize = 128;
/// The card's address, loaded from its memory at reset (13.5.2).
pub(crate) const RAL: usize = 0x5400;
pub(crate) const RAH: usize = 0x5404;
pub(crate) const RAH_VALID: u32 = 1 << 31;

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
