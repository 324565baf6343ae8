//! The card: bringing it up, and its two rings as one port.

use base::Instant;
use hal::pci::{self, PciFunction};
use hal::{
    Capabilities, DmaError, DmaSource, FramePort, Mmio, PortCounters, Registers, Remedy, Stall,
    Watchdog,
};
use intel::filters::{ADDRESS_HIGH, ADDRESS_VALID, RCTL, address};
use intel::link::{CTRL, CTRL_HANDLE_TAGS};
use intel::{Ring, RxRing, SLOTS};
use mbuf::{Pool, RxFrame, TxFrame};

use crate::control::Control;
use crate::descriptor::Legacy;
use crate::eeprom;
use crate::registers::{
    BYTES_MIN, CAUSES_RECEIVE, CTRL_AUTO_SPEED, CTRL_LINK_RESET, CTRL_LINK_UP, CTRL_RESET, ICR,
    IMC, IMS, Interrupt, RING_BYTES, RX_RING, RXCSUM, RXCSUM_IP_AND_TRANSPORT, TCTL,
    TCTL_COLLISIONS, TCTL_ENABLE, TCTL_PAD_SHORT, TIPG, TIPG_COPPER, TX_RING, VET, VET_TAG,
};
use crate::tx::Transmitter;

const VENDOR: u16 = 0x8086;
/// 82540EM and 82545EM.
const DEVICES: [u16; 2] = [0x100e, 0x100f];
/// Base address 0 holds the registers.
const BAR: u8 = 0;
/// Reads of a register until a reset is given up; each takes a microsecond on the bus.
const RESET_READS_MAX: u32 = 100_000;
pub(crate) const MTU: u16 = 1500;

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

/// A running card, in parts.
pub struct Parts<R: Registers> {
    /// Its rings.
    pub port: E1000<R>,
    /// What leads frames to them.
    pub control: Control<R>,
}

/// A running card's rings, and its interrupt.
pub struct E1000<R: Registers = Mmio> {
    registers: R,
    mac: [u8; 6],
    rx: RxRing<R>,
    tx: Transmitter<R>,
    counters: PortCounters,
    watchdog: Watchdog,
}

impl E1000<Mmio> {
    /// Whether this driver is for `function`.
    pub fn is_for(function: &impl PciFunction) -> bool {
        let (vendor, device) = pci::id(function);
        vendor == VENDOR && DEVICES.contains(&device)
    }

    /// Brings the card up; `pool` supplies the buffers of received frames.
    pub fn open(
        function: &impl PciFunction,
        memory: &impl DmaSource,
        pool: &'static (dyn Pool + Sync),
    ) -> Result<Parts<Mmio>, Error> {
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
}

impl<R: Registers> E1000<R> {
    /// Brings a card up that is fresh from its reset.
    pub(crate) fn start(
        registers: R,
        memory: &impl DmaSource,
        pool: &'static (dyn Pool + Sync),
    ) -> Result<Parts<R>, Error> {
        let mac = read_mac(&registers)?;
        let mut rx = RxRing::new(ring(&registers, memory, RX_RING)?, pool);
        let mut tx = Transmitter::new(ring(&registers, memory, TX_RING)?, pool);
        rx.ring().tell().map_err(Error::Memory)?;
        tx.ring.ring().tell().map_err(Error::Memory)?;
        configure(&registers);
        if rx.refill() == 0 {
            return Err(Error::NoBuffers);
        }
        let whole = registers.window(0, registers.bytes());
        let control = Control::start(whole.ok_or(Error::RegistersOutside)?, mac);
        let port = Self {
            registers,
            mac,
            rx,
            tx,
            counters: PortCounters::default(),
            watchdog: Watchdog::default(),
        };
        Ok(Parts { port, control })
    }

    /// What the handler of the card's interrupt line needs.
    pub fn interrupt(&self) -> Option<Interrupt<R>> {
        let bytes = self.registers.bytes();
        self.registers.window(0, bytes).map(Interrupt)
    }

