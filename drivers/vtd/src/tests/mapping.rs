//! What a device reaches.

use hal::pci::PciAddress;

use super::model::{CACHING_MODE, LARGE_PAGES, LEVELS_4, Making, Model};
use super::{Rig, function};
use crate::{Error, MapError, Pages, Rights};

const CARD: PciAddress = PciAddress {
    bus: 0,
    device: 3,
    function: 0,
};
const LARGE: u64 = 2 << 20;

fn rig(capabilities: u64) -> Rig {
    Rig::new(Model::new(Making {
        capabilities,
        faults: 1,
    }))
}

#[test]
fn a_device_reaches_what_its_domain_maps_and_nothing_else() {
    let mut rig = rig(0);
    let domain = rig.attach(CARD);
    let other = rig.attach(function(2, 31, 7));
    rig.unit
        .map(domain, Pages::identical(0x7000, 0x3000))
        .expect("mapped");
    let elsewhere = Pages {
        device: 0x7000,
        physical: 0x1_2345_6000,
        bytes: 0x1000,
        rights: Rights::ReadWrite,
    };
    rig.unit.map(other, elsewhere).expect("mapped");
    let from = |function, at| rig.model.request(function, at, true);
    assert_eq!(from(CARD, 0x7123), Some(0x7123));
    assert_eq!(from(CARD, 0x9fff), Some(0x9fff));
    assert_eq!(from(CARD, 0x6fff), None);
    assert_eq!(from(CARD, 0xa000), None);
    assert_eq!(from(function(2, 31, 7), 0x7123), Some(0x1_2345_6123));
    assert_eq!(from(function(2, 31, 7), 0x8000), None);
    assert_eq!(from(function(2, 31, 6), 0x7123), None, "it has no domain");
    assert_eq!(from(function(3, 31, 7), 0x7123), None, "nor its bus");
}

#[test]
fn what_was_taken_away_is_forgotten_when_the_call_returns() {
    let mut rig = rig(0);
    let domain = rig.attach(CARD);
    let pages = Pages::identical(0x7000, 0x2000);
    rig.unit.map(domain, pages).expect("mapped");
    assert!(rig.model.request(CARD, 0x7000, false).is_some());
    rig.unit.unmap(domain, 0x7000, 0x1000).expect("unmapped");
    assert_eq!(rig.model.request(CARD, 0x7000, false), None);
    assert!(rig.model.request(CARD, 0x8000, false).is_some());
}

#[test]
fn a_unit_that_remembers_absence_is_told_of_what_is_new_and_no_other_is() {
    for bits in [0, CACHING_MODE] {
        let mut rig = rig(bits);
        assert_eq!(rig.model.request(CARD, 0x7000, false), None);
        let domain = rig.attach(CARD);
        assert_eq!(rig.model.request(CARD, 0x7000, false), None);
        let before = rig.model.forgotten();
        rig.unit
            .map(domain, Pages::identical(0x7000, 0x1000))
            .expect("mapped");
        assert!(rig.model.request(CARD, 0x7000, false).is_some());
        assert_eq!(rig.model.forgotten() != before, bits == CACHING_MODE);
    }
}

#[test]
fn large_pages_are_used_where_they_fit_and_go_as_a_whole() {
    let mut rig = rig(LARGE_PAGES | LEVELS_4);
    let domain = rig.attach(CARD);
    let tables = rig.model.memory().buffers();
    rig.unit
        .map(domain, Pages::identical(LARGE - 0x1000, 2 * LARGE))
        .expect("mapped");
    let made = rig.model.memory().buffers() - tables;
    assert_eq!(made, 4, "two tables down to 2 MiB, one for each end");
    for at in [LARGE - 0x1000, LARGE, 2 * LARGE - 1, 3 * LARGE - 0x1001] {
        assert_eq!(rig.model.request(CARD, at, true), Some(at));
    }
    assert_eq!(rig.model.request(CARD, 3 * LARGE - 0x1000, true), None);
    for (at, bytes) in [
        (LARGE, 0x1000),
        (LARGE + 0x1000, LARGE),
        (LARGE - 0x1000, LARGE),
    ] {
        let part = Error::Map(MapError::PartOfLargePage);
        assert_eq!(rig.unit.unmap(domain, at, bytes), Err(part));
    }
    assert!(
        rig.model.request(CARD, LARGE - 0x1000, true).is_some(),
        "all or none"
    );
    rig.unit.unmap(domain, LARGE, LARGE).expect("whole");
    assert_eq!(rig.model.request(CARD, LARGE, true), None);
    assert!(rig.model.request(CARD, 2 * LARGE, true).is_some());
}

#[test]
fn a_large_page_takes_no_place_where_something_is_mapped() {
    let mut rig = rig(LARGE_PAGES);
    let domain = rig.attach(CARD);
    rig.unit
        .map(domain, Pages::identical(LARGE, 0x1000))
        .expect("mapped");
    let over = rig.unit.map(domain, Pages::identical(LARGE, LARGE));
    let occupied = MapError::Occupied { device: LARGE };
    assert_eq!(over, Err(Error::Map(occupied)));
    rig.unit.unmap(domain, LARGE, 0x1000).expect("unmapped");
    rig.unit
        .map(domain, Pages::identical(LARGE, LARGE))
        .expect("the empty table is gone");
    assert!(rig.model.request(CARD, 2 * LARGE - 1, true).is_some());
    let part = Error::Map(MapError::PartOfLargePage);
    let unmapped = rig.unit.unmap(domain, LARGE + 0x5000, 0x1000);
    assert_eq!(unmapped, Err(part));
}

