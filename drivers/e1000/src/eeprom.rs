//! The card's own memory, where its address is (section 5.6.1).
//!
//! A card loads the address into its first filter when it is reset; one that does not, as
//! Bochs' does not, is asked for the words themselves.

use hal::Registers;

/// EEPROM read: a word's number in, the word out (13.4.4).
const EERD: usize = 0x0014;
const EERD_START: u32 = 1;
const EERD_DONE: u32 = 1 << 4;
const EERD_ADDRESS_SHIFT: u32 = 8;
const EERD_DATA_SHIFT: u32 = 16;
/// A word takes about 50 µs, and a read of a register at least 250 ns.
const READS_MAX: usize = 1000;

/// The Ethernet address: the first three words. `None` if the card does not answer.
pub(crate) fn mac(registers: &impl Registers) -> Option<[u8; 6]> {
    let [a, b] = word(registers, 0)?.to_le_bytes();
    let [c, d] = word(registers, 1)?.to_le_bytes();
    let [e, f] = word(registers, 2)?.to_le_bytes();
    Some([a, b, c, d, e, f])
}

fn word(registers: &impl Registers, number: u32) -> Option<u16> {
    registers.write32(EERD, EERD_START | number << EERD_ADDRESS_SHIFT);
    let said = (0..READS_MAX)
        .map(|_| registers.read32(EERD))
        .find(|said| said & EERD_DONE != 0)?;
    Some((said >> EERD_DATA_SHIFT) as u16)
}
