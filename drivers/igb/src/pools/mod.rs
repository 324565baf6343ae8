//! What the physical function does for its virtual ones: pools, addresses, VLANs, and an ear for
//! what they ask (7.10).
//!
//! # Problem
//! A virtual function is driven by a program that nobody trusts. It must get its own frames
//! and no others, send as itself only, and hear an answer when it asks; whatever it writes
//! into the mailbox, and however often, the card goes on serving the rest.
//!
//! # Idea
//! Virtual function `n` has pool `n`, and queue `n` with it; the physical function has the pool
//! behind the last. A filter says to which pool an address leads; the last filters are the
//! virtual functions', one each. The card itself checks what they send: source address and
//! VLAN. It switches between pools what is for one of them.
//!
//! ```text
//!        ┌── address, group, VLAN ──▶ pool 0: queue 0 ── virtual function 0
//!  wire ─┤                            pool 1: queue 1 ── virtual function 1
//!        └── nothing fits ──▶ nobody  pool 2: queue 2 ── this one
//! ```
//!
//! What a virtual function asks for is answered in one look at all mailboxes ([`Pools::attend`]):
//! one message each, so work is bounded; the spacing of the control's message bounds how often.
//! A function that was reset loses everything and must begin anew.
//!
//! # Invariants
//! - *An address has one owner*: none is given to a virtual function that another one or the
//!   physical one has.
//! - *Nothing before the reset's grant*: a function that has not begun has no filter, and its
//!   pool neither receives nor sends.
//!
//! # Not here
//! The second queue of each pool, rate limits, promiscuous virtual functions, messages that the
//! physical function sends unasked.

mod counters;
mod guest;
mod mailbox;
mod requests;
mod vlans;

use alloc::boxed::Box;

use hal::{NicError, Registers, VlanFilter};
use intel::filters::Filters;

use crate::registers::{EITR_SHIFT, MRQC, eitr};
use crate::registers_pools::{
    ADDRESS_POOLS_SHIFT, DTXSWC, DTXSWC_LOOPBACK, DTXSWC_VLAN_SHIFT, MBVFICR, MBVFICR_TAKEN_SHIFT,
    MBVFIMR, MRQC_POOLS, QDE, QDE_ALL, RPLOLR, VFLRE, VFRE, VFTE, VMOLR_BROADCAST, VMOLR_GROUPS,
    VMOLR_STRIP_FCS, VMOLR_TAKE_TAGS, VMOLR_UNTAGGED, VT_CTL, VT_CTL_DEFAULT_SHIFT,
    VT_CTL_NO_DEFAULT, VT_CTL_REPLICATE, vmolr,
};
pub use counters::RequestCounters;
use guest::Guest;
use vlans::Vlans;

/// The message of the control half, and its least spacing in microseconds: a flood of requests
/// costs no more than that.
const MESSAGE: u16 = 1;
const SPACING_MICROS: u32 = 1000;

/// What all pools take.
const VMOLR_ALL: u32 = VMOLR_UNTAGGED | VMOLR_BROADCAST | VMOLR_TAKE_TAGS | VMOLR_STRIP_FCS;

/// The pools of a card.
pub(crate) struct Pools {
    guests: Box<[Guest]>,
    vlans: Vlans,
    counted: RequestCounters,
}

/// The bits of a unicast filter that lead to the physical function's pool.
pub(crate) fn address_bits(pool: u16) -> u32 {
    1 << (ADDRESS_POOLS_SHIFT + u32::from(pool))
}

impl Pools {
    /// Makes pools of a card that was reset; virtual functions are silent yet.
    pub(crate) fn set_up(registers: &impl Registers, own: [u8; 6], vfs: u16) -> Self {
        let all = (1 << vfs) - 1;
        let pools = Self {
            guests: (0..vfs).map(|vf| Guest::new(own, vf)).collect(),
            vlans: Vlans::new(vfs),
            counted: RequestCounters::default(),
        };
        registers.write32(MRQC, MRQC_POOLS);
        pools.set_promiscuous(registers, false);
        registers.write32(DTXSWC, DTXSWC_LOOPBACK | all | all << DTXSWC_VLAN_SHIFT);
        registers.write32(RPLOLR, VMOLR_TAKE_TAGS | VMOLR_STRIP_FCS);
        registers.write32(QDE, QDE_ALL);
        registers.write32(vmolr(vfs), VMOLR_ALL | VMOLR_GROUPS);
        registers.write32(VFRE, 1 << vfs);
        registers.write32(VFTE, 1 << vfs);
        for (vf, guest) in (0..).zip(&pools.guests) {
            guest.write(registers, vf);
        }
        pools.vlans.write(registers);
        registers.write32(eitr(MESSAGE), SPACING_MICROS << EITR_SHIFT);
        registers.write32(VFLRE, all);
        registers.write32(MBVFICR, all | all << MBVFICR_TAKEN_SHIFT);
        registers.write32(MBVFIMR, all);
        pools
    }

    fn vfs(&self) -> u16 {
        self.guests.len() as u16
    }

    /// Whether frames that no filter claims are the physical function's.
    pub(crate) fn set_promiscuous(&self, registers: &impl Registers, on: bool) {
        let default = u32::from(self.vfs()) << VT_CTL_DEFAULT_SHIFT;
        let unclaimed = if on { 0 } else { VT_CTL_NO_DEFAULT };
        registers.write32(VT_CTL, VT_CTL_REPLICATE | default | unclaimed);
    }

    /// Whether an address is a virtual function's.
    pub(crate) fn has_address(&self, mac: [u8; 6]) -> bool {
        self.guests.iter().any(|guest| guest.mac == mac)
    }

    /// The physical function's VLANs.
    pub(crate) fn set_vlans(
        &mut self,
        registers: &impl Registers,
        filters: &mut Filters,
        wanted: VlanFilter<'_>,
    ) -> Result<(), NicError> {
        self.vlans.set_own(wanted)?;
        self.tell_vlans(registers, filters)
    }

    fn tell_vlans(
        &self,
        registers: &impl Registers,
        filters: &mut Filters,
    ) -> Result<(), NicError> {
        self.vlans.write(registers);
        let listed: alloc::vec::Vec<u16> = self.vlans.listed().collect();
        match self.vlans.is_needed() {
            true => filters.set_vlans(registers, VlanFilter::Only(&listed)),
            false => filters.set_vlans(registers, VlanFilter::All),
        }
    }

    fn tell_groups(&self, registers: &impl Registers, filters: &mut Filters) {
        let groups = self.guests.iter().flat_map(Guest::groups);
        filters.set_others_groups(registers, groups);
    }

    /// What was asked so far.
    pub(crate) fn counted(&self) -> RequestCounters {
        self.counted
    }

    /// Forgets virtual functions that were reset and answers one request of each. Requests are
    /// looked for first: a function is reset before it asks, so it is not forgotten afterwards.
    pub(crate) fn attend(&mut self, registers: &impl Registers, filters: &mut Filters) {
        let asked = registers.read32(MBVFICR);
        registers.write32(MBVFICR, asked);
        let reset = registers.read32(VFLRE);
        registers.write32(VFLRE, reset);
        for vf in 0..self.vfs() {
            if reset >> vf & 1 != 0 {
                self.counted.resets += 1;
                self.forget(registers, filters, vf);
            }
            if asked >> vf & 1 != 0 {
                self.answer(registers, filters, vf);
            }
        }
    }
}
