//! Bringing the card up, in the order of section 4.5: silence, reset, filters empty, interrupts
//! mapped, queues enabled, receiver last.

use alloc::sync::Arc;
use alloc::vec::Vec;

use hal::pci::{self, PciFunction};
use hal::{DmaError, DmaSource, Mmio, NicParts, Registers};
use intel::filters::{ADDRESS_HIGH, ADDRESS_VALID, Filters, RCTL, Table, address};
use intel::link::{CTRL, CTRL_HANDLE_TAGS, STATUS};
use mbuf::Pool;

use crate::registers::{
    ADDRESSES, BYTES, CTRL_EXT, CTRL_EXT_DRIVER_LOADED, CTRL_FORCE_DUPLEX, CTRL_FORCE_SPEED,
    CTRL_LINK_RESET, CTRL_LINK_UP, CTRL_MASTER_OFF, CTRL_RESET, EIAC, EIAM, EIMC, GPIE,
    GPIE_AUTO_MASK, GPIE_MSIX, GPIE_NONSELECTIVE_CLEAR, GPIE_PENDING_BITS, ICR, IMC, IVAR_OTHER,
    IVAR_OTHER_SHIFT, IVAR_VALID, RXCSUM, RXCSUM_IP_AND_TRANSPORT, RXCSUM_REPORT_HASH,
    STATUS_MASTER, TCTL, TCTL_COLLISIONS, TCTL_ENABLE, TCTL_PAD_SHORT, UNICAST_TABLE, eitr, ivar,
};
use crate::{Control, Pair, phy};

const VENDOR: u16 = 0x8086;
/// 82576 with copper, fibre and backplane ports.
const DEVICES: [u16; 3] = [0x10c9, 0x10e6, 0x10e7];
/// Base address 0 holds the registers.
const BAR: u8 = 0;
/// Most pairs that the driver uses: IVAR has one register for each of these.
pub const PAIRS_MAX: u16 = 8;
/// Reads of a register until a reset is given up; each takes a microsecond on the bus.
const READS_MAX: u32 = 100_000;
/// The largest payload: the card stores no longer frames.
pub(crate) const MTU: u16 = 1500;

/// Why a card could not be brought up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// Another device.
    NotIgb,
    /// No pair of queues, or more than [`PAIRS_MAX`].
    Pairs(u16),
    /// The registers are not mapped, or too few.
    RegistersOutside,
    /// The card did not come out of its reset.
    ResetStuck,
    /// The card's memory holds no address.
    NoAddress,
    /// A queue could not be stopped or started.
    QueueStuck,
    /// No memory for the rings.
    Memory(DmaError),
    /// No buffers to receive into.
    NoBuffers,
}

/// The card, as long as anybody has a part of it.
pub(crate) struct Card<R: Registers> {
    pub(crate) registers: R,
    pub(crate) mac: [u8; 6],
}

impl<R: Registers> Drop for Card<R> {
    /// All queues are stopped, or keep their memory.
    fn drop(&mut self) {
        let _ = reset(&self.registers);
    }
}

/// Whether this driver is for `function`.
pub fn is_for(function: &impl PciFunction) -> bool {
    let (vendor, device) = pci::id(function);
    vendor == VENDOR && DEVICES.contains(&device)
}

/// Brings the card up with `pairs` pairs of queues; `pool` supplies the buffers of received
/// frames. Messages 0 to `pairs` must be routed by whoever owns the function's MSI-X
/// table (`pci::Msix`). All frames go to ring 0 until the control spreads them.
pub fn open(
    function: &impl PciFunction,
    memory: &impl DmaSource,
    pool: &'static (dyn Pool + Sync),
    pairs: u16,
) -> Result<NicParts<Pair<Mmio>, Control<Mmio>>, Error> {
    if !is_for(function) {
        return Err(Error::NotIgb);
    }
    pci::enable(function);
    let registers = function.bar(BAR).ok_or(Error::RegistersOutside)?;
    start(registers, memory, pool, pairs)
}

