//! A virtual function, as the physical one knows it.

use hal::Registers;
use intel::filters::put;

use super::VMOLR_ALL;
use crate::message::{self, GROUPS_MAX, Message};
use crate::registers::ADDRESSES;
use crate::registers_pools::{VFRE, VFTE, VMOLR_GROUPS, vmolr};

/// Locally administered, and for one station.
const LOCAL: u8 = 1 << 1;
const SEVERAL: u8 = 1 << 0;
/// What tells the first bytes of addresses apart.
const FIRST_BYTE_STEP: u8 = 1 << 4;

pub(super) struct Guest {
    pub(super) mac: [u8; 6],
    /// The address it has after a reset.
    given: [u8; 6],
    /// It has begun.
    pub(super) may_send: bool,
    groups: [u16; GROUPS_MAX],
    group_count: usize,
}

impl Guest {
    /// Virtual function `vf` of the card with this address, from which it gets one that differs
    /// in the first byte.
    pub(super) fn new(own: [u8; 6], vf: u16) -> Self {
        let mut given = own;
        let differs = FIRST_BYTE_STEP.wrapping_mul(vf as u8 + 1);
        given[0] = (own[0] ^ differs) & !SEVERAL | LOCAL;
        Self {
            mac: given,
            given,
            may_send: false,
            groups: [0; GROUPS_MAX],
            group_count: 0,
        }
    }

    /// It has to begin anew.
    pub(super) fn forget(&mut self) {
        self.mac = self.given;
        self.may_send = false;
        self.group_count = 0;
    }

    /// The bits of groups that it hears.
    pub(super) fn groups(&self) -> impl Iterator<Item = u16> {
        self.groups.iter().copied().take(self.group_count)
    }

    /// Hears the groups of a message, as many as fit.
    pub(super) fn set_groups(&mut self, message: &Message) {
        self.group_count = 0;
        for (place, bit) in self.groups.iter_mut().zip(message::groups(message)) {
            *place = bit;
            self.group_count += 1;
        }
    }

    /// Tells the card of its pool.
    pub(super) fn write(&self, registers: &impl Registers, vf: u16) {
        let groups = if self.group_count != 0 {
            VMOLR_GROUPS
        } else {
            0
        };
        registers.write32(vmolr(vf), VMOLR_ALL | groups);
        let mac = self.may_send.then_some(self.mac);
        let filter = ADDRESSES - 1 - usize::from(vf);
        put(registers, filter, mac, super::address_bits(vf));
        for register in [VFRE, VFTE] {
            let pools = registers.read32(register) & !(1 << vf);
            registers.write32(register, pools | u32::from(self.may_send) << vf);
        }
    }
}
