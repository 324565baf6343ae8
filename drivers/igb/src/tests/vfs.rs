//! Virtual functions that keep to the rules, and the physical one that serves them.

extern crate std;

use std::cell::RefCell;
use std::rc::Rc;
use std::vec::Vec;

use hal::{
    FramePort, MulticastFilter, NicControl, NicError, NicParts, PromiscuousScope, VlanFilter,
};

use super::frames::ethernet;
use super::model::{TAIL, Window};
use super::model_pools::VfWindow;
use super::rig::{MAC, Rig};
use super::sending::chain;
use crate::registers::*;
use crate::registers_pools::*;
use crate::{Control, Error, Pair, RequestCounters, vf};
use mbuf::TxFrame;

pub(super) const KIND: [u8; 2] = [0x88, 0xb5];

/// A card with virtual functions; the physical one answers at each look into a mailbox.
pub(super) struct Pools {
    pub(super) rig: Rig,
    pub(super) physical: Pair<Window>,
    pub(super) control: Rc<RefCell<Control<Window>>>,
    vfs: u16,
}

type Parts = (Pair<VfWindow>, vf::Control<VfWindow>);

impl Pools {
    pub(super) fn new(vfs: u16) -> Self {
        let rig = Rig::new(5000);
        let window = rig.window.clone();
        let parts = crate::start_with_vfs(window, &rig.memory, rig.pool, vfs);
        let NicParts { mut pairs, control } = parts.expect("it comes up");
        Self {
            rig,
            physical: pairs.remove(0),
            control: Rc::new(RefCell::new(control)),
            vfs,
        }
    }

    pub(super) fn window(&self, vf: usize) -> VfWindow {
        let control = self.control.clone();
        let answer = Rc::new(move || _ = control.borrow_mut().attend());
        VfWindow::new(&self.rig.window, vf, answer)
    }

    pub(super) fn try_open(&self, vf: usize) -> Result<Parts, Error> {
        let opened = vf::open(self.window(vf), &self.rig.memory, self.rig.pool);
        opened.map(|NicParts { mut pairs, control }| (pairs.remove(0), control))
    }

    pub(super) fn open(&self, vf: usize) -> Parts {
        self.try_open(vf).expect("it comes up")
    }

    pub(super) fn counted(&self) -> RequestCounters {
        let control = self.control.borrow();
        control.requests().expect("it has virtual functions")
    }

    /// The pools that a frame from the wire goes to.
    pub(super) fn pools_of(&self, frame: &[u8]) -> Vec<u16> {
        let pools = self.rig.with(|model| model.pools_of(frame));
        (0..=self.vfs)
            .filter(|pool| pools >> pool & 1 != 0)
            .collect()
    }

    fn transmit(&self, pair: &mut Pair<VfWindow>, bytes: &[u8], tag: Option<u16>) -> bool {
        let sent = TxFrame {
            chain: chain(&self.rig, bytes, 1500),
            tag,
            ..TxFrame::default()
        };
        assert!(pair.transmit(sent).is_ok());
        pair.kick();
        self.rig.with(|model| model.switch(0)).is_some()
    }
}

pub(super) fn to(mac: [u8; 6]) -> Vec<u8> {
    ethernet(mac, KIND, &[1; 60])
}

fn from(mac: [u8; 6]) -> Vec<u8> {
    let mut bytes = to([2, 0, 0, 0, 0, 1]);
    bytes[6..12].copy_from_slice(&mac);
    bytes
}

