use std::collections::BTreeMap;
use std::vec::Vec;

use base::{Memory, NoMemory};

use crate::{Iova, IovaRange, KERNEL_WINDOW, MAPPINGS_MAX, Mappings, Refusal, usable};

struct Heap;

impl Memory for Heap {
    fn reserve<E>(grow: impl FnOnce() -> Result<(), E>) -> Result<(), NoMemory> {
        grow().map_err(|_| NoMemory)
    }
}

fn iova(page: u64, pages: u64) -> Iova {
    Iova::new(page << 12, pages << 12).expect("pages")
}

fn map<T>(mappings: &mut Mappings<T>, iova: Iova, kept: T) -> Result<(), Refusal> {
    mappings.make_room::<Heap>(iova)?;
    mappings.insert(iova, kept);
    Ok(())
}

#[test]
fn addresses_are_whole_pages() {
    let refused = [
        (0, 0),
        (0x1000, 0),
        (1, 0x1000),
        (0x1000, 0xfff),
        (u64::MAX, 1),
        (u64::MAX - 0xfff, 0x2000),
        (0x2000, u64::MAX - 0xfff),
        (0, u64::MAX),
    ];
    for (start, bytes) in refused {
        assert_eq!(Iova::new(start, bytes), None, "{start:#x} {bytes:#x}");
    }
    let last = Iova::new(u64::MAX - 0xfff, 0x1000).expect("the last page");
    assert_eq!(last.bytes(), 0x1000);
}

#[test]
fn what_a_device_cannot_be_led_from_is_not_usable() {
    let limit = 1 << 39;
    assert!(iova(0, 1).is_usable(limit));
    assert!(!iova(0xfee00, 1).is_usable(limit));
    assert!(!iova(0xfedff, 2).is_usable(limit));
    assert!(!iova(0xfeeff, 2).is_usable(limit));
    assert!(!iova(0, 0x100000).is_usable(limit));
    assert!(!iova(0xfef00, 1).is_usable(limit) && !iova(0xfefff, 1).is_usable(limit));
    assert!(!KERNEL_WINDOW.is_usable(limit));
    assert!(iova(0xfedff, 1).is_usable(limit) && iova(0xff000, 1).is_usable(limit));
    assert!(iova((limit >> 12) - 1, 1).is_usable(limit));
    assert!(!iova((limit >> 12) - 1, 2).is_usable(limit));
    let range = |start, end| IovaRange { start, end };
    let ranges = [range(0, 0xfedf_ffff), range(0xff00_0000, limit - 1)];
    assert_eq!(usable(limit), ranges);
}

#[test]
fn a_range_is_mapped_once_and_goes_as_a_whole() {
    let mut mappings = Mappings::default();
    map(&mut mappings, iova(10, 10), 'a').expect("free");
    map(&mut mappings, iova(20, 5), 'b').expect("beside it");
    for (page, pages) in [(10, 10), (5, 6), (19, 1), (24, 100), (0, 100), (12, 2)] {
        let made = map(&mut mappings, iova(page, pages), 'c');
        assert_eq!(made, Err(Refusal::Overlaps), "{page} {pages}");
    }
    for (page, pages) in [(11, 9), (10, 9), (5, 10), (15, 10), (24, 1), (12, 2)] {
        assert!(mappings.take(iova(page, pages)).is_err(), "{page} {pages}");
    }
    let none = mappings.take(iova(0, 10)).expect("nothing is there");
    assert_eq!(none.count(), 0);
    let both = mappings.take(iova(0, 100)).expect("whole");
    assert_eq!(both.map(|(_, kept)| kept).collect::<Vec<_>>(), ['a', 'b']);
    assert!(mappings.is_empty());
    map(&mut mappings, iova(12, 2), 'd').expect("free again");
    assert_eq!(mappings.take(Iova::ALL).expect("all").count(), 1);
}

#[test]
fn there_are_as_many_mappings_as_linux_has() {
    let mut mappings = Mappings::default();
    for page in 0..MAPPINGS_MAX as u64 {
        map(&mut mappings, iova(2 * page, 1), ()).expect("room");
    }
    assert_eq!(mappings.available(), 0);
    assert_eq!(map(&mut mappings, iova(1, 1), ()), Err(Refusal::TooMany));
    assert_eq!(map(&mut mappings, iova(2, 1), ()), Err(Refusal::Overlaps));
    _ = mappings.take(iova(0, 1)).expect("whole");
    map(&mut mappings, iova(1, 1), ()).expect("room again");
}

#[test]
fn mappings_are_what_a_map_of_pages_says_after_any_changes() {
    for seed in 1..200_u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut below = |limit: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % limit
        };
        let mut mappings = Mappings::default();
        let mut pages = BTreeMap::new();
        for step in 0..200 {
            let range = iova(below(64), 1 + below(8));
            let of_range = range.start() >> 12..(range.start() + range.bytes()) >> 12;
            if below(2) == 0 {
                let is_free = pages.range(of_range.clone()).next().is_none();
                assert_eq!(map(&mut mappings, range, step).is_ok(), is_free);
                if is_free {
                    pages.extend(of_range.map(|page| (page, step)));
                }
            } else if let Ok(taken) = mappings.take(range) {
                for (known, kept) in taken {
                    let known = known.start() >> 12..(known.start() + known.bytes()) >> 12;
                    known.for_each(|page| assert_eq!(pages.remove(&page), Some(kept)));
                }
                assert!(pages.range(of_range).next().is_none());
            } else {
                let cut = |page: u64| page != 0 && pages.get(&page) == pages.get(&(page - 1));
                let is_cut = |page| cut(page) && pages.contains_key(&page);
                assert!(is_cut(of_range.start) || is_cut(of_range.end));
            }
            let known: u64 = mappings.iter().map(|(known, _)| known.bytes() >> 12).sum();
            assert_eq!(known, pages.len() as u64);
        }
    }
}
