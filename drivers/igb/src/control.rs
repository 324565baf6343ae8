//! The control half: filters, the hash, moderation, the link, statistics.

use alloc::sync::Arc;
use alloc::vec;

use base::Duration;
use hal::{
    CardControl, CardCounters, LinkState, NicControl, NicError, NicShape, PromiscuousScope,
    Registers, RingGroup, SpreadRule, TagHandling, VlanFilter,
};

use crate::card::{Card, MTU};
use crate::filters::{Addresses, Table, multicast_bit};
use crate::registers::{
    ADDRESSES, CAUSE_LINK, CTRL, CTRL_TAKE_TAGS, EICR, EIMC, EIMS, EITR_KEEP_COUNTER, EITR_SHIFT,
    EITR_UNIT_NANOS, EITR_UNITS_MAX, HASH_KEY, HASH_TABLE, ICR, IMS, MRQC, MRQC_IP4, MRQC_IP6,
    MRQC_SPREAD, MRQC_TCP4, MRQC_TCP6, MRQC_TCP6_EXTENDED, MRQC_UDP4, MRQC_UDP6, RCTL,
    RCTL_ALL_MULTICAST, RCTL_ALL_UNICAST, RCTL_BROADCAST, RCTL_ENABLE, RCTL_FILTER_VLANS,
    RCTL_STRIP_FCS, STATUS, STATUS_DUPLEX, STATUS_LINK_UP, STATUS_SPEED_SHIFT, eitr,
};
use crate::statistics;

/// All rings are one group, the default one.
const GROUP: u16 = 0;
const SPEED_MBPS: u64 = 1000;
const VLANS: u16 = 4096;

/// What the pairs share. Owned by the control plane.
pub struct Control<R: Registers> {
    card: Arc<Card<R>>,
    pairs: u16,
    addresses: Addresses,
    multicast: Table,
    vlans: Table,
    filters_vlans: bool,
    is_promiscuous: bool,
    /// Somebody named the groups that are wanted; until then all are.
    filters_groups: bool,
    counted: CardCounters,
}

impl<R: Registers> Control<R> {
    /// Opens the receiver: all pairs are ready.
    pub(crate) fn start(
        card: Arc<Card<R>>,
        pairs: u16,
        (addresses, multicast, vlans): (Addresses, Table, Table),
    ) -> Self {
        let mut control = Self {
            card,
            pairs,
            addresses,
            multicast,
            vlans,
            filters_vlans: false,
            is_promiscuous: false,
            filters_groups: false,
            counted: CardCounters::default(),
        };
        statistics::collect(&control.card.registers, &mut CardCounters::default());
        control.counted = CardCounters::default();
        control.card.registers.write32(IMS, CAUSE_LINK);
        control.set_receiver();
        control
    }

    fn registers(&self) -> &R {
        &self.card.registers
    }

    /// Whoever listens to everything hears all VLANs.
    fn set_receiver(&self) {
        let mut receiver = RCTL_ENABLE | RCTL_BROADCAST | RCTL_STRIP_FCS;
        if self.is_promiscuous {
            receiver |= RCTL_ALL_UNICAST | RCTL_ALL_MULTICAST;
        } else if self.filters_vlans {
            receiver |= RCTL_FILTER_VLANS;
        }
        if !self.filters_groups {
            receiver |= RCTL_ALL_MULTICAST;
        }
        self.registers().write32(RCTL, receiver);
    }

    fn write_words(&self, offset: usize, bytes: &[u8]) {
        for (index, word) in bytes.as_chunks().0.iter().enumerate() {
            let word = u32::from_le_bytes(*word);
            self.registers().write32(offset + 4 * index, word);
        }
    }
}

/// Which packets have a hash (`MRQC`).
fn hashed(rule: &SpreadRule<'_>) -> u32 {
    let part = |is_wanted: bool, v4: u32, v6: u32| match (is_wanted, rule.ipv6) {
        (false, _) => 0,
        (true, false) => v4,
        (true, true) => v4 | v6,
    };
    MRQC_SPREAD
        | part(true, MRQC_IP4, MRQC_IP6)
        | part(rule.tcp_ports, MRQC_TCP4, MRQC_TCP6 | MRQC_TCP6_EXTENDED)
        | part(rule.udp_ports, MRQC_UDP4, MRQC_UDP6)
}

impl<R: Registers> NicControl for Control<R> {
    fn shape(&self) -> NicShape {
        NicShape {
            mac: self.card.mac,
            mtu: MTU,
            speed_mbps: SPEED_MBPS,
            groups: vec![RingGroup {
                rings: 0..self.pairs,
                filters: ADDRESSES as u16,
            }],
            can_poll: true,
        }
    }

