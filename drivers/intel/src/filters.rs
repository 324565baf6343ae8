//! What a card lets in: a few addresses, two tables of 4096 bits, and what it takes beside
//! them. Registers lie in the same places from the 82540 to the 82576 (13.4.22 and 13.5 of
//! the 8254x's manual, 7.1.2 and 8.10 of the 82576's datasheet).
//!
//! What was written is kept here: nothing is read back, and a card that was reset gets it
//! again ([`Filters::restore`]).
//!
//! A card with pools leads frames to the pools of the filter that lets them in, and knows
//! no other way to let all groups in than to let in each ([`Filters::for_pools`]).

use alloc::boxed::Box;
use alloc::vec;

use hal::{MulticastFilter, NicError, Registers, VlanFilter};

/// Receive control.
pub const RCTL: usize = 0x0100;
/// Frames come in.
pub const RCTL_ENABLE: u32 = 1 << 1;
/// Whatever the addresses say.
pub const RCTL_ALL_UNICAST: u32 = 1 << 3;
/// Whatever the table of groups says.
pub const RCTL_ALL_MULTICAST: u32 = 1 << 4;
/// Broadcasts.
pub const RCTL_BROADCAST: u32 = 1 << 15;
/// The table of VLANs counts.
pub const RCTL_FILTER_VLANS: u32 = 1 << 18;
/// Leaves the frame check sequence out.
pub const RCTL_STRIP_FCS: u32 = 1 << 26;

/// Hash bits of multicast addresses.
pub const MULTICAST_TABLE: usize = 0x5200;
/// Bits of VLANs.
pub const VLAN_TABLE: usize = 0x5600;
/// Words of a table.
pub const TABLE_WORDS: usize = 128;
const VLANS: u16 = 4096;

/// Unicast filter `n`: low and high half of an address. Cards from the 82576 on have more
/// than 16, in a second place.
pub const fn address(filter: usize) -> usize {
    match filter {
        0..16 => 0x5400 + 8 * filter,
        _ => 0x54e0 + 8 * (filter - 16),
    }
}
/// From the low half to the high one.
pub const ADDRESS_HIGH: usize = 4;
/// The filter counts.
pub const ADDRESS_VALID: u32 = 1 << 31;

/// All filters of a card.
pub struct Filters {
    addresses: Addresses,
    multicast: Table,
    vlans: Table,
    filters_vlans: bool,
    is_promiscuous: bool,
    /// The table of groups counts.
    filters_groups: bool,
    has_pools: bool,
}

impl Filters {
    /// Empties `count` filters but for the card's own address, and the tables, which keep
    /// what was in them through a reset. The receiver stays as it is.
    pub fn new(registers: &impl Registers, own: [u8; 6], count: usize) -> Self {
        let filters = Self::unwritten(own, count, 0);
        filters.write(registers);
        filters
    }

    /// As [`new`](Self::new), of a card with pools: `pools` are the bits of an address' filter that
    /// say to which its frames go.
    pub fn for_pools(registers: &impl Registers, own: [u8; 6], count: usize, pools: u32) -> Self {
        let mut filters = Self::unwritten(own, count, pools);
        filters.has_pools = true;
        filters.multicast.fill();
        filters.write(registers);
        filters
    }

    fn unwritten(own: [u8; 6], count: usize, pools: u32) -> Self {
        Self {
            addresses: Addresses::new(own, count, pools),
            multicast: Table::new(MULTICAST_TABLE),
            vlans: Table::new(VLAN_TABLE),
            filters_vlans: false,
            is_promiscuous: false,
            filters_groups: false,
            has_pools: false,
        }
    }

    fn write(&self, registers: &impl Registers) {
        self.addresses.write(registers);
        self.multicast.write(registers);
        self.vlans.write(registers);
    }

