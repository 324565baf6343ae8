//! The control half: filters, the hash, moderation, the link, statistics; with virtual functions,
//! their pools and what they ask.

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
use crate::pools::{Pools, RequestCounters};
use crate::registers::{
    CAUSE_LINK, CAUSE_MAILBOX, CTRL_EXT, CTRL_EXT_RESET_DONE, EICR, EIMC, EIMS, EITR_KEEP_COUNTER,
    EITR_SHIFT, EITR_UNIT_NANOS, EITR_UNITS_MAX, HASH_KEY, HASH_TABLE, ICR, IMS, MRQC, MRQC_IP4,
    MRQC_IP6, MRQC_SPREAD, MRQC_TCP4, MRQC_TCP6, MRQC_TCP6_EXTENDED, MRQC_UDP4, MRQC_UDP6, eitr,
};

/// All rings are one group, the default one.
const GROUP: u16 = 0;
pub(crate) const SPEED_MBPS: u64 = 1000;

/// What the pairs share. Owned by the control plane.
pub struct Control<R: Registers> {
    card: Arc<Card<R>>,
    pairs: u16,
    filters: Filters,
    pools: Option<Pools>,
    counted: CardCounters,
}

impl<R: Registers> Control<R> {
    /// Opens the receiver: all pairs are ready.
    pub(crate) fn start(
        card: Arc<Card<R>>,
        pairs: u16,
        filters: Filters,
        pools: Option<Pools>,
    ) -> Self {
        let registers = &card.registers;
        // What was counted before is nobody's.
        statistics::collect(registers, &mut CardCounters::default());
        registers.write32(IMS, CAUSE_LINK);
        filters.set_receiver(registers);
        if pools.is_some() {
            registers.write32(IMS, CAUSE_MAILBOX);
            registers.write32(EIMS, 1 << pairs);
            let extended = registers.read32(CTRL_EXT);
            registers.write32(CTRL_EXT, extended | CTRL_EXT_RESET_DONE);
        }
        Self {
            card,
            pairs,
            filters,
            pools,
            counted: CardCounters::default(),
        }
    }

    /// The MSI-X entry that tells of changes of the link, and of virtual functions' requests.
    pub fn vector(&self) -> u16 {
        self.pairs
    }

    /// What virtual functions asked for, if there are any.
    pub fn requests(&self) -> Option<RequestCounters> {
        Some(self.pools.as_ref()?.counted())
    }

    /// Takes the news of the control's message and asks for the next one. What changes between
    /// these steps interrupts, perhaps for nothing. The message goes first: a cause that stayed
    /// behind without it would hide the next change.
    fn hear(&mut self) {
        let registers = &self.card.registers;
        let message = 1 << self.pairs;
        registers.write32(EICR, message);
        registers.read32(ICR);
        if let Some(pools) = &mut self.pools {
            pools.attend(registers, &mut self.filters);
        }
        registers.write32(EIMS, message);
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

/// Keeps a message's interrupts so far apart: in microseconds, rounded up, at most 8191 of them.
pub(crate) fn moderate(registers: &impl Registers, message: u16, spacing: Duration) {
    let units = spacing.as_nanos().div_ceil(EITR_UNIT_NANOS);
    let units = units.min(u64::from(EITR_UNITS_MAX)) as u32;
    registers.write32(eitr(message), units << EITR_SHIFT | EITR_KEEP_COUNTER);
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
                filters: self.filters.count() as u16,
            }],
            can_poll: true,
        }
    }

    fn add_address(&mut self, group: u16, mac: [u8; 6]) -> Result<(), NicError> {
        let pools = self.pools.as_ref();
        let is_free = !pools.is_some_and(|pools| pools.has_address(mac));
        match group {
            GROUP if is_free => self.filters.add_address(&self.card.registers, mac),
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
        if let Some(pools) = &self.pools {
            pools.set_promiscuous(&self.card.registers, on);
        }
        Ok(())
    }

    fn set_multicast(&mut self, filter: MulticastFilter<'_>) -> Result<(), NicError> {
        self.filters.set_multicast(&self.card.registers, filter);
        Ok(())
    }

    /// Frames that are on their way while the rule changes may still go by the old one. Pools have
    /// one ring each.
    fn spread(&mut self, group: u16, rule: &SpreadRule<'_>) -> Result<(), NicError> {
        let is_ring = |ring: &u16| *ring < self.pairs;
        if group != GROUP || self.pools.is_some() || !rule.table.iter().all(is_ring) {
            return Err(NicError::Unsupported);
        }
        self.write_words(HASH_KEY, rule.key);
        self.write_words(HASH_TABLE, &rule.table.map(|ring| ring as u8));
        self.registers().write32(MRQC, hashed(rule));
        Ok(())
    }

    fn set_moderation(&mut self, ring: u16, spacing: Duration) -> Result<(), NicError> {
        if ring >= self.pairs {
            return Err(NicError::Unsupported);
        }
        moderate(self.registers(), ring, spacing);
        Ok(())
    }

    fn link(&mut self) -> Option<LinkState> {
        self.hear();
        Some(link::state(self.registers()))
    }

    fn set_vlans(&mut self, filter: VlanFilter<'_>) -> Result<(), NicError> {
        let registers = &self.card.registers;
        match &mut self.pools {
            Some(pools) => pools.set_vlans(registers, &mut self.filters, filter),
            None => self.filters.set_vlans(registers, filter),
        }
    }

    fn attend(&mut self) -> u64 {
        self.hear();
        let requests = self.requests();
        requests.map_or(0, |requests| requests.refused())
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
