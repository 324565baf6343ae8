//! Virtual functions of QEMU's card: made by their capability, driven by the driver's other half,
//! with the physical function's answering beside.

extern crate std;

use std::cell::RefCell;
use std::rc::Rc;
use std::vec;
use std::vec::Vec;

use hal::pci::{PciAddress, PciFunction};
use hal::sriov::Sriov;
use hal::{FramePort, Mmio, MulticastFilter, NicControl, NicParts, VlanFilter};

use super::super::frames::{TCP, ethernet, is_sound, packet};
use super::super::rig::MAC;
use super::bridge::{Side, VF_REGISTERS_AT};
use super::card::{Card, Window, route};
use super::frame;
use crate::registers_pools::VF_BYTES;
use crate::{Control, Pair, RequestCounters, vf};
use mbuf::{ChecksumOffload, SegmentKind, SegmentOffload, TxFrame};

/// Where the firmware would put extended configuration space, and who has it.
const SPACE_AT: u64 = 0xb000_0000;
const HOST_BRIDGE: PciAddress = PciAddress::of_requester(0);
const SPACE_REGISTER: u32 = 0x60;
const VF_TABLES_AT: u64 = 0xe030_0000;
const VFS: u16 = 2;
const KIND: [u8; 2] = [0x88, 0xb5];

/// The card's configuration space in memory.
struct Space<'c>(&'c Card);

impl PciFunction for Space<'_> {
    fn config_read(&self, offset: u16) -> u32 {
        let at = SPACE_AT + (0x10 << 12) + u64::from(offset);
        self.0.bridge.borrow_mut().qtest.read32(at)
    }

    fn config_write(&self, offset: u16, value: u32) {
        let at = SPACE_AT + (0x10 << 12) + u64::from(offset);
        self.0.bridge.borrow_mut().qtest.write32(at, value);
    }

    fn bar(&self, _: u8) -> Option<Mmio> {
        None
    }
}

/// What the firmware and the kernel do for virtual functions.
fn make(card: &Card) {
    let on = SPACE_AT as u32 | 1;
    let write = |function, offset, value| {
        let qtest = &mut card.bridge.borrow_mut().qtest;
        qtest.config_write(function, offset, value);
    };
    write(HOST_BRIDGE, SPACE_REGISTER, on);
    let space = Space(card);
    let sriov = Sriov::find(&space, PciAddress::of_requester(0x10)).expect("it has some");
    assert_eq!(sriov.device(), vf::ID.1);
    sriov.prepare(VFS).expect("two are few");
    let bars: Vec<_> = sriov.bars().collect();
    assert_eq!(bars.len(), 2);
    sriov.place(&bars[0], VF_REGISTERS_AT);
    sriov.place(&bars[1], VF_TABLES_AT);
    sriov.enable();
    for number in 0..VFS {
        let function = sriov.address_of(number).expect("on the bus");
        write(function, 0x04, 0x6);
        let table = VF_TABLES_AT + u64::from(number) * 0x4000;
        let message = 16 + number;
        route(
            &mut card.bridge.borrow_mut().qtest,
            function,
            table,
            message..message + 1,
        );
    }
}

/// A card with two virtual functions, all three driven.
struct Rig {
    card: Card,
    physical: Pair<Window>,
    /// Answers whenever a virtual function reads a register.
    control: Rc<RefCell<Control<Window>>>,
    virtuals: Vec<(Pair<Window>, vf::Control<Window>)>,
}

impl Rig {
    fn new(name: &str) -> Self {
        let card = Card::new(name);
        make(&card);
        let parts = crate::start_with_vfs(card.window(), &card.memory, card.pool, VFS);
        let NicParts { mut pairs, control } = parts.expect("the card comes up");
        card.wait_for_link();
        let control = Rc::new(RefCell::new(control));
        let mut rig = Self {
            card,
            physical: pairs.remove(0),
            control,
            virtuals: Vec::new(),
        };
        rig.virtuals = (0..usize::from(VFS)).map(|vf| rig.open(vf)).collect();
        rig
    }

