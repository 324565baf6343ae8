//! The control half: filters, the hash, moderation, the link, statistics.

use alloc::sync::Arc;
use alloc::vec;

use base::Duration;
use hal::{
    CardCounters, LinkState, MulticastFilter, NicControl, NicError, NicShape, PromiscuousScope,
    Registers, RingGroup, SpreadRule, VlanFilter,
};
use intel::filters::Filters;
use intel::{link, statistics};

use crate::card::{Card, MTU};
use crate::registers::{
    ADDRESSES, CAUSE_LINK, EICR, EIMC, EIMS, EITR_KEEP_COUNTER, EITR_SHIFT, EITR_UNIT_NANOS,
    EITR_UNITS_MAX, HASH_KEY, HASH_TABLE, ICR, IMS, MRQC, MRQC_IP4, MRQC_IP6, MRQC_SPREAD,
    MRQC_TCP4, MRQC_TCP6, MRQC_TCP6_EXTENDED, MRQC_UDP4, MRQC_UDP6, eitr,
};

/// All rings are one group, the default one.
const GROUP: u16 = 0;
const SPEED_MBPS: u64 = 1000;

/// What the pairs share. Owned by the control plane.
pub struct Control<R: Registers> {
    card: Arc<Card<R>>,
    pairs: u16,
    filters: Filters,
    counted: CardCounters,
}

impl<R: Registers> Control<R> {
    /// Opens the receiver: all pairs are ready.
    pub(crate) fn start(card: Arc<Card<R>>, pairs: u16, filters: Filters) -> Self {
        let registers = &card.registers;
        // What was counted before is nobody's.
        statistics::collect(registers, &mut CardCounters::default());
        registers.write32(IMS, CAUSE_LINK);
        filters.set_receiver(registers);
        Self {
            card,
            pairs,
            filters,
            counted: CardCounters::default(),
        }
    }

    /// The MSI-X entry that tells of changes of the link.
    pub fn vector(&self) -> u16 {
        self.pairs
    }

    fn registers(&self) -> &R {
        &self.card.registers
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
            GROUP => self.filters.add_address(&self.card.registers, mac),
            _ => Err(NicError::Unsupported),
        }
    }

    fn remove_address(&mut self, group: u16, mac: [u8; 6]) {
        if group == GROUP {
            self.filters.remove_address(&self.card.registers, mac);
        }
    }

    fn set_promiscuous(&mut self, scope: PromiscuousScope, on: bool) -> Result<(), NicError> {
        if !matches!(
            scope,
            PromiscuousScope::Group(GROUP) | PromiscuousScope::Card
        ) {
            return Err(NicError::Unsupported);
        }
        self.filters.set_promiscuous(&self.card.registers, on);
        Ok(())
    }

    fn set_multicast(&mut self, filter: MulticastFilter<'_>) -> Result<(), NicError> {
        self.filters.set_multicast(&self.card.registers, filter);
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

    fn link(&mut self) -> Option<LinkState> {
        // What changes between these steps interrupts, perhaps for nothing. The message goes
        // first: a cause that stayed behind without it would hide the next change.
        let registers = self.registers();
        let message = 1 << self.pairs;
        registers.write32(EICR, message);
        registers.read32(ICR);
        registers.write32(EIMS, message);
        Some(link::state(registers))
    }

    fn set_vlans(&mut self, filter: VlanFilter<'_>) -> Result<(), NicError> {
        self.filters.set_vlans(&self.card.registers, filter)
    }

    fn counters(&mut self) -> Option<CardCounters> {
        statistics::collect(&self.card.registers, &mut self.counted);
        Some(self.counted)
    }

    fn restore(&mut self) {
        self.filters.restore(&self.card.registers);
    }
}

impl<R: Registers> Drop for Control<R> {
    /// Nobody hears of the link any more.
    fn drop(&mut self) {
        self.registers().write32(EIMC, 1 << self.pairs);
    }
}
