//! What the card lets in.

extern crate std;

use hal::{FramePort, MulticastFilter, NicControl, NicError, PromiscuousScope, VlanFilter};

use super::frames::{ethernet, tagged};
use super::model_rx::Fate;
use super::rig::{MAC, Rig, receive_noted};

const FILTERED: Fate = Fate::Filtered;
const STORED: Fate = Fate::Stored(0);

fn arrive(rig: &Rig, to: [u8; 6]) -> Fate {
    rig.with(|model| model.receive(&ethernet(to, [8, 6], &[0; 46])))
}

fn mac(last: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, last]
}

#[test]
fn a_card_hears_its_own_address_groups_and_broadcasts_and_nothing_else() {
    let rig = Rig::new(600);
    let (_pairs, mut control) = rig.start(1).unwrap();
    assert_eq!(arrive(&rig, [0x33, 0x33, 0, 0, 0, 1]), STORED);
    control.set_multicast(MulticastFilter::Only(&[])).unwrap();
    assert_eq!(arrive(&rig, MAC), STORED);
    assert_eq!(arrive(&rig, [0xff; 6]), STORED);
    assert_eq!(arrive(&rig, mac(1)), FILTERED);
    assert_eq!(arrive(&rig, [0x33, 0x33, 0, 0, 0, 1]), FILTERED);
}

#[test]
fn addresses_fill_all_filters_and_leave_them() {
    let rig = Rig::new(600);
    let (_pairs, mut control) = rig.start(1).unwrap();
    for last in 1..24 {
        control.add_address(0, mac(last)).unwrap();
    }
    assert_eq!(control.add_address(0, mac(24)), Err(NicError::FiltersFull));
    control
        .add_address(0, mac(23))
        .expect("it is there already");
    assert!((1..24).all(|last| arrive(&rig, mac(last)) == STORED));
    assert_eq!(arrive(&rig, mac(24)), FILTERED);
    control.remove_address(0, mac(20));
    control.remove_address(0, mac(99));
    assert_eq!(arrive(&rig, mac(20)), FILTERED);
    control.add_address(0, mac(24)).unwrap();
    assert_eq!(arrive(&rig, mac(24)), STORED);
    assert_eq!(arrive(&rig, MAC), STORED);
    assert_eq!(control.add_address(1, mac(1)), Err(NicError::Unsupported));
}

#[test]
fn all_groups_are_heard_unless_some_are_listed() {
    let rig = Rig::new(600);
    let (_pairs, mut control) = rig.start(1).unwrap();
    let nodes = [0x33, 0x33, 0, 0, 0, 1];
    let solicited = [0x33, 0x33, 0xff, 0x12, 0x34, 0x56];
    assert_eq!(arrive(&rig, nodes), STORED);
    control
        .set_multicast(MulticastFilter::Only(&[nodes, solicited]))
        .unwrap();
    assert_eq!(arrive(&rig, nodes), STORED);
    assert_eq!(arrive(&rig, solicited), STORED);
    control
        .set_multicast(MulticastFilter::Only(&[solicited]))
        .unwrap();
    assert_eq!(arrive(&rig, nodes), FILTERED);
    assert_eq!(arrive(&rig, solicited), STORED);
    control.set_multicast(MulticastFilter::All).unwrap();
    assert_eq!(arrive(&rig, nodes), STORED);
}

#[test]
fn a_promiscuous_card_hears_everything_and_forgets_no_filter() {
    let rig = Rig::new(600);
    let (_pairs, mut control) = rig.start(1).unwrap();
    control.set_vlans(VlanFilter::Only(&[7])).unwrap();
    let scope = PromiscuousScope::Group(0);
    control.set_promiscuous(scope, true).unwrap();
    assert_eq!(arrive(&rig, mac(1)), STORED);
    assert_eq!(arrive(&rig, [0x33, 0x33, 0, 0, 0, 1]), STORED);
    assert_eq!(
        rig.with(|model| model.receive(&tagged(8, &[0; 46]))),
        STORED
    );
    control
        .set_promiscuous(PromiscuousScope::Card, false)
        .unwrap();
    assert_eq!(arrive(&rig, mac(1)), FILTERED);
    assert_eq!(
        rig.with(|model| model.receive(&tagged(8, &[0; 46]))),
        FILTERED
    );
    assert_eq!(
        rig.with(|model| model.receive(&tagged(7, &[0; 46]))),
        STORED
    );
    let other = control.set_promiscuous(PromiscuousScope::Group(1), true);
    assert_eq!(other, Err(NicError::Unsupported));
}

#[test]
fn only_the_listed_vlans_come_in_and_untagged_frames_always() {
    let rig = Rig::new(600);
    let (_pairs, mut control) = rig.start(1).unwrap();
    let vlan = |tag| rig.with(|model| model.receive(&tagged(tag, &[0; 46])));
    assert_eq!(vlan(9), STORED, "no filter yet");
    control.set_vlans(VlanFilter::Only(&[1, 32, 4094])).unwrap();
    for (tag, fate) in [(1, STORED), (32, STORED), (4094, STORED), (9, FILTERED)] {
        assert_eq!(vlan(tag), fate, "VLAN {tag}");
        assert_eq!(vlan(tag | 5 << 13), fate, "whatever its priority");
    }
    assert_eq!(vlan(3 << 13), STORED, "a priority is no VLAN");
    assert_eq!(arrive(&rig, MAC), STORED);
    let outside = control.set_vlans(VlanFilter::Only(&[4096]));
    assert_eq!(outside, Err(NicError::Unsupported));
    assert_eq!(vlan(1), STORED, "and nothing changed");
    control.set_vlans(VlanFilter::Only(&[2])).unwrap();
    assert_eq!((vlan(1), vlan(2)), (FILTERED, STORED));
    control.set_vlans(VlanFilter::All).unwrap();
    assert_eq!(vlan(9), STORED);
}

#[test]
fn a_tag_comes_beside_the_frame() {
    let rig = Rig::new(600);
    let (mut pairs, _control) = rig.start(1).unwrap();
    let frame = tagged(0x6007, &[3; 50]);
    rig.with(|model| model.receive(&frame));
    rig.with(|model| model.receive(&ethernet(MAC, [8, 0], &[3; 50])));
    let got = receive_noted(&mut pairs[0]);
    assert_eq!(got[0].0, [&frame[..12], &frame[16..]].concat());
    assert_eq!((got[0].1.tag, got[1].1.tag), (Some(0x6007), None));
    assert_eq!(pairs[0].mtu(), 1500);
}

#[test]
fn tables_that_kept_old_bits_through_a_reset_are_emptied() {
    let rig = Rig::new(600);
    rig.with(|model| {
        for word in 0..128 {
            model.put(intel::filters::MULTICAST_TABLE + 4 * word, u32::MAX);
            model.put(intel::filters::VLAN_TABLE + 4 * word, u32::MAX);
        }
    });
    let (_pairs, mut control) = rig.start(1).unwrap();
    control.set_vlans(VlanFilter::Only(&[])).unwrap();
    control.set_multicast(MulticastFilter::Only(&[])).unwrap();
    assert_eq!(arrive(&rig, [0x33, 0x33, 0, 0, 0, 1]), FILTERED);
    assert_eq!(
        rig.with(|model| model.receive(&tagged(5, &[0; 46]))),
        FILTERED
    );
}
