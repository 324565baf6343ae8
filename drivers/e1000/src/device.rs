//! The card: bringing it up, and its two rings as one port.

use hal::pci::{self, PciFunction};
use hal::{Capabilities, DmaError, DmaSource, FramePort, Mmio};
use mbuf::{Pool, RxFrame, TxFrame};

use crate::eeprom;
use crate::registers::{
    BYTES_MIN, CAUSES_RECEIVE, CTRL, CTRL_AUTO_SPEED, CTRL_LINK_RESET, CTRL_LINK_UP, CTRL_RESET,
    ICR, IMC, IMS, Interrupt, MTA, MTA_WORDS, RAH, RAH_VALID, RAL, RCTL, RCTL_ALL_MULTICAST,
    RCTL_BROADCAST, RCTL_ENABLE, RCTL_STRIP_FCS, RXCSUM, RXCSUM_IP_AND_TRANSPORT, TCTL,
    TCTL_COLLISIONS, TCTL_ENABLE, TCTL_PAD_SHORT, TIPG, TIPG_COPPER,
};
use crate::rx::Receiver;
use crate::tx::Transmitter;

const VENDOR: u16 = 0x8086;
/// 82540EM and 82545EM.
const DEVICES: [u16; 2] = [0x100e, 0x100f];
/// Base address 0 holds the registers.
const BAR: u8 = 0;
/// Reads of a register until a reset is given up; each takes a microsecond on the bus.
const RESET_READS_MAX: u32 = 100_000;
const MTU: u16 = 1500;

/// Why a card could not be brought up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// Another device.
    NotE1000,
    /// The registers are not mapped, or too few.
    RegistersOutside,
    /// The card did not come out of its reset.
    ResetStuck,
    /// The card's memory holds no address.
    NoAddress,
    /// No memory for the rings.
    Memory(DmaError),
    /// No buffers to receive into.
    NoBuffers,
}

/// What happened, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Frames received.
    pub rx_frames: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Frames sent.
    pub tx_frames: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Dropped: damaged on the wire.
    pub rx_damaged: u64,
    /// Dropped: did not end in its buffer.
    pub rx_too_long: u64,
    /// Dropped: the card claims a length that cannot be.
    pub rx_bad_length: u64,
    /// Dropped: no buffer to replace the filled one.
    pub rx_no_memory: u64,
    /// Refused: no descriptors were free.
    pub tx_queue_full: u64,
    /// Refused: the frame asks for what the card cannot do.
    pub tx_unsupported: u64,
    /// Refused: no buffer to gather its many parts in.
    pub tx_no_memory: u64,
}

/// A running card.
pub struct E1000 {
    registers: Mmio,
    mac: [u8; 6],
    rx: Receiver,
    tx: Transmitter,
    counters: Counters,
}

impl E1000 {
    /// Whether this driver is for `function`.
    pub fn is_for(function: &impl PciFunction) -> bool {
        let (vendor, device) = pci::id(function);
        vendor == VENDOR && DEVICES.contains(&device)
    }

    /// Brings the card up; `pool` supplies the buffers of received frames.
    pub fn new(
        function: &impl PciFunction,
        memory: &impl DmaSource,
        pool: &'static (dyn Pool + Sync),
    ) -> Result<Self, Error> {
        if !Self::is_for(function) {
            return Err(Error::NotE1000);
        }
        pci::enable(function);
        let registers = function.bar(BAR).ok_or(Error::RegistersOutside)?;
        if registers.bytes() < BYTES_MIN {
            return Err(Error::RegistersOutside);
        }
        reset(&registers)?;
        pci::allow_line(function);
        Self::start(registers, memory, pool)
    }