    /// Opens the receiver, or changes it. Whoever listens to everything hears all VLANs.
    pub fn set_receiver(&self, registers: &impl Registers) {
        let mut receiver = RCTL_ENABLE | RCTL_BROADCAST | RCTL_STRIP_FCS;
        if self.is_promiscuous {
            receiver |= RCTL_ALL_UNICAST | RCTL_ALL_MULTICAST;
        } else if self.filters_vlans {
            receiver |= RCTL_FILTER_VLANS;
        }
        if !self.filters_groups {
            receiver |= RCTL_ALL_MULTICAST;
        }
        registers.write32(RCTL, receiver);
    }

    /// The card was reset: it gets everything again.
    pub fn restore(&mut self, registers: &impl Registers) {
        self.write(registers);
        self.set_receiver(registers);
    }

    /// Lets an address in. Twice is as good as once.
    pub fn add_address(
        &mut self,
        registers: &impl Registers,
        mac: [u8; 6],
    ) -> Result<(), NicError> {
        self.addresses.add(registers, mac)
    }

    /// How many addresses can be let in.
    pub fn count(&self) -> usize {
        self.addresses.filters.len()
    }

    /// Whether the address is let in.
    pub fn has_address(&self, mac: [u8; 6]) -> bool {
        self.addresses.filters.contains(&Some(mac))
    }

    /// No longer lets it in.
    pub fn remove_address(&mut self, registers: &impl Registers, mac: [u8; 6]) {
        self.addresses.remove(registers, mac);
    }

    /// Lets everything in, or no longer.
    pub fn set_promiscuous(&mut self, registers: &impl Registers, on: bool) {
        self.is_promiscuous = on;
        self.set_receiver(registers);
    }

    /// Lets these groups in, and those that share their bits.
    pub fn set_multicast(&mut self, registers: &impl Registers, filter: MulticastFilter<'_>) {
        self.filters_groups = match filter {
            MulticastFilter::All => {
                if self.has_pools {
                    self.multicast.fill();
                    self.multicast.write(registers);
                }
                false
            }
            MulticastFilter::Only(macs) => {
                let bits = macs.iter().map(multicast_bit);
                self.multicast.set(registers, bits);
                true
            }
        };
        self.set_receiver(registers);
    }

    /// Lets these bits of groups in beside those of [`set_multicast`](Self::set_multicast): they
    /// are for others who share the card.
    pub fn set_others_groups(
        &mut self,
        registers: &impl Registers,
        bits: impl Iterator<Item = u16>,
    ) {
        self.multicast.set_others(registers, bits);
    }

    /// Lets these VLANs in.
    pub fn set_vlans(
        &mut self,
        registers: &impl Registers,
        filter: VlanFilter<'_>,
    ) -> Result<(), NicError> {
        self.filters_vlans = match filter {
            VlanFilter::All => false,
            VlanFilter::Only(ids) if ids.iter().any(|id| *id >= VLANS) => {
                return Err(NicError::Unsupported);
            }
            VlanFilter::Only(ids) => {
                let priority_only = core::iter::once(0);
                let wanted = priority_only.chain(ids.iter().copied());
                self.vlans.set(registers, wanted);
                true
            }
        };
        self.set_receiver(registers);
        Ok(())
    }
}

/// The addresses, by filter.
struct Addresses {
    filters: Box<[Option<[u8; 6]>]>,
    /// Bits of all that count.
    pools: u32,
}

impl Addresses {
    /// The card's own one in the first filter, the rest empty.
    fn new(own: [u8; 6], count: usize, pools: u32) -> Self {
        let mut filters = vec![None; count].into_boxed_slice();
        if let Some(first) = filters.first_mut() {
            *first = Some(own);
        }
        Self { filters, pools }
    }

    fn write(&self, registers: &impl Registers) {
        for (filter, mac) in self.filters.iter().enumerate() {
            put(registers, filter, *mac, self.pools);
        }
    }

