//! Bringing a card up, in the order of section 4.5: silence, reset, filters empty, interrupts
//! mapped, queues enabled, receiver last. With virtual functions, pools come before the queues,
//! and virtual functions hear that they may speak when all is done.

use alloc::vec::Vec;

use hal::pci::{self, PciFunction};
use hal::{DmaSource, Mmio, NicParts, Registers};
use intel::SLOTS;
use intel::filters::Filters;
use intel::link::{CTRL, CTRL_HANDLE_TAGS};
use mbuf::Pool;

use crate::card::{BAR, fresh};
use crate::pair::Place;
use crate::pools::{self, Pools};
use crate::registers::{
    ADDRESSES, CTRL_EXT, CTRL_EXT_DRIVER_LOADED, CTRL_FORCE_DUPLEX, CTRL_FORCE_SPEED,
    CTRL_LINK_RESET, CTRL_LINK_UP, EIAC, EIAM, GPIE, GPIE_AUTO_MASK, GPIE_MSIX,
    GPIE_NONSELECTIVE_CLEAR, GPIE_PENDING_BITS, IVAR_OTHER, IVAR_OTHER_SHIFT, IVAR_VALID, RXCSUM,
    RXCSUM_IP_AND_TRANSPORT, RXCSUM_REPORT_HASH, TCTL, TCTL_COLLISIONS, TCTL_ENABLE,
    TCTL_PAD_SHORT, eitr, ivar, rx_ring, tx_ring,
};
use crate::{Control, Error, PAIRS_MAX, Pair, VFS_MAX, is_for, phy};

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
    let card = fresh(registers, false)?;
    let filters = Filters::new(&card.registers, card.mac, ADDRESSES);
    set_up(&card.registers, 0, pairs);
    let pairs = (0..pairs).map(|queue| place(queue, queue));
    let pairs = pairs.map(|place| Pair::start(card.clone(), place, memory, pool));
    let pairs: Vec<_> = pairs.collect::<Result<_, _>>()?;
    let control = Control::start(card, pairs.len() as u16, filters, None);
    Ok(NicParts { pairs, control })
}

/// As [`open`], with one pair, in the pool behind those of `vfs` virtual functions, which exist
/// already. Message 0 is the pair's, message 1 the control's, which must
/// [`attend`](hal::NicControl::attend) to it.
pub fn open_with_vfs(
    function: &impl PciFunction,
    memory: &impl DmaSource,
    pool: &'static (dyn Pool + Sync),
    vfs: u16,
) -> Result<NicParts<Pair<Mmio>, Control<Mmio>>, Error> {
    if !is_for(function) {
        return Err(Error::NotIgb);
    }
    pci::enable(function);
    let registers = function.bar(BAR).ok_or(Error::RegistersOutside)?;
    start_with_vfs(registers, memory, pool, vfs)
}

/// As [`open_with_vfs`], for registers that are found in another way.
pub fn start_with_vfs<R: Registers>(
    registers: R,
    memory: &impl DmaSource,
    pool: &'static (dyn Pool + Sync),
    vfs: u16,
) -> Result<NicParts<Pair<R>, Control<R>>, Error> {
    if !(1..=VFS_MAX).contains(&vfs) {
        return Err(Error::VirtualFunctions(vfs));
    }
    let card = fresh(registers, true)?;
    let registers = &card.registers;
    let count = ADDRESSES - usize::from(vfs);
    let filters = Filters::for_pools(registers, card.mac, count, pools::address_bits(vfs));
    set_up(registers, vfs, 1);
    let pools = Pools::set_up(registers, card.mac, vfs);
    let pair = Pair::start(card.clone(), place(vfs, 0), memory, pool)?;
    let control = Control::start(card, 1, filters, Some(pools));
    let pairs = alloc::vec![pair];
    Ok(NicParts { pairs, control })
}

fn place(queue: u16, message: u16) -> Place {
    Place {
        rx_ring: rx_ring(queue),
        rx_slots: SLOTS,
        tx_ring: tx_ring(queue),
        message,
    }
}

/// All but queues and the receiver, for `pairs` pairs from queue `first` on.
fn set_up(registers: &impl Registers, first: u16, pairs: u16) {
    map_interrupts(registers, first, pairs);
    registers.write32(RXCSUM, RXCSUM_IP_AND_TRANSPORT | RXCSUM_REPORT_HASH);
    registers.write32(TCTL, TCTL_ENABLE | TCTL_PAD_SHORT | TCTL_COLLISIONS);
    raise_link(registers);
}

/// The rings from `first` on raise messages 0 and so on, everything else the next one (7.3.2), which
/// clears its cause and masks itself. Moderation outlives a reset, so it is ended here.
fn map_interrupts(registers: &impl Registers, first: u16, pairs: u16) {
    let mode = GPIE_MSIX | GPIE_NONSELECTIVE_CLEAR | GPIE_AUTO_MASK | GPIE_PENDING_BITS;
    registers.write32(GPIE, mode);
    for queue in 0..PAIRS_MAX {
        let message = match queue.checked_sub(first) {
            Some(message) if message < pairs => u32::from(message) | IVAR_VALID,
            _ => 0,
        };
        registers.write32(ivar(queue), message);
    }
    let other = u32::from(pairs) | IVAR_VALID;
    registers.write32(IVAR_OTHER, other << IVAR_OTHER_SHIFT);
    for message in 0..=pairs {
        registers.write32(eitr(message), 0);
    }
    registers.write32(EIAC, 1 << pairs);
    registers.write32(EIAM, 1 << pairs);
}

fn raise_link(registers: &impl Registers) {
    let forced = CTRL_LINK_RESET | CTRL_FORCE_SPEED | CTRL_FORCE_DUPLEX;
    let control = registers.read32(CTRL) & !forced;
    registers.write32(CTRL, control | CTRL_LINK_UP | CTRL_HANDLE_TAGS);
    let extended = registers.read32(CTRL_EXT);
    registers.write32(CTRL_EXT, extended | CTRL_EXT_DRIVER_LOADED);
    phy::negotiate(registers);
}