    /// As [`new`](Self::new), for a card fresh from its reset.
    pub(crate) fn start(
        registers: Mmio,
        memory: &impl DmaSource,
        pool: &'static (dyn Pool + Sync),
    ) -> Result<Self, Error> {
        let mac = read_mac(&registers)?;
        for word in 0..MTA_WORDS {
            registers.write32(MTA + word * 4, 0);
        }
        let mut rx = Receiver::new(&registers, memory, pool)?;
        let tx = Transmitter::new(&registers, memory, pool)?;
        registers.write32(RXCSUM, RXCSUM_IP_AND_TRANSPORT);
        registers.write32(TIPG, TIPG_COPPER);
        registers.write32(TCTL, TCTL_ENABLE | TCTL_PAD_SHORT | TCTL_COLLISIONS);
        let control = registers.read32(CTRL) & !CTRL_LINK_RESET;
        registers.write32(CTRL, control | CTRL_AUTO_SPEED | CTRL_LINK_UP);
        if rx.refill() == 0 {
            return Err(Error::NoBuffers);
        }
        // IPv6 asks for neighbours by groups; which of them are ours the stack decides.
        let groups = RCTL_BROADCAST | RCTL_ALL_MULTICAST;
        registers.write32(RCTL, RCTL_ENABLE | groups | RCTL_STRIP_FCS);
        Ok(Self {
            registers,
            mac,
            rx,
            tx,
            counters: Counters::default(),
        })
    }

    /// What the handler of the card's interrupt line needs.
    pub fn interrupt(&self) -> Option<Interrupt> {
        let bytes = self.registers.bytes();
        self.registers.window(0, bytes).map(Interrupt)
    }

    /// What happened so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }
}

/// Stops the card and all its transfers, and silences it (section 14.3).
fn reset(registers: &Mmio) -> Result<(), Error> {
    registers.write32(IMC, u32::MAX);
    registers.write32(RCTL, 0);
    registers.write32(TCTL, 0);
    registers.write32(CTRL, registers.read32(CTRL) | CTRL_RESET);
    let is_done = || registers.read32(CTRL) & CTRL_RESET == 0;
    if !(0..RESET_READS_MAX).any(|_| is_done()) {
        return Err(Error::ResetStuck);
    }
    registers.write32(IMC, u32::MAX);
    registers.read32(ICR);
    Ok(())
}

/// The card's address, which is in its first filter then.
fn read_mac(registers: &Mmio) -> Result<[u8; 6], Error> {
    let (low, high) = (registers.read32(RAL), registers.read32(RAH));
    let [a, b, c, d] = low.to_le_bytes();
    let [e, f, ..] = high.to_le_bytes();
    if high & RAH_VALID != 0 {
        return Ok([a, b, c, d, e, f]);
    }
    let mac = eeprom::mac(registers).ok_or(Error::NoAddress)?;
    let [a, b, c, d, e, f] = mac;
    registers.write32(RAL, u32::from_le_bytes([a, b, c, d]));
    registers.write32(RAH, RAH_VALID | u32::from_le_bytes([e, f, 0, 0]));
    Ok(mac)
}

impl FramePort for E1000 {
    fn mac(&self) -> [u8; 6] {
        self.mac
    }

    fn mtu(&self) -> u16 {
        MTU
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            checksum: true,
            guest_checksum: true,
            ..Capabilities::default()
        }
    }

    fn transmit(&mut self, frame: TxFrame) -> Result<(), TxFrame> {
        self.tx.transmit(frame, &mut self.counters)
    }

    fn kick(&mut self) {
        self.tx.kick();
    }

    fn receive(&mut self, budget: usize, take: &mut dyn FnMut(RxFrame)) -> usize {
        self.tx.reclaim();
        self.rx.receive(budget, &mut self.counters, take)
    }

    fn unsent(&mut self) -> usize {
        self.tx.unsent()
    }

    fn reclaim(&mut self) {
        self.tx.reclaim();
    }

    fn has_received(&mut self) -> bool {
        self.rx.has_frame()
    }

    fn arm(&mut self) -> bool {
        self.rx.refill();
        // Causes of frames that were taken by polling would interrupt at once. What comes
        // after this read does so rightly; what came before is seen below.
        self.registers.read32(ICR);
        self.registers.write32(IMS, CAUSES_RECEIVE);
        self.rx.has_frame()
    }

    fn disarm(&mut self) {
        self.registers.write32(IMC, u32::MAX);
    }
}

impl Drop for E1000 {
    /// The card must not touch buffers that are about to be freed: one that does not come
    /// out of its reset keeps them.
    fn drop(&mut self) {
        match reset(&self.registers) {
            Ok(()) => {
                self.rx.retire();
                self.tx.retire();
            }
            Err(_) => {
                self.rx.abandon();
                self.tx.abandon();
            }
        }
    }
}