    /// Resets the card and gives it what it had, but for the frames to send and the filters.
    /// Nothing is received until the control half has opened the receiver.
    fn restart(&mut self) -> Result<(), Error> {
        reset(&self.registers)?;
        configure(&self.registers);
        let counters = &mut self.counters;
        self.tx.restart(counters).map_err(Error::Memory)?;
        let received = self.rx.restart::<Legacy>(counters);
        received.map_err(Error::Memory)?;
        // Whoever waits for an interrupt goes on to; others get one for nothing.
        self.registers.write32(IMS, CAUSES_RECEIVE);
        Ok(())
    }
}

/// A ring that the card is not told of yet.
fn ring<R: Registers>(
    registers: &R,
    memory: &impl DmaSource,
    offset: usize,
) -> Result<Ring<R>, Error> {
    let registers = registers.window(offset, RING_BYTES);
    let registers = registers.ok_or(Error::RegistersOutside)?;
    Ring::new(memory, registers, SLOTS).map_err(Error::Memory)
}

/// Everything but rings and filters, for a card fresh from its reset.
fn configure(registers: &impl Registers) {
    registers.write32(RXCSUM, RXCSUM_IP_AND_TRANSPORT);
    registers.write32(TIPG, TIPG_COPPER);
    registers.write32(TCTL, TCTL_ENABLE | TCTL_PAD_SHORT | TCTL_COLLISIONS);
    let control = registers.read32(CTRL) & !CTRL_LINK_RESET;
    let wanted = CTRL_AUTO_SPEED | CTRL_LINK_UP | CTRL_HANDLE_TAGS;
    registers.write32(CTRL, control | wanted);
    registers.write32(VET, VET_TAG);
}

/// Stops the card and all its transfers, and silences it (section 14.3).
fn reset(registers: &impl Registers) -> Result<(), Error> {
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

/// The card's own address: in its first filter after a reset, unless its memory holds none.
fn read_mac(registers: &impl Registers) -> Result<[u8; 6], Error> {
    let low = registers.read32(address(0));
    let high = registers.read32(address(0) + ADDRESS_HIGH);
    let [a, b, c, d] = low.to_le_bytes();
    let [e, f, ..] = high.to_le_bytes();
    match high & ADDRESS_VALID {
        0 => eeprom::mac(registers).ok_or(Error::NoAddress),
        _ => Ok([a, b, c, d, e, f]),
    }
}

impl<R: Registers> FramePort for E1000<R> {
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
            tags: true,
            ..Capabilities::default()
        }
    }

    fn transmit(&mut self, frame: TxFrame) -> Result<(), TxFrame> {
        self.tx.transmit(frame, &mut self.counters)
    }

    fn kick(&mut self) {
        self.tx.ring.kick();
    }

    fn receive(&mut self, budget: usize, take: &mut dyn FnMut(RxFrame)) -> usize {
        self.tx.ring.reclaim();
        let take = |frame, ()| take(frame);
        self.rx.receive::<Legacy>(budget, &mut self.counters, take)
    }

    fn unsent(&mut self) -> usize {
        self.tx.ring.unsent()
    }

    fn reclaim(&mut self) {
        self.tx.ring.reclaim();
    }

    fn has_received(&mut self) -> bool {
        self.rx.has_frame::<Legacy>()
    }

    fn arm(&mut self) -> bool {
        self.rx.refill();
        // Causes of frames that were taken by polling would interrupt at once. What comes
        // after this read does so rightly; what came before is seen below.
        self.registers.read32(ICR);
        self.registers.write32(IMS, CAUSES_RECEIVE);
        self.rx.has_frame::<Legacy>()
    }

    fn disarm(&mut self) {
        self.registers.write32(IMC, u32::MAX);
    }

    fn counters(&mut self) -> PortCounters {
        self.counters
    }

    fn watch(&mut self, now: Instant) -> Option<Stall> {
        let frames = self.tx.ring.unsent();
        let duration = self.watchdog.look(now, frames, &mut self.counters)?;
        let remedy = Remedy::CardReset.if_done(self.restart());
        Some(Stall {
            frames,
            duration,
            remedy,
        })
    }
}

impl<R: Registers> Drop for E1000<R> {
    /// The card must not touch buffers that are about to be freed: one that does not come
    /// out of its reset keeps them.
    fn drop(&mut self) {
        match reset(&self.registers) {
            Ok(()) => {
                self.rx.retire();
                self.tx.ring.retire();
            }
            Err(_) => {
                self.rx.abandon();
                self.tx.ring.abandon();
            }
        }
    }
}
