//! The card's registers (section 8, "Programming Interface").

/// Bytes that the registers take: all of base address 0.
pub(crate) const BYTES: usize = 0x2_0000;

/// Device control; see `intel::link` too.
pub(crate) const CTRL_MASTER_OFF: u32 = 1 << 2;
pub(crate) const CTRL_LINK_RESET: u32 = 1 << 3;
pub(crate) const CTRL_LINK_UP: u32 = 1 << 6;
pub(crate) const CTRL_FORCE_SPEED: u32 = 1 << 11;
pub(crate) const CTRL_FORCE_DUPLEX: u32 = 1 << 12;
pub(crate) const CTRL_RESET: u32 = 1 << 26;
/// Device status.
pub(crate) const STATUS_MASTER: u32 = 1 << 19;
/// Extended control: a driver has the card.
pub(crate) const CTRL_EXT: usize = 0x0018;
pub(crate) const CTRL_EXT_DRIVER_LOADED: u32 = 1 << 28;
/// Virtual functions may speak: the physical one has been reset.
pub(crate) const CTRL_EXT_RESET_DONE: u32 = 1 << 14;
/// The PHY's registers.
pub(crate) const MDIC: usize = 0x0020;

/// Causes that are not a queue's: reading clears them.
pub(crate) const ICR: usize = 0x00c0;
pub(crate) const IMS: usize = 0x00d0;
pub(crate) const IMC: usize = 0x00d8;
pub(crate) const CAUSE_LINK: u32 = 1 << 2;
/// A virtual function asks for something, or was reset.
pub(crate) const CAUSE_MAILBOX: u32 = 1 << 8;
/// How interrupts work.
pub(crate) const GPIE: usize = 0x1514;
/// Reading ICR clears it, whatever is masked.
pub(crate) const GPIE_NONSELECTIVE_CLEAR: u32 = 1 << 0;
pub(crate) const GPIE_MSIX: u32 = 1 << 4;
pub(crate) const GPIE_AUTO_MASK: u32 = 1 << 30;
pub(crate) const GPIE_PENDING_BITS: u32 = 1 << 31;
/// One bit for each message: mask set, mask clear, auto-clear, auto-mask, causes.
pub(crate) const EIMS: usize = 0x1524;
pub(crate) const EIMC: usize = 0x1528;
pub(crate) const EIAC: usize = 0x152c;
pub(crate) const EIAM: usize = 0x1530;
pub(crate) const EICR: usize = 0x1580;
/// Least time between two interrupts of message `n`, in bits 2 to 14.
pub(crate) const fn eitr(message: u16) -> usize {
    0x1680 + 4 * message as usize
}
/// The time that has passed already goes on counting.
pub(crate) const EITR_KEEP_COUNTER: u32 = 1 << 31;
pub(crate) const EITR_UNIT_NANOS: u64 = 1000;
pub(crate) const EITR_UNITS_MAX: u32 = (1 << 13) - 1;
pub(crate) const EITR_SHIFT: u32 = 2;
/// Which message receive queue `n` raises, of a virtual function queue 0; bits 0 to 7 for queues below 8.
pub(crate) const fn ivar(queue: u16) -> usize {
    0x1700 + 4 * queue as usize
}
/// Which message the other causes raise: bits 8 to 15.
pub(crate) const IVAR_OTHER: usize = 0x1740;
pub(crate) const IVAR_OTHER_SHIFT: u32 = 8;
pub(crate) const IVAR_VALID: u32 = 1 << 7;

/// Checksums of received frames: verify; report the hash and not their sum.
pub(crate) const RXCSUM: usize = 0x5000;
pub(crate) const RXCSUM_IP_AND_TRANSPORT: u32 = 1 << 8 | 1 << 9;
pub(crate) const RXCSUM_REPORT_HASH: u32 = 1 << 13;
/// Hash bits of unicast addresses that only virtual functions use; the other filters are
/// `intel::filters`'.
pub(crate) const UNICAST_TABLE: usize = 0xa000;
/// Unicast filters.
pub(crate) const ADDRESSES: usize = 24;
/// What is hashed, the key and the table.
pub(crate) const MRQC: usize = 0x5818;
pub(crate) const MRQC_SPREAD: u32 = 0b010;
pub(crate) const MRQC_TCP4: u32 = 1 << 16;
pub(crate) const MRQC_IP4: u32 = 1 << 17;
/// Looks for a home address in extension headers; without one it is as `MRQC_TCP6`.
pub(crate) const MRQC_TCP6_EXTENDED: u32 = 1 << 18;
pub(crate) const MRQC_IP6: u32 = 1 << 20;
pub(crate) const MRQC_TCP6: u32 = 1 << 21;
pub(crate) const MRQC_UDP4: u32 = 1 << 22;
pub(crate) const MRQC_UDP6: u32 = 1 << 23;
pub(crate) const HASH_TABLE: usize = 0x5c00;
pub(crate) const HASH_KEY: usize = 0x5c80;

/// Transmit control.
pub(crate) const TCTL: usize = 0x0400;
pub(crate) const TCTL_ENABLE: u32 = 1 << 1;
pub(crate) const TCTL_PAD_SHORT: u32 = 1 << 3;
/// The collision threshold that the datasheet recommends.
pub(crate) const TCTL_COLLISIONS: u32 = 0x0f << 4;

/// The rings of queue `n`; see `intel::Ring` and [`crate::queue`] for what lies behind.
pub(crate) const fn rx_ring(queue: u16) -> usize {
    0xc000 + 0x40 * queue as usize
}
pub(crate) const fn tx_ring(queue: u16) -> usize {
    0xe000 + 0x40 * queue as usize
}