    fn add(&mut self, registers: &impl Registers, mac: [u8; 6]) -> Result<(), NicError> {
        if self.filters.contains(&Some(mac)) {
            return Ok(());
        }
        match self.replace(registers, None, Some(mac)) {
            true => Ok(()),
            false => Err(NicError::FiltersFull),
        }
    }

    fn remove(&mut self, registers: &impl Registers, mac: [u8; 6]) {
        self.replace(registers, Some(mac), None);
    }

    /// Changes the first filter that is `old`; false if there is none.
    fn replace(
        &mut self,
        registers: &impl Registers,
        old: Option<[u8; 6]>,
        new: Option<[u8; 6]>,
    ) -> bool {
        let mut filters = self.filters.iter_mut().enumerate();
        let Some((filter, place)) = filters.find(|(_, mac)| **mac == old) else {
            return false;
        };
        *place = new;
        put(registers, filter, new, self.pools);
        true
    }
}

/// Writes a filter, which leads to `pools`. It is invalid while its halves do not belong together.
pub fn put(registers: &impl Registers, filter: usize, mac: Option<[u8; 6]>, pools: u32) {
    let at = address(filter);
    registers.write32(at + ADDRESS_HIGH, 0);
    let [a, b, c, d, e, f] = mac.unwrap_or_default();
    registers.write32(at, u32::from_le_bytes([a, b, c, d]));
    if mac.is_some() {
        let high = u32::from(u16::from_le_bytes([e, f]));
        registers.write32(at + ADDRESS_HIGH, high | pools | ADDRESS_VALID);
    }
}

/// A table of bits in registers.
pub struct Table {
    at: usize,
    words: Box<[u32]>,
    /// Bits that are set for others.
    others: Box<[u32]>,
}

impl Table {
    /// The table whose registers begin at `at`, as if it were empty.
    pub fn new(at: usize) -> Self {
        Self {
            at,
            words: vec![0; TABLE_WORDS].into_boxed_slice(),
            others: vec![0; TABLE_WORDS].into_boxed_slice(),
        }
    }

    /// Sets all bits, to be written.
    fn fill(&mut self) {
        self.words.fill(u32::MAX);
    }

    /// Writes all of it, whatever the card has in it.
    pub fn write(&self, registers: &impl Registers) {
        for (index, (word, others)) in self.words.iter().zip(&self.others).enumerate() {
            registers.write32(self.at + 4 * index, word | others);
        }
    }

    /// Sets these bits (each below 4096) and no others. Bits that stay are never off.
    fn set(&mut self, registers: &impl Registers, bits: impl Iterator<Item = u16>) {
        let words = words_of(bits);
        self.replace(registers, words, self.others.clone());
    }

    /// As [`set`](Self::set), for others.
    fn set_others(&mut self, registers: &impl Registers, bits: impl Iterator<Item = u16>) {
        let others = words_of(bits);
        self.replace(registers, self.words.clone(), others);
    }

    fn replace(&mut self, registers: &impl Registers, words: Box<[u32]>, others: Box<[u32]>) {
        let before = self.words.iter().zip(&self.others).map(|(a, b)| a | b);
        let after = words.iter().zip(&others).map(|(a, b)| a | b);
        for (index, (old, new)) in before.zip(after).enumerate() {
            if old != new {
                registers.write32(self.at + 4 * index, new);
            }
        }
        (self.words, self.others) = (words, others);
    }
}

fn words_of(bits: impl Iterator<Item = u16>) -> Box<[u32]> {
    let mut words = vec![0; TABLE_WORDS];
    for bit in bits {
        if let Some(word) = words.get_mut(usize::from(bit / 32)) {
            *word |= 1 << (bit % 32);
        }
    }
    words.into_boxed_slice()
}

/// The bit of a multicast address: the upper twelve bits of its last two bytes.
pub fn multicast_bit(mac: &[u8; 6]) -> u16 {
    u16::from_le_bytes([mac[4], mac[5]]) >> 4
}
