//! What the card lets in: 24 addresses, and two tables of 4096 bits (7.1.2).
//!
//! What was written is kept here, so nothing is read back from the card.

use alloc::boxed::Box;
use alloc::vec;

use hal::{NicError, Registers};

use crate::registers::{ADDRESS_HIGH, ADDRESS_VALID, ADDRESSES, TABLE_WORDS, address};

/// The addresses, by filter.
pub(crate) struct Addresses([Option<[u8; 6]>; ADDRESSES]);

impl Addresses {
    /// The card's own one in the first filter, the rest empty.
    pub(crate) fn new(registers: &impl Registers, own: [u8; 6]) -> Self {
        let mut filters = Self([None; ADDRESSES]);
        filters.put(registers, 0, Some(own));
        for filter in 1..ADDRESSES {
            filters.put(registers, filter, None);
        }
        filters
    }

    /// Lets an address in. Twice is as good as once.
    pub(crate) fn add(&mut self, registers: &impl Registers, mac: [u8; 6]) -> Result<(), NicError> {
        if self.find(Some(mac)).is_some() {
            return Ok(());
        }
        let free = self.find(None).ok_or(NicError::FiltersFull)?;
        self.put(registers, free, Some(mac));
        Ok(())
    }

    /// No longer lets it in.
    pub(crate) fn remove(&mut self, registers: &impl Registers, mac: [u8; 6]) {
        if let Some(filter) = self.find(Some(mac)) {
            self.put(registers, filter, None);
        }
    }

    fn find(&self, wanted: Option<[u8; 6]>) -> Option<usize> {
        self.0.iter().position(|filter| *filter == wanted)
    }

    /// The filter is invalid while its halves do not belong together.
    fn put(&mut self, registers: &impl Registers, filter: usize, mac: Option<[u8; 6]>) {
        let at = address(filter);
        registers.write32(at + ADDRESS_HIGH, 0);
        let [a, b, c, d, e, f] = mac.unwrap_or_default();
        registers.write32(at, u32::from_le_bytes([a, b, c, d]));
        if mac.is_some() {
            let high = u32::from(u16::from_le_bytes([e, f]));
            registers.write32(at + ADDRESS_HIGH, high | ADDRESS_VALID);
        }
        self.0[filter] = mac;
    }
}

/// A table of bits in registers.
pub(crate) struct Table {
    at: usize,
    words: Box<[u32]>,
}

impl Table {
    /// The table whose registers begin at `at`, as if it were empty.
    pub(crate) fn new(at: usize) -> Self {
        Self {
            at,
            words: vec![0; TABLE_WORDS].into_boxed_slice(),
        }
    }

    /// Empties it, whatever the card has in it.
    pub(crate) fn clear(&mut self, registers: &impl Registers) {
        self.words.fill(0);
        for word in 0..TABLE_WORDS {
            registers.write32(self.at + 4 * word, 0);
        }
    }

    /// Sets these bits (each below 4096) and no others. Bits that stay are never off.
    pub(crate) fn set(&mut self, registers: &impl Registers, bits: impl Iterator<Item = u16>) {
        let mut wanted = vec![0; TABLE_WORDS];
        for bit in bits {
            wanted[usize::from(bit / 32) % TABLE_WORDS] |= 1 << (bit % 32);
        }
        for (index, (old, new)) in self.words.iter_mut().zip(wanted).enumerate() {
            if *old != new {
                registers.write32(self.at + 4 * index, new);
                *old = new;
            }
        }
    }
}

/// The bit of a multicast address: the upper twelve bits of its last two bytes.
pub(crate) fn multicast_bit(mac: &[u8; 6]) -> u16 {
    u16::from_le_bytes([mac[4], mac[5]]) >> 4
}