    fn add_address(&mut self, group: u16, mac: [u8; 6]) -> Result<(), NicError> {
        match group {
            GROUP => self.addresses.add(&self.card.registers, mac),
            _ => Err(NicError::Unsupported),
        }
    }

    fn remove_address(&mut self, group: u16, mac: [u8; 6]) {
        if group == GROUP {
            self.addresses.remove(&self.card.registers, mac);
        }
    }

    fn set_promiscuous(&mut self, scope: PromiscuousScope, on: bool) -> Result<(), NicError> {
        if !matches!(
            scope,
            PromiscuousScope::Group(GROUP) | PromiscuousScope::Card
        ) {
            return Err(NicError::Unsupported);
        }
        self.is_promiscuous = on;
        self.set_receiver();
        Ok(())
    }

    fn set_multicast(&mut self, macs: &[[u8; 6]]) -> Result<(), NicError> {
        let bits = macs.iter().map(multicast_bit);
        self.multicast.set(&self.card.registers, bits);
        self.filters_groups = true;
        self.set_receiver();
        Ok(())
    }

    /// Frames that are on their way while the rule changes may still go by the old one.
    fn spread(&mut self, group: u16, rule: &SpreadRule<'_>) -> Result<(), NicError> {
        let is_ring = |ring: &u16| *ring < self.pairs;
        if group != GROUP || !rule.table.iter().all(is_ring) {
            return Err(NicError::Unsupported);
        }
        self.write_words(HASH_KEY, rule.key);
        self.write_words(HASH_TABLE, &rule.table.map(|ring| ring as u8));
        self.registers().write32(MRQC, hashed(rule));
        Ok(())
    }

    /// In microseconds, rounded up, at most 8191 of them.
    fn set_moderation(&mut self, ring: u16, spacing: Duration) -> Result<(), NicError> {
        if ring >= self.pairs {
            return Err(NicError::Unsupported);
        }
        let units = spacing.as_nanos().div_ceil(EITR_UNIT_NANOS);
        let units = units.min(u64::from(EITR_UNITS_MAX)) as u32;
        let value = units << EITR_SHIFT | EITR_KEEP_COUNTER;
        self.registers().write32(eitr(ring), value);
        Ok(())
    }
}

impl<R: Registers> CardControl for Control<R> {
    fn vector(&self) -> u16 {
        self.pairs
    }

    fn link(&mut self) -> LinkState {
        // What changes between these steps interrupts, perhaps for nothing. The message goes
        // first: a cause that stayed behind without it would hide the next change.
        let registers = self.registers();
        let message = 1 << self.pairs;
        registers.write32(EICR, message);
        registers.read32(ICR);
        registers.write32(EIMS, message);
        let status = registers.read32(STATUS);
        if status & STATUS_LINK_UP == 0 {
            return LinkState::Down;
        }
        let mbps = match status >> STATUS_SPEED_SHIFT & 3 {
            0 => 10,
            1 => 100,
            _ => 1000,
        };
        let is_duplex = status & STATUS_DUPLEX != 0;
        LinkState::Up { mbps, is_duplex }
    }

    fn set_vlans(&mut self, filter: VlanFilter<'_>) -> Result<(), NicError> {
        let registers = &self.card.registers;
        self.filters_vlans = match filter {
            VlanFilter::All => false,
            VlanFilter::Only(ids) if ids.iter().any(|id| *id >= VLANS) => {
                return Err(NicError::Unsupported);
            }
            VlanFilter::Only(ids) => {
                let priority_only = core::iter::once(0);
                self.vlans
                    .set(registers, priority_only.chain(ids.iter().copied()));
                true
            }
        };
        self.set_receiver();
        Ok(())
    }

    fn set_tags(&mut self, handling: TagHandling) -> Result<(), NicError> {
        let control = self.registers().read32(CTRL) & !CTRL_TAKE_TAGS;
        let control = match handling {
            TagHandling::Keep => control,
            TagHandling::TakeOut => control | CTRL_TAKE_TAGS,
        };
        self.registers().write32(CTRL, control);
        Ok(())
    }

    fn counters(&mut self) -> CardCounters {
        statistics::collect(&self.card.registers, &mut self.counted);
        self.counted
    }
}

impl<R: Registers> Drop for Control<R> {
    /// Nobody hears of the link any more.
    fn drop(&mut self) {
        self.registers().write32(EIMC, 1 << self.pairs);
    }
}
