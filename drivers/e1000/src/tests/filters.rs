//! What the card lets in, as its registers say.

extern crate std;

use base::{Duration, Instant};
use hal::{FramePort, MulticastFilter, NicControl, NicError, PromiscuousScope, Remedy, VlanFilter};
use intel::filters::{
    ADDRESS_HIGH, ADDRESS_VALID, MULTICAST_TABLE, RCTL, RCTL_ALL_MULTICAST, RCTL_ALL_UNICAST,
    RCTL_ENABLE, RCTL_FILTER_VLANS, VLAN_TABLE, address,
};

use super::card::Card;
use super::transmit::frame;
use crate::registers::ITR;

const DEFAULT: PromiscuousScope = PromiscuousScope::Group(0);

fn mac(last: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, last]
}

/// Addresses whose filters count, without the card's own.
fn addresses(card: &Card) -> std::vec::Vec<u8> {
    let high = |filter| card.registers.read32(address(filter) + ADDRESS_HIGH);
    let valid = (1..16).filter(|filter| high(*filter) & ADDRESS_VALID != 0);
    valid.map(|filter| (high(filter) >> 8) as u8).collect()
}

fn receiver(card: &Card, bits: u32) -> bool {
    card.registers.read32(RCTL) & bits == bits
}

#[test]
fn fifteen_addresses_fit_beside_the_cards_own_and_leave_room_when_they_go() {
    let card = Card::new(600);
    let mut parts = card.parts().unwrap();
    let control = &mut parts.control;
    (1..16).for_each(|last| control.add_address(0, mac(last)).unwrap());
    assert_eq!(control.add_address(0, mac(16)), Err(NicError::FiltersFull));
    assert_eq!(addresses(&card).len(), 15);
    control.remove_address(0, mac(7));
    control.add_address(0, mac(16)).unwrap();
    assert!(addresses(&card).contains(&16) && !addresses(&card).contains(&7));
    assert_eq!(control.add_address(1, mac(1)), Err(NicError::Unsupported));
}

#[test]
fn a_promiscuous_card_hears_all_vlans_and_filters_again_afterwards() {
    let card = Card::new(600);
    let mut parts = card.parts().unwrap();
    let control = &mut parts.control;
    control.set_vlans(VlanFilter::Only(&[7])).unwrap();
    assert_eq!(card.registers.read32(VLAN_TABLE), 1 | 1 << 7);
    assert!(receiver(&card, RCTL_FILTER_VLANS));
    control.set_promiscuous(DEFAULT, true).unwrap();
    assert!(receiver(&card, RCTL_ALL_UNICAST | RCTL_ALL_MULTICAST));
    assert!(!receiver(&card, RCTL_FILTER_VLANS));
    control.set_promiscuous(DEFAULT, false).unwrap();
    assert!(!receiver(&card, RCTL_ALL_UNICAST));
    assert!(receiver(&card, RCTL_FILTER_VLANS));
    let too_large = control.set_vlans(VlanFilter::Only(&[4096]));
    assert_eq!(too_large, Err(NicError::Unsupported));
}

#[test]
fn groups_are_named_by_the_bits_of_their_addresses() {
    let card = Card::new(600);
    let mut parts = card.parts().unwrap();
    assert!(receiver(&card, RCTL_ALL_MULTICAST), "nobody named any");
    let group = [0x01, 0x00, 0x5e, 0x00, 0x00, 0xfb];
    parts
        .control
        .set_multicast(MulticastFilter::Only(&[group]))
        .unwrap();
    assert!(!receiver(&card, RCTL_ALL_MULTICAST));
    let bit = 0xfb00 >> 4;
    let word = card.registers.read32(MULTICAST_TABLE + bit / 32 * 4);
    assert_eq!(word, 1 << (bit % 32));
    parts.control.set_multicast(MulticastFilter::All).unwrap();
    assert!(receiver(&card, RCTL_ALL_MULTICAST), "all again");
}

#[test]
fn interrupts_are_kept_apart_in_units_of_256_nanoseconds() {
    let card = Card::new(600);
    let mut parts = card.parts().unwrap();
    let mut set = |spacing| {
        parts.control.set_moderation(0, spacing).unwrap();
        card.registers.read32(ITR)
    };
    assert_eq!(set(Duration::from_micros(125)), 489, "rounded up");
    assert_eq!(set(Duration::from_secs(1)), 65535);
    assert_eq!(set(Duration::ZERO), 0);
}

#[test]
fn a_card_that_was_reset_lets_nothing_in_until_its_filters_are_restored() {
    let card = Card::new(600);
    let mut parts = card.parts().unwrap();
    parts.control.add_address(0, mac(1)).unwrap();
    parts.port.transmit(frame(&card, 1, None)).unwrap();
    let looks = (0..10).map(|second| Instant::START + Duration::from_secs(second));
    let stall = looks.filter_map(|now| parts.port.watch(now)).next();
    assert_eq!(stall.map(|stall| stall.remedy), Some(Remedy::CardReset));
    assert!(!receiver(&card, RCTL_ENABLE) && addresses(&card).is_empty());
    parts.control.restore();
    assert!(receiver(&card, RCTL_ENABLE));
    assert_eq!(addresses(&card), [1]);
}
