//! Functions made by hand, honest and not.

extern crate std;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::vec::Vec;

use super::*;
use crate::Mmio;

/// Where the capability stands.
const AT: u16 = 0x160;
const PLACE: PciAddress = PciAddress {
    bus: 0,
    device: 2,
    function: 0,
};

/// Words that only remember, but for the fixed bits of base addresses.
#[derive(Default)]
struct Card {
    words: RefCell<BTreeMap<u16, u32>>,
}

impl PciFunction for Card {
    fn config_read(&self, offset: u16) -> u32 {
        self.words.borrow().get(&offset).copied().unwrap_or(0)
    }

    fn config_write(&self, offset: u16, value: u32) {
        let value = match offset.checked_sub(AT + BARS) {
            // A 64-bit prefetchable range of 16 KiB, another one, and nothing.
            Some(0 | 12) => value & !0x3fff | 0xc,
            Some(4 | 16) => value,
            Some(8) => 0,
            _ => value,
        };
        self.words.borrow_mut().insert(offset, value);
    }

    fn bar(&self, _: u8) -> Option<Mmio> {
        None
    }
}

impl Card {
    /// As QEMU's igb: functions 0x80 behind, two apart.
    fn new() -> Self {
        let card = Self::default();
        card.config_write(0x100, 0x1401_0001);
        card.config_write(0x140, 0x1601_000e);
        card.config_write(AT, 0x0001_0010);
        card.config_write(AT + TOTAL, 8 << 16 | 8);
        card.config_write(AT + ROUTING, 2 << 16 | 0x80);
        card.config_write(AT + DEVICE, 0x10ca << 16);
        card.config_write(AT + PAGE_SIZES, 0x553);
        card.config_write(AT + BARS, 0);
        card.config_write(AT + BARS + 12, 0);
        card
    }

    fn sriov(&self) -> Sriov<'_, Self> {
        Sriov::find(self, PLACE).expect("it has the capability")
    }
}

#[test]
fn virtual_functions_sit_where_offset_and_stride_say() {
    let card = Card::new();
    let sriov = card.sriov();
    assert_eq!((sriov.total(), sriov.device()), (8, 0x10ca));
    assert_eq!(sriov.prepare(7), Ok(()));
    let place = |number| sriov.address_of(number).map(PciAddress::requester_id);
    assert_eq!(
        [place(0), place(1), place(6)],
        [Some(0x90), Some(0x92), Some(0x9c)]
    );
    assert_eq!(card.config_read(AT + COUNT), 7);
    assert_eq!(card.config_read(AT + PAGE_SIZE), 1);
    sriov.enable();
    assert_eq!(card.config_read(AT + CONTROL), 0b1001);
    assert_eq!(sriov.prepare(1), Err(SriovError::Running));
    sriov.disable();
    assert_eq!(sriov.prepare(1), Ok(()));
}

#[test]
fn base_addresses_are_measured_and_placed() {
    let card = Card::new();
    let sriov = card.sriov();
    let bars: Vec<_> = sriov.bars().collect();
    let indices: Vec<_> = bars.iter().map(|bar| (bar.index, bar.bytes)).collect();
    assert_eq!(indices, [(0, 0x4000), (3, 0x4000)]);
    assert!(bars.iter().all(|bar| bar.is_64_bit && bar.is_prefetchable));
    sriov.place(&bars[1], 0xfe00_8000);
    assert_eq!(card.config_read(AT + BARS + 12), 0xfe00_800c);
    assert_eq!(card.config_read(AT + BARS + 16), 0);
}

#[test]
fn functions_that_would_sit_elsewhere_are_refused() {
    let refused = |routing: u32, count| {
        let card = Card::new();
        card.config_write(AT + ROUTING, routing);
        card.sriov().prepare(count)
    };
    assert_eq!(
        refused(2 << 16, 1),
        Err(SriovError::Routing),
        "in the first's place"
    );
    assert_eq!(refused(0x80, 2), Err(SriovError::Routing), "both in one");
    assert_eq!(refused(0x80, 1), Ok(()));
    assert_eq!(
        refused(0x40 << 16 | 0x80, 3),
        Err(SriovError::Routing),
        "the next bus"
    );
    assert_eq!(
        refused(0xffff_ffff, 3),
        Err(SriovError::Routing),
        "no bus at all"
    );
    assert_eq!(refused(2 << 16 | 0x80, 9), Err(SriovError::Fewer(8)));
}

#[test]
fn a_list_that_loops_or_leads_nowhere_ends() {
    let card = Card::default();
    assert!(Sriov::find(&card, PLACE).is_none());
    card.config_write(0x100, 0x1001_0001);
    assert_eq!(extended_capabilities(&card).count(), EXTENDED_MAX);
    card.config_write(0x100, 0xffc1_0001);
    card.config_write(0xffc, 0x0001_0010);
    assert!(Sriov::find(&card, PLACE).is_none(), "its words lie outside");
    card.config_write(0x100, u32::MAX);
    assert_eq!(extended_capabilities(&card).count(), 0, "nobody there");
}
