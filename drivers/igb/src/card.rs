//! A card and its reset.

use alloc::sync::Arc;

use hal::pci::{self, PciFunction};
use hal::{DmaError, Registers};
use intel::filters::{ADDRESS_HIGH, ADDRESS_VALID, RCTL, Table, address};
use intel::link::{CTRL, STATUS};

use crate::registers::{
    BYTES, CTRL_MASTER_OFF, CTRL_RESET, EIMC, ICR, IMC, STATUS_MASTER, TCTL, UNICAST_TABLE,
};

const VENDOR: u16 = 0x8086;
/// 82576 with copper, fibre and backplane ports.
const DEVICES: [u16; 3] = [0x10c9, 0x10e6, 0x10e7];
/// Base address 0 holds the registers.
pub(crate) const BAR: u8 = 0;
/// Most pairs that the driver uses: IVAR has one register for each of these.
pub const PAIRS_MAX: u16 = 8;
/// Most virtual functions: each has a pool, and the physical function one behind them.
pub const VFS_MAX: u16 = 7;
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
    /// More virtual functions than [`VFS_MAX`].
    VirtualFunctions(u16),
    /// The physical function does not answer its virtual one.
    Unanswered,
    /// It answered that the virtual one may not run.
    Refused,
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
    /// Its pools switch frames among themselves.
    pub(crate) has_pools: bool,
    /// How the function is reset in the end.
    pub(crate) reset: fn(&R),
}

impl<R: Registers> Drop for Card<R> {
    /// All queues are stopped, or keep their memory.
    fn drop(&mut self) {
        (self.reset)(&self.registers);
    }
}

/// Whether this driver is for `function`.
pub fn is_for(function: &impl PciFunction) -> bool {
    let (vendor, device) = pci::id(function);
    vendor == VENDOR && DEVICES.contains(&device)
}

/// The card, fresh from its reset.
pub(crate) fn fresh<R: Registers>(registers: R, has_pools: bool) -> Result<Arc<Card<R>>, Error> {
    let registers = registers.window(0, BYTES);
    let registers = registers.ok_or(Error::RegistersOutside)?;
    reset(&registers)?;
    let mac = read_mac(&registers)?;
    Table::new(UNICAST_TABLE).write(&registers);
    Ok(Arc::new(Card {
        registers,
        mac,
        has_pools,
        reset: |registers| _ = reset(registers),
    }))
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
