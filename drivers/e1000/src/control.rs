//! The control half: filters, moderation, the link, statistics.
//!
//! It shares registers with the port ([`crate::E1000`]), which never touches filters once it
//! runs; a reset by the port's watchdog empties them, and [`NicControl::restore`] fills them
//! again.

use alloc::vec;

use base::Duration;
use hal::{
    CardCounters, LinkState, Mmio, MulticastFilter, NicControl, NicError, NicShape,
    PromiscuousScope, Registers, RingGroup, SpreadRule, VlanFilter,
};
use intel::filters::Filters;
use intel::{link, statistics};

use crate::registers::{ITR, ITR_UNIT_NANOS, ITR_UNITS_MAX};

/// Unicast filters, the card's own address among them (13.5.2).
pub(crate) const ADDRESSES: usize = 16;
/// The only ring is the only group.
const GROUP: u16 = 0;
const SPEED_MBPS: u64 = 1000;

/// What leads frames to the card's port. Owned by the control plane.
pub struct Control<R: Registers = Mmio> {
    registers: R,
    mac: [u8; 6],
    filters: Filters,
    /// As was set last.
    interval: u32,
    counted: CardCounters,
}

impl<R: Registers> Control<R> {
    /// Opens the receiver: the port is ready.
    pub(crate) fn start(registers: R, mac: [u8; 6]) -> Self {
        let filters = Filters::new(&registers, mac, ADDRESSES);
        // What was counted before is nobody's.
        statistics::collect(&registers, &mut CardCounters::default());
        filters.set_receiver(&registers);
        Self {
            registers,
            mac,
            filters,
            interval: 0,
            counted: CardCounters::default(),
        }
    }
}

impl<R: Registers> NicControl for Control<R> {
    fn shape(&self) -> NicShape {
        NicShape {
            mac: self.mac,
            mtu: crate::device::MTU,
            speed_mbps: SPEED_MBPS,
            groups: vec![RingGroup {
                rings: 0..1,
                filters: ADDRESSES as u16,
            }],
            can_poll: true,
        }
    }

    fn add_address(&mut self, group: u16, mac: [u8; 6]) -> Result<(), NicError> {
        match group {
            GROUP => self.filters.add_address(&self.registers, mac),
            _ => Err(NicError::Unsupported),
        }
    }

    fn remove_address(&mut self, group: u16, mac: [u8; 6]) {
        if group == GROUP {
            self.filters.remove_address(&self.registers, mac);
        }
    }

    fn set_promiscuous(&mut self, scope: PromiscuousScope, on: bool) -> Result<(), NicError> {
        match scope {
            PromiscuousScope::Group(GROUP) | PromiscuousScope::Card => {
                self.filters.set_promiscuous(&self.registers, on);
                Ok(())
            }
            PromiscuousScope::Group(_) => Err(NicError::Unsupported),
        }
    }

    fn set_multicast(&mut self, filter: MulticastFilter<'_>) -> Result<(), NicError> {
        self.filters.set_multicast(&self.registers, filter);
        Ok(())
    }

    /// There is one ring.
    fn spread(&mut self, _group: u16, _rule: &SpreadRule<'_>) -> Result<(), NicError> {
        Err(NicError::Unsupported)
    }

    /// In units of 256 ns, rounded up, at most 65535 of them (13.4.18).
    fn set_moderation(&mut self, ring: u16, spacing: Duration) -> Result<(), NicError> {
        if ring != 0 {
            return Err(NicError::Unsupported);
        }
        let units = spacing.as_nanos().div_ceil(ITR_UNIT_NANOS);
        self.interval = units.min(ITR_UNITS_MAX) as u32;
        self.registers.write32(ITR, self.interval);
        Ok(())
    }

    fn set_vlans(&mut self, filter: VlanFilter<'_>) -> Result<(), NicError> {
        self.filters.set_vlans(&self.registers, filter)
    }

    fn link(&mut self) -> Option<LinkState> {
        Some(link::state(&self.registers))
    }

    fn counters(&mut self) -> Option<CardCounters> {
        statistics::collect(&self.registers, &mut self.counted);
        Some(self.counted)
    }

    fn restore(&mut self) {
        self.registers.write32(ITR, self.interval);
        self.filters.restore(&self.registers);
    }
}