    fn open(&self, vf: usize) -> (Pair<Window>, vf::Control<Window>) {
        let control = self.control.clone();
        let answer = Rc::new(move || _ = control.borrow_mut().attend());
        let window = Window::of(self.card.bridge.clone(), Side::Virtual(vf), VF_BYTES);
        let parts = vf::open(window.beside(answer), &self.card.memory, self.card.pool);
        let NicParts { mut pairs, control } = parts.expect("the physical function answers");
        (pairs.remove(0), control)
    }

    fn counted(&self) -> RequestCounters {
        let control = self.control.borrow();
        control.requests().expect("it has virtual functions")
    }

    fn mac(&self, vf: usize) -> [u8; 6] {
        self.virtuals[vf].0.mac()
    }

    /// The next frame, which comes alone.
    fn arrived(&mut self, vf: usize) -> Vec<u8> {
        let mut got = self.all_arrived(vf);
        assert_eq!(got.len(), 1);
        got.remove(0)
    }

    fn all_arrived(&mut self, vf: usize) -> Vec<Vec<u8>> {
        let got = self.card.receive_in_pool(vf, &mut self.virtuals[vf].0, 1);
        got.into_iter().map(|(bytes, _)| bytes).collect()
    }

    fn arrived_here(&mut self) -> Vec<u8> {
        let pool = usize::from(VFS);
        let got = self.card.receive_in_pool(pool, &mut self.physical, 1);
        got.into_iter().map(|(bytes, _)| bytes).next().unwrap()
    }

    fn send(&mut self, vf: usize, bytes: &[u8]) {
        let sent = frame(&self.card, bytes);
        let pair = &mut self.virtuals[vf].0;
        assert!(pair.transmit(sent).is_ok());
        pair.kick();
    }
}

/// A frame between stations.
fn between(to: [u8; 6], from: [u8; 6], content: u8) -> Vec<u8> {
    let mut bytes = ethernet(to, KIND, &[content; 60]);
    bytes[6..12].copy_from_slice(&from);
    bytes
}

/// A frame in a VLAN.
fn in_vlan(id: u8, to: [u8; 6]) -> Vec<u8> {
    let content = [&[0, id][..], &KIND, &[id; 60]].concat();
    ethernet(to, [0x81, 0], &content)
}

#[test]
fn virtual_functions_come_up_with_addresses_of_their_own() {
    let mut rig = Rig::new("vfs");
    assert_ne!(rig.mac(0), rig.mac(1));
    assert!((0..2).all(|vf| rig.mac(vf) != MAC && rig.mac(vf)[0] & 3 == 2));
    assert_eq!((rig.counted().granted, rig.counted().refused()), (2, 0));
    for vf in 0..2 {
        let sent = between(rig.mac(vf), MAC, vf as u8);
        rig.card.put_on_wire(&sent);
        assert_eq!(rig.arrived(vf), sent);
    }
    let sent = between(MAC, rig.mac(0), 7);
    rig.card.put_on_wire(&sent);
    assert_eq!(rig.arrived_here(), sent);
}

#[test]
fn frames_go_between_functions_and_to_the_wire() {
    let mut rig = Rig::new("vfs-between");
    let sent = between(rig.mac(1), rig.mac(0), 1);
    rig.send(0, &sent);
    assert_eq!(rig.arrived(1), sent, "from one to the other");
    let sent = between(MAC, rig.mac(1), 2);
    rig.send(1, &sent);
    assert_eq!(rig.arrived_here(), sent, "to the physical one");
    let sent = between(rig.mac(0), MAC, 3);
    let copy = frame(&rig.card, &sent);
    assert!(rig.physical.transmit(copy).is_ok());
    rig.physical.kick();
    assert_eq!(rig.arrived(0), sent, "and from there");
    let far = between([2, 0, 0, 0, 0, 9], rig.mac(0), 4);
    rig.send(0, &far);
    assert_eq!(rig.card.take_from_wire(), far);
}

#[test]
fn a_broadcast_reaches_all_others_and_not_its_sender() {
    let mut rig = Rig::new("vfs-broadcast");
    let sent = between([0xff; 6], rig.mac(0), 1);
    rig.send(0, &sent);
    assert_eq!(rig.card.take_from_wire(), sent);
    assert_eq!(rig.arrived(1), sent);
    assert_eq!(rig.arrived_here(), sent);
    let last = between(rig.mac(0), MAC, 2);
    rig.card.put_on_wire(&last);
    assert_eq!(rig.arrived(0), last);
    assert_eq!(
        rig.virtuals[0].0.counters().rx_own,
        1,
        "QEMU brings it back"
    );
}