#[test]
fn each_function_has_a_pool_and_an_address() {
    let pools = Pools::new(7);
    let parts: Vec<_> = (0..7).map(|vf| pools.open(vf)).collect();
    assert_eq!(pools.pools_of(&to(MAC)), [7]);
    for (vf, (pair, _)) in (0..).zip(&parts) {
        assert_eq!(pools.pools_of(&to(pair.mac())), [vf]);
        assert_eq!(pair.mac()[0] & 3, 2, "locally administered, one station");
    }
    assert_eq!(pools.pools_of(&to([0xff; 6])), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(pools.pools_of(&to([2, 0, 0, 0, 0, 9])), [0; 0], "nobody's");
    assert_eq!((pools.counted().granted, pools.counted().refused()), (7, 0));
    pools.rig.assert_no_complaints();
}

#[test]
fn frames_arrive_in_a_virtual_pair_which_gets_a_message_for_them() {
    let pools = Pools::new(2);
    let (mut pair, _control) = pools.open(1);
    assert!(!pair.arm());
    let words = [0, 0x23 | 74 << 32];
    pools
        .rig
        .with(|model| model.store(1, &to(pair.mac()), words));
    assert_eq!(pools.rig.with(|model| model.messages[19]), 1);
    let mut got = Vec::new();
    pair.receive(64, &mut |frame| got.push(frame.chain.len()));
    assert_eq!(got, [74]);
}

#[test]
fn a_function_hears_of_hundreds_of_buffers_at_once_and_always_has_many() {
    let pools = Pools::new(2);
    let (mut pair, _control) = pools.open(1);
    let tail = rx_ring(1) + TAIL;
    pools.rig.with(|model| {
        model.writes.clear();
        assert_eq!(model.buffers(1), 511);
    });
    for _ in 0..2000 {
        let bytes = to(pair.mac());
        pools.rig.with(|model| {
            assert!(model.store(1, &bytes, [0, 0x23 | 74 << 32]));
            assert!(model.buffers(1) >= 127);
        });
        assert_eq!(pair.receive(64, &mut |_| ()), 1);
    }
    let writes = pools.rig.with(|model| std::mem::take(&mut model.writes));
    let tails = writes.iter().filter(|(at, _)| *at == tail).count();
    assert_eq!(tails, 2000 / 384);
}

#[test]
fn a_function_sends_as_itself_only() {
    let pools = Pools::new(2);
    let (mut pair, mut control) = pools.open(0);
    let (other, _kept) = pools.open(1);
    let own = pair.mac();
    assert!(pools.transmit(&mut pair, &from(own), None));
    assert!(!pools.transmit(&mut pair, &from(other.mac()), None));
    assert!(!pools.transmit(&mut pair, &from(MAC), None));
    assert!(
        !pools.transmit(&mut pair, &from(own), Some(5)),
        "in no VLAN"
    );
    control.set_vlans(VlanFilter::Only(&[5])).unwrap();
    assert!(pools.transmit(&mut pair, &from(own), Some(5)));
    assert!(!pools.transmit(&mut pair, &from(own), Some(6)));
}

#[test]
fn groups_are_heard_by_who_asked() {
    let pools = Pools::new(2);
    let mut physical = pools.control.borrow_mut();
    physical.set_multicast(MulticastFilter::Only(&[])).unwrap();
    drop(physical);
    let (_pair, mut control) = pools.open(0);
    let (_other, _kept) = pools.open(1);
    let group = [0x33, 0x33, 0, 0, 0, 9];
    assert_eq!(pools.pools_of(&to(group)), [0; 0]);
    control
        .set_multicast(MulticastFilter::Only(&[group]))
        .unwrap();
    assert_eq!(
        pools.pools_of(&to(group)),
        [0, 2],
        "the card's filter is one"
    );
    control.set_multicast(MulticastFilter::Only(&[])).unwrap();
    assert_eq!(pools.pools_of(&to(group)), [0; 0]);
    let many: Vec<_> = (0..31)
        .map(|last| [0x33, 0x33, 0, 0, 0, last * 8])
        .collect();
    let many: Vec<_> = many
        .iter()
        .map(|[a, b, c, d, e, f]| [*a, *b, *c, *d, *e + f / 8, *f])
        .collect();
    let asked = control.set_multicast(MulticastFilter::Only(&many));
    assert_eq!(asked, Err(NicError::FiltersFull));
    let asked = control.set_multicast(MulticastFilter::All);
    assert_eq!(asked, Err(NicError::Unsupported));
}

#[test]
fn vlans_divide_pools() {
    let pools = Pools::new(2);
    let (pair, mut control) = pools.open(0);
    let tagged = |id: u8| {
        ethernet(
            pair.mac(),
            [0x81, 0],
            &[&[0, id][..], &KIND, &[1; 60]].concat(),
        )
    };
    assert_eq!(pools.pools_of(&tagged(5)), [0], "while nobody filters");
    control.set_vlans(VlanFilter::Only(&[5, 7])).unwrap();
    assert_eq!(pools.pools_of(&tagged(5)), [0]);
    assert_eq!(pools.pools_of(&tagged(6)), [0; 0]);
    assert_eq!(pools.pools_of(&tagged(0)), [0], "a priority only");
    control.set_vlans(VlanFilter::Only(&[7])).unwrap();
    assert_eq!(pools.pools_of(&tagged(5)), [0; 0]);
    let mut physical = pools.control.borrow_mut();
    physical.set_vlans(VlanFilter::Only(&[5])).unwrap();
    drop(physical);
    assert_eq!(
        pools.pools_of(&tagged(5)),
        [0; 0],
        "the physical one's, not its"
    );
    assert_eq!(pools.pools_of(&tagged(7)), [0]);
}

#[test]
fn who_listens_to_everything_gets_what_nobody_claims() {
    let pools = Pools::new(2);
    let strange = to([2, 0, 0, 0, 0, 9]);
    let set = |on| {
        let mut control = pools.control.borrow_mut();
        control.set_promiscuous(PromiscuousScope::Card, on).unwrap();
    };
    set(true);
    assert_eq!(pools.pools_of(&strange), [2]);
    set(false);
    assert_eq!(pools.pools_of(&strange), [0; 0]);
}

#[test]
fn further_addresses_of_the_physical_function_lead_to_its_pool() {
    let pools = Pools::new(2);
    let mut control = pools.control.borrow_mut();
    let free = control.shape().groups[0].filters;
    assert_eq!(free, 22, "two are the virtual functions'");
    let mac = |last| [2, 0, 0, 0, 1, last];
    for last in 1..22 {
        control.add_address(0, mac(last)).unwrap();
    }
    assert_eq!(control.add_address(0, mac(22)), Err(NicError::FiltersFull));
    assert_eq!(pools.pools_of(&to(mac(21))), [2]);
    control.remove_address(0, mac(21));
    assert_eq!(pools.pools_of(&to(mac(21))), [0; 0]);
    drop(control);
    let (pair, _control) = pools.open(1);
    assert_eq!(
        pools.pools_of(&to(pair.mac())),
        [1],
        "its filter is its own"
    );
}

#[test]
fn a_function_that_goes_leaves_nothing_behind_and_may_come_again() {
    let pools = Pools::new(1);
    let at_home = (pools.rig.memory.buffers(), pools.rig.pool.free());
    let (pair, mut control) = pools.open(0);
    let mac = pair.mac();
    control.set_vlans(VlanFilter::Only(&[5])).unwrap();
    drop((pair, control));
    pools.control.borrow_mut().attend();
    assert_eq!(pools.pools_of(&to(mac)), [0; 0]);
    assert_eq!(pools.pools_of(&to([0xff; 6])), [1]);
    assert_eq!((pools.rig.memory.buffers(), pools.rig.pool.free()), at_home);
    let (pair, _control) = pools.open(0);
    assert_eq!(pair.mac(), mac);
    assert_eq!(pools.pools_of(&to(mac)), [0]);
}

#[test]
fn own_broadcasts_that_come_back_are_dropped() {
    let mut pools = Pools::new(1);
    let words = [0, 0x23 | 74 << 32];
    let mut own = to([0xff; 6]);
    own[6..12].copy_from_slice(&MAC);
    let other = to([0xff; 6]);
    for frame in [&own, &other] {
        pools.rig.with(|model| model.store(1, frame, words));
    }
    let mut got = 0;
    pools.physical.receive(64, &mut |_| got += 1);
    let counters = pools.physical.counters();
    assert_eq!((got, counters.rx_own, counters.rx_frames), (1, 1, 1));
}

#[test]
fn what_is_asked_interrupts_at_most_once_a_millisecond() {
    let pools = Pools::new(2);
    pools.rig.with(|model| {
        assert_eq!(model.get(eitr(1)) >> EITR_SHIFT, 1000);
        assert_eq!(model.get(eitr(0)), 0, "frames are not held up");
        assert_eq!(model.messages[1], 0);
        model.reset_vf(1);
        assert_eq!(model.messages[1], 1, "the control hears of it");
    });
    pools.control.borrow_mut().attend();
    pools.rig.with(|model| model.reset_vf(1));
    assert_eq!(pools.rig.with(|model| model.messages[1]), 2, "and again");
}

#[test]
fn a_card_without_virtual_functions_has_no_pools() {
    let rig = Rig::new(3000);
    let parts = rig.start(8).unwrap();
    let pools = [MRQC, DTXSWC, VT_CTL, QDE, RPLOLR, VFRE, VFTE, MBVFIMR];
    rig.with(|model| {
        let mut writes = model.writes.iter();
        assert!(!writes.any(|(offset, _)| pools.contains(offset)));
    });
    assert_eq!(parts.1.requests(), None);
}

#[test]
fn how_many_there_are_is_checked() {
    let start = |vfs| {
        let rig = Rig::new(600);
        crate::start_with_vfs(rig.window.clone(), &rig.memory, rig.pool, vfs).err()
    };
    assert_eq!(start(0), Some(Error::VirtualFunctions(0)));
    assert_eq!(start(8), Some(Error::VirtualFunctions(8)));
    assert_eq!(start(7), None);
}