/// As [`open`], for registers that are found in another way.
pub fn start<R: Registers>(
    registers: R,
    memory: &impl DmaSource,
    pool: &'static (dyn Pool + Sync),
    pairs: u16,
) -> Result<NicParts<Pair<R>, Control<R>>, Error> {
    if !(1..=PAIRS_MAX).contains(&pairs) {
        return Err(Error::Pairs(pairs));
    }
    let registers = registers.window(0, BYTES);
    let registers = registers.ok_or(Error::RegistersOutside)?;
    reset(&registers)?;
    let mac = read_mac(&registers)?;
    let card = Arc::new(Card { registers, mac });
    let registers = &card.registers;
    Table::new(UNICAST_TABLE).write(registers);
    let filters = Filters::new(registers, mac, ADDRESSES);
    map_interrupts(registers, pairs);
    registers.write32(RXCSUM, RXCSUM_IP_AND_TRANSPORT | RXCSUM_REPORT_HASH);
    registers.write32(TCTL, TCTL_ENABLE | TCTL_PAD_SHORT | TCTL_COLLISIONS);
    raise_link(registers);
    let pairs: Vec<_> = (0..pairs)
        .map(|queue| Pair::start(card.clone(), queue, memory, pool))
        .collect::<Result<_, _>>()?;
    let control = Control::start(card, pairs.len() as u16, filters);
    Ok(NicParts { pairs, control })
}

/// Silences the card, lets its transfers end, and resets it.
fn reset(registers: &impl Registers) -> Result<(), Error> {
    silence(registers);
    registers.write32(RCTL, 0);
    registers.write32(TCTL, 0);
    let control = registers.read32(CTRL);
    registers.write32(CTRL, control | CTRL_MASTER_OFF);
    // A transfer that never ends is cut off by the reset.
    let is_quiet = || registers.read32(STATUS) & STATUS_MASTER == 0;
    let _ = (0..READS_MAX).any(|_| is_quiet());
    registers.write32(CTRL, control | CTRL_MASTER_OFF | CTRL_RESET);
    let is_done = || registers.read32(CTRL) & CTRL_RESET == 0;
    if !(0..READS_MAX).any(|_| is_done()) {
        return Err(Error::ResetStuck);
    }
    silence(registers);
    Ok(())
}

fn silence(registers: &impl Registers) {
    registers.write32(EIMC, u32::MAX);
    registers.write32(IMC, u32::MAX);
    registers.read32(ICR);
}

/// The card's own address, which it reads from its EEPROM after a reset.
fn read_mac(registers: &impl Registers) -> Result<[u8; 6], Error> {
    let high = || registers.read32(address(0) + ADDRESS_HIGH);
    if !(0..READS_MAX).any(|_| high() & ADDRESS_VALID != 0) {
        return Err(Error::NoAddress);
    }
    let [a, b, c, d] = registers.read32(address(0)).to_le_bytes();
    let [e, f, ..] = high().to_le_bytes();
    Ok([a, b, c, d, e, f])
}

/// Ring `n` raises message `n`, everything else the next one (7.3.2). Each message clears
/// its cause and masks itself. Moderation outlives a reset, so it is ended here.
fn map_interrupts(registers: &impl Registers, pairs: u16) {
    let mode = GPIE_MSIX | GPIE_NONSELECTIVE_CLEAR | GPIE_AUTO_MASK | GPIE_PENDING_BITS;
    registers.write32(GPIE, mode);
    for queue in 0..PAIRS_MAX {
        let message = match queue < pairs {
            true => u32::from(queue) | IVAR_VALID,
            false => 0,
        };
        registers.write32(ivar(queue), message);
    }
    let other = u32::from(pairs) | IVAR_VALID;
    registers.write32(IVAR_OTHER, other << IVAR_OTHER_SHIFT);
    for message in 0..=pairs {
        registers.write32(eitr(message), 0);
    }
    let messages = (1 << (pairs + 1)) - 1;
    registers.write32(EIAC, messages);
    registers.write32(EIAM, messages);
}

fn raise_link(registers: &impl Registers) {
    let forced = CTRL_LINK_RESET | CTRL_FORCE_SPEED | CTRL_FORCE_DUPLEX;
    let control = registers.read32(CTRL) & !forced;
    registers.write32(CTRL, control | CTRL_LINK_UP | CTRL_HANDLE_TAGS);
    let extended = registers.read32(CTRL_EXT);
    registers.write32(CTRL_EXT, extended | CTRL_EXT_DRIVER_LOADED);
    phy::negotiate(registers);
}