#[test]
fn what_the_card_cuts_and_sums_is_sound_between_functions_and_on_the_wire() {
    let mut rig = Rig::new("vfs-segments");
    let payload: Vec<u8> = (0..8_000u32).map(|at| (at * 7) as u8).collect();
    let packet = packet(TCP, ("10.0.0.1", 1), ("10.0.0.2", 2), &payload);
    let header_len = 54;
    for to in [rig.mac(1), [2, 0, 0, 0, 0, 9]] {
        let mut bytes = packet.clone();
        bytes[..6].copy_from_slice(&to);
        let large = TxFrame {
            checksum: Some(ChecksumOffload {
                start: 34,
                offset: 16,
            }),
            segment: Some(SegmentOffload {
                mss: 1400,
                header_len,
                kind: SegmentKind::Tcp4,
            }),
            ..frame(&rig.card, &bytes)
        };
        let pair = &mut rig.virtuals[0].0;
        assert!(pair.transmit(large).is_ok());
        pair.kick();
        let mut got = Vec::new();
        while got.len() < payload.len() {
            let segments = match to == rig.mac(1) {
                true => rig.all_arrived(1),
                false => vec![rig.card.take_from_wire()],
            };
            for segment in segments {
                assert!(is_sound(&segment));
                got.extend_from_slice(&segment[usize::from(header_len)..]);
            }
        }
        assert_eq!(got, payload);
    }
}

#[test]
fn an_armed_virtual_pair_gets_its_message() {
    let mut rig = Rig::new("vfs-message");
    assert!(!rig.virtuals[1].0.arm());
    let sent = between(rig.mac(1), MAC, 1);
    rig.card.put_on_wire(&sent);
    rig.arrived(1);
    assert!(rig.card.has_message(17) && !rig.card.has_message(16));
    for _ in 0..3 {
        rig.card.put_on_wire(&sent);
        rig.arrived(1);
        assert!(!rig.card.has_message(17));
    }
    rig.virtuals[1].0.arm();
    assert!(!rig.card.has_message(17), "what was polled is no news");
    rig.card.put_on_wire(&sent);
    rig.arrived(1);
    assert!(rig.card.has_message(17));
}

#[test]
fn a_virtual_function_hears_the_groups_and_vlans_it_asked_for() {
    let mut rig = Rig::new("vfs-groups");
    let group = [0x33, 0x33, 0, 0, 0, 9];
    let control = &mut rig.virtuals[0].1;
    control
        .set_multicast(MulticastFilter::Only(&[group]))
        .unwrap();
    control.set_vlans(VlanFilter::Only(&[5])).unwrap();
    assert_eq!(rig.counted().granted, 4);
    let sent = between(group, MAC, 1);
    rig.card.put_on_wire(&sent);
    assert_eq!(rig.arrived(0), sent);
    for id in [6, 5] {
        let in_vlan = in_vlan(id, rig.mac(0));
        rig.card.put_on_wire(&in_vlan);
    }
    let got = rig.card.receive_in_pool(0, &mut rig.virtuals[0].0, 1);
    assert_eq!(got[0].1.tag, Some(5), "and not the one before");
    let end = between(rig.mac(1), MAC, 3);
    rig.card.put_on_wire(&end);
    assert_eq!(rig.arrived(1), end, "nobody else hears the group");
}

#[test]
fn a_function_that_goes_leaves_nothing_and_may_come_again() {
    let mut rig = Rig::new("vfs-again");
    let mac = rig.mac(0);
    drop(rig.virtuals.remove(0));
    rig.control.borrow_mut().attend();
    assert_eq!(rig.counted().resets, 3, "twice coming up, once going");
    let sent = between(mac, rig.mac(0), 1);
    rig.send(0, &sent);
    assert_eq!(
        rig.card.take_from_wire(),
        sent,
        "nobody here has the address"
    );
    let again = rig.open(0);
    rig.virtuals.insert(0, again);
    assert_eq!(rig.mac(0), mac);
    rig.card.put_on_wire(&sent);
    assert_eq!(rig.arrived(0), sent);
}
