//! A virtual function, driven by whoever has its registers: base address 0, of 16 KiB.
//!
//! It has one pair of queues, which is a [`Pair`] like any other, and message 0 for it. What
//! it shares with others (its address, groups, VLANs) belongs to the physical function, which is
//! asked through a mailbox ([`Control`]). Nothing is read from its configuration space.
//!
//! # Coming up
//! Reset, which the physical function hears of; then the question whether to begin, whose answer
//! is the function's address; then the rings. Waiting for the answer is a loop over reads of a
//! register, which takes a second at most on the bus.
//!
//! # Not here
//! Messages that the physical function sends unasked, the second pair of queues, counters.

mod control;
mod mailbox;

use alloc::sync::Arc;

use hal::{DmaSource, NicParts, Registers};
use intel::link::CTRL;
use mbuf::Pool;

use crate::card::Card;
use crate::message::{self, RESET, WORDS, YES};
use crate::pair::Place;
use crate::registers::{CTRL_RESET, EIMC, IVAR_OTHER, IVAR_VALID, eitr, ivar};
use crate::registers_pools::{VF_BYTES, VF_RX_RING, VF_TX_RING};
use crate::{Error, Pair};
pub use control::Control;
use mailbox::Mailbox;

/// Vendor and device identification of the 82576's virtual functions.
pub const ID: (u16, u16) = (0x8086, 0x10ca);

/// The only pair's message.
const MESSAGE: u16 = 0;
const ALL_MESSAGES: u32 = 0b111;
/// Descriptors of the ring for received frames. A guest's function is often emulated, and a register an exit: so it is told of new
/// buffers once in some hundred frames.
const RX_SLOTS: u16 = 512;

/// Brings a virtual function up; `registers` are all of its base address 0, and it may reach
/// memory already. Whoever owns its MSI-X table routes message 0.
pub fn open<R: Registers>(
    registers: R,
    memory: &impl DmaSource,
    pool: &'static (dyn Pool + Sync),
) -> Result<NicParts<Pair<R>, Control<R>>, Error> {
    let registers = registers.window(0, VF_BYTES);
    let registers = registers.ok_or(Error::RegistersOutside)?;
    reset(&registers);
    let mut mailbox = Mailbox::default();
    let mac = begin(&registers, &mut mailbox)?;
    let card = Arc::new(Card {
        registers,
        mac,
        has_pools: true,
        reset,
    });
    map_interrupts(&card.registers);
    let place = Place {
        rx_ring: VF_RX_RING,
        rx_slots: RX_SLOTS,
        tx_ring: VF_TX_RING,
        message: MESSAGE,
    };
    let pair = Pair::start(card.clone(), place, memory, pool)?;
    let control = Control::new(card, mailbox);
    let pairs = alloc::vec![pair];
    Ok(NicParts { pairs, control })
}

/// The function's queues stop, and its pool is closed until it begins anew.
fn reset<R: Registers>(registers: &R) {
    registers.write32(EIMC, ALL_MESSAGES);
    registers.write32(CTRL, CTRL_RESET);
}

/// Asks whether to begin; the answer is the function's address.
fn begin(registers: &impl Registers, mailbox: &mut Mailbox) -> Result<[u8; 6], Error> {
    mailbox.await_physical(registers)?;
    let mut question = [0; WORDS];
    question[0] = RESET;
    let answer = mailbox.ask(registers, &question)?;
    let mac = message::mac(&answer);
    let is_station = mac[0] & 1 == 0 && mac != [0; 6];
    match answer[0] == RESET | YES && is_station {
        true => Ok(mac),
        false => Err(Error::Refused),
    }
}

/// The ring for received frames raises message 0, and nothing else raises any.
fn map_interrupts(registers: &impl Registers) {
    registers.write32(ivar(0), u32::from(MESSAGE) | IVAR_VALID);
    registers.write32(IVAR_OTHER, 0);
    registers.write32(eitr(MESSAGE), 0);
}