#[test]
fn tables_that_are_empty_are_freed_once_the_unit_forgot_them() {
    let mut rig = rig(LEVELS_4);
    let domain = rig.attach(CARD);
    let before = rig.model.memory().buffers();
    for step in 0..100 {
        let at = step * 0x81_4060_0000;
        let pages = Pages::identical(at, 0x1000);
        rig.unit.map(domain, pages).expect("mapped");
        assert_eq!(rig.model.memory().buffers(), before + 3);
        assert_eq!(rig.unit.tables(domain), Ok(3));
        rig.unit.unmap(domain, at, 0x1000).expect("unmapped");
        assert_eq!(rig.model.memory().buffers(), before);
        assert_eq!(rig.unit.tables(domain), Ok(0));
        assert_eq!(rig.model.request(CARD, at, false), None);
    }
}

#[test]
fn a_range_is_emptied_whatever_is_mapped_in_it() {
    let mut rig = rig(LEVELS_4 | LARGE_PAGES);
    let domain = rig.attach(CARD);
    let before = rig.model.memory().buffers();
    let places = [
        (0, 0x1000),
        (LARGE, LARGE),
        (1 << 40, 3 * LARGE),
        ((1 << 48) - 0x1000, 0x1000),
    ];
    for (at, bytes) in places {
        rig.unit
            .map(domain, Pages::identical(at, bytes))
            .expect("mapped");
        assert!(rig.model.request(CARD, at, true).is_some());
    }
    rig.unit.clear(domain, 1 << 30, 1 << 40).expect("cleared");
    let left = places.map(|(at, _)| rig.model.request(CARD, at, true).is_some());
    assert_eq!(
        left,
        [true, true, false, true],
        "of a range only what is in it"
    );
    rig.unit.clear(domain, 0, 1 << 48).expect("cleared");
    for (at, _) in places {
        assert_eq!(rig.model.request(CARD, at, true), None);
    }
    assert_eq!(rig.model.memory().buffers(), before);
    assert_eq!(rig.unit.limit(domain), Ok(1 << 48));
}

#[test]
fn a_device_may_do_what_its_mapping_says() {
    let mut rig = rig(LARGE_PAGES);
    let domain = rig.attach(CARD);
    for (rights, may_read, may_write) in [
        (Rights::Read, true, false),
        (Rights::Write, false, true),
        (Rights::ReadWrite, true, true),
    ] {
        for bytes in [0x1000, LARGE] {
            let pages = Pages {
                rights,
                ..Pages::identical(LARGE, bytes)
            };
            rig.unit.map(domain, pages).expect("mapped");
            let went = |is_write| rig.model.request(CARD, LARGE, is_write).is_some();
            assert_eq!((went(false), went(true)), (may_read, may_write));
            rig.unit.unmap(domain, LARGE, bytes).expect("unmapped");
        }
    }
}

#[test]
fn mapping_and_unmapping_do_all_or_nothing() {
    let mut rig = rig(0);
    let domain = rig.attach(CARD);
    rig.unit
        .map(domain, Pages::identical(0x9000, 0x1000))
        .expect("mapped");
    let occupied = MapError::Occupied { device: 0x9000 };
    let over = Pages::identical(0x7000, 0x4000);
    assert_eq!(rig.unit.map(domain, over), Err(Error::Map(occupied)));
    assert_eq!(rig.model.request(CARD, 0x7000, true), None);
    let gap = MapError::NotMapped { device: 0xa000 };
    assert_eq!(rig.unit.unmap(domain, 0x9000, 0x2000), Err(Error::Map(gap)));
    assert!(rig.model.request(CARD, 0x9000, true).is_some());
}

#[test]
fn only_whole_pages_within_the_table_can_be_mapped() {
    let mut rig = rig(0);
    let domain = rig.attach(CARD);
    let range = Err(Error::Map(MapError::Range));
    let end = 1 << 39;
    for (at, bytes) in [
        (0x7000, 0),
        (0x7001, 0x1000),
        (0x7000, 0xfff),
        (end, 0x1000),
        (end - 0x1000, 0x2000),
        (u64::MAX - 0xfff, 0x1000),
        (0x1000, u64::MAX - 0xfff),
    ] {
        assert_eq!(rig.unit.map(domain, Pages::identical(at, bytes)), range);
        assert_eq!(rig.unit.unmap(domain, at, bytes), range);
    }
    let last = Pages::identical(end - 0x1000, 0x1000);
    assert_eq!(rig.unit.map(domain, last), Ok(()));
    assert_eq!(rig.model.request(CARD, end - 1, true), Some(end - 1));
    assert_eq!(rig.model.request(CARD, end, true), None);
}

#[test]
fn the_ring_of_invalidations_goes_round() {
    let mut rig = rig(0);
    let domain = rig.attach(CARD);
    for _ in 0..1000 {
        rig.unit
            .map(domain, Pages::identical(0x7000, 0x1000))
            .expect("mapped");
        assert!(rig.model.request(CARD, 0x7000, true).is_some());
        rig.unit.unmap(domain, 0x7000, 0x1000).expect("unmapped");
        assert_eq!(rig.model.request(CARD, 0x7000, true), None);
    }
}

#[test]
fn a_unit_with_few_domains_says_when_they_are_used_up() {
    let model = Model::common();
    model.with_few_domains();
    let mut rig = Rig::new(model);
    for device in 0..15 {
        rig.attach(function(0, device, 0));
    }
    let error = rig.unit.new_domain();
    assert_eq!(error, Err(Error::TooManyDomains), "0 is nobody's");
}
