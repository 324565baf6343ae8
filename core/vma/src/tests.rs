//! The map against an array that remembers every page.

use base::VirtAddr;
use models::Random;
use std::vec;
use std::vec::Vec;

use crate::{AREAS_MAX, Access, Area, AreaMap, Backing, Traits, Window};

const PAGE: u64 = 4096;
const READ: Access = Access {
    read: true,
    write: false,
    exec: false,
};

fn at(page: u64) -> VirtAddr {
    VirtAddr(page * PAGE)
}

fn area(from: u64, to: u64, access: Access, file: Option<u8>) -> Area<u8> {
    let backing = file.map(|object| Backing {
        object,
        offset: from * PAGE,
    });
    let limit = Access {
        read: true,
        write: true,
        exec: true,
    };
    Area {
        start: at(from),
        end: at(to),
        access,
        limit,
        traits: Traits::default(),
        backing,
    }
}

fn bounds(map: &AreaMap<u8>) -> Vec<(u64, u64)> {
    map.iter()
        .map(|area| (area.start.0 / PAGE, area.end.0 / PAGE))
        .collect()
}

#[test]
fn neighbours_that_are_alike_become_one() {
    let mut map = AreaMap::new();
    map.insert(area(1, 2, READ, None)).unwrap();
    map.insert(area(3, 4, READ, None)).unwrap();
    assert_eq!(bounds(&map), [(1, 2), (3, 4)]);
    map.insert(area(2, 3, READ, None)).unwrap();
    assert_eq!(bounds(&map), [(1, 4)]);
}

/// As many areas as may be, but for `room`: a long one, and many short ones behind it.
fn crowded(long: u64, room: u64) -> AreaMap<u8> {
    let mut map = AreaMap::new();
    map.insert(area(0, long, READ, None)).unwrap();
    let short = 1..AREAS_MAX as u64 - room;
    let first = |number| long + 2 * number;
    short.for_each(|number| {
        let (from, to) = (first(number), first(number) + 1);
        map.insert(area(from, to, READ, None)).unwrap();
    });
    map
}

#[test]
fn a_removal_in_pieces_is_refused_at_once_or_never() {
    for room in 0..4 {
        let mut map = crowded(40, room);
        let mut pieces = (4..36).step_by(4).map(|from| at(from)..at(from + 4));
        let first = map.remove(pieces.next().unwrap());
        assert_eq!(first.is_ok(), room >= 2, "with room for {room}");
        if first.is_ok() {
            assert!(pieces.all(|piece| map.remove(piece).is_ok()));
            assert_eq!(map.len(), AREAS_MAX - room as usize + 1);
        }
    }
}

#[test]
fn what_is_removed_leaves_room_for_an_area() {
    for (room, part) in [(0, 0..40), (1, 0..20), (1, 20..40), (2, 10..30)] {
        let mut map = crowded(40, room);
        assert_eq!(
            map.remove(at(part.start)..at(part.end)).unwrap().bytes,
            4096 * (part.end - part.start)
        );
        map.insert(area(1 << 30, 2 << 30, READ, None)).unwrap();
    }
}

#[test]
fn a_hole_reaches_from_area_to_area() {
    let mut map = AreaMap::new();
    let hole = |map: &AreaMap<u8>, page| map.hole_at(at(page));
    assert_eq!(hole(&map, 3), VirtAddr(0)..VirtAddr(u64::MAX));
    map.insert(area(4, 6, READ, None)).unwrap();
    map.insert(area(8, 9, READ, None)).unwrap();
    assert_eq!(hole(&map, 3), at(0)..at(4));
    assert!(hole(&map, 4).is_empty() && hole(&map, 5).is_empty() && hole(&map, 8).is_empty());
    assert_eq!(hole(&map, 6), at(6)..at(8));
    assert_eq!(hole(&map, 7), at(6)..at(8));
    assert_eq!(hole(&map, 9), at(9)..VirtAddr(u64::MAX));
}

#[test]
fn parts_of_a_file_merge_only_where_their_offsets_meet() {
    let mut map = AreaMap::new();
    map.insert(area(1, 2, READ, Some(7))).unwrap();
    map.insert(area(2, 3, READ, Some(7))).unwrap();
    map.insert(Area {
        backing: Some(Backing {
            object: 7,
            offset: 0,
        }),
        ..area(3, 4, READ, None)
    })
    .unwrap();
    assert_eq!(bounds(&map), [(1, 3), (3, 4)]);
    assert_eq!(map.find(at(2)).unwrap().offset_of(at(2)), Some(2 * PAGE));
}

#[test]
fn a_change_in_the_middle_splits_and_its_reversal_merges() {
    let mut map = AreaMap::new();
    map.insert(area(0, 10, READ, Some(1))).unwrap();
    map.update(at(3)..at(5), |area| area.access = Access::READ_WRITE)
        .unwrap();
    assert_eq!(bounds(&map), [(0, 3), (3, 5), (5, 10)]);
    assert_eq!(map.find(at(6)).unwrap().offset_of(at(6)), Some(6 * PAGE));
    map.update(at(2)..at(7), |area| area.access = READ).unwrap();
    assert_eq!(bounds(&map), [(0, 10)]);
}

#[test]
fn removal_returns_the_objects_inside_the_range() {
    let mut map = AreaMap::new();
    map.insert(area(0, 4, READ, Some(1))).unwrap();
    map.insert(area(6, 9, READ, None)).unwrap();
    let removed = map.remove(at(2)..at(7)).unwrap();
    assert_eq!((removed.bytes, removed.objects), (3 * PAGE, vec![1]));
    assert_eq!(bounds(&map), [(0, 2), (7, 9)]);
    assert_eq!(map.bytes(), 4 * PAGE);
}

#[test]
fn a_hole_means_that_a_range_is_not_covered() {
    let mut map = AreaMap::new();
    map.insert(area(0, 4, READ, None)).unwrap();
    map.insert(area(4, 6, Access::NONE, None)).unwrap();
    map.insert(area(7, 9, READ, None)).unwrap();
    assert!(map.covers(at(1)..at(6)));
    assert!(!map.covers(at(1)..at(7)));
    assert!(!map.covers(at(9)..at(10)));
}

#[test]
fn free_places_are_taken_from_the_top_and_keep_clear_of_stacks() {
    let mut map = AreaMap::new();
    let window = Window {
        low: at(16),
        high: at(2000),
    };
    assert_eq!(map.highest_gap(PAGE, PAGE, window), Some(at(1999)));
    let mut stack = area(1900, 2000, Access::READ_WRITE, None);
    stack.traits.grows_down = true;
    map.insert(stack).unwrap();
    assert_eq!(
        map.highest_gap(PAGE, PAGE, window),
        Some(at(1900 - 256 - 1))
    );
    assert_eq!(map.highest_gap(PAGE, 512 * PAGE, window), Some(at(1536)));
    assert_eq!(map.highest_gap(1700 * PAGE, PAGE, window), None);
    assert!(map.is_free(at(20), PAGE, window) && !map.is_free(at(1), PAGE, window));
    assert!(!map.is_free(VirtAddr(u64::MAX - 4095), 2 * PAGE, window));
}

#[test]
fn a_stack_grows_down_to_the_fault() {
    let mut map = AreaMap::new();
    map.insert(area(100, 110, Access::READ_WRITE, None))
        .unwrap();
    map.grow_down(at(100), at(97));
    assert_eq!(bounds(&map), [(97, 110)]);
    assert_eq!(map.bytes(), 13 * PAGE);
}

const PAGES: u64 = 64;

/// What the oracle knows of a page: access and offset in the file.
type Known = Option<(Access, Option<u64>)>;

fn random_access(random: &mut Random) -> Access {
    let bits = random.below(4);
    Access {
        read: bits & 1 != 0,
        write: bits & 2 != 0,
        exec: false,
    }
}

fn step(map: &mut AreaMap<u8>, oracle: &mut [Known], random: &mut Random) {
    let from = random.below(PAGES);
    let to = from + 1 + random.below(PAGES - from);
    let access = random_access(random);
    let pages = from as usize..to as usize;
    if random.below(3) == 0 {
        map.update(at(from)..at(to), |area| area.access = access)
            .unwrap();
        oracle[pages]
            .iter_mut()
            .flatten()
            .for_each(|known| known.0 = access);
        return;
    }
    let _ = map.remove(at(from)..at(to)).unwrap();
    oracle[pages].fill(None);
    if random.below(2) == 0 {
        let file = (random.below(2) == 0).then_some(1);
        map.insert(area(from, to, access, file)).unwrap();
        (from..to).for_each(|page| {
            oracle[page as usize] = Some((access, file.map(|_| page * PAGE)));
        });
    }
}

/// The highest run of `pages` free pages, page by page.
fn highest_run(oracle: &[Known], pages: usize) -> Option<u64> {
    let free = |first: &usize| oracle[*first..*first + pages].iter().all(Option::is_none);
    let last = oracle.len().checked_sub(pages)?;
    (0..=last).rev().find(free).map(|first| first as u64)
}

fn check_gaps(map: &mut AreaMap<u8>, oracle: &[Known], seed: u64) {
    let window = Window {
        low: at(0),
        high: at(PAGES),
    };
    for pages in [1, 2, 3, 7, 20] {
        let found = map.highest_gap(pages * PAGE, PAGE, window);
        let expected = highest_run(oracle, pages as usize).map(at);
        assert_eq!(found, expected, "{pages} pages, SEED={seed}");
    }
}

#[test]
fn the_tree_stays_low_with_tens_of_thousands_of_areas() {
    let mut map = AreaMap::new();
    let count = 60_000;
    for page in 0..count {
        map.insert(area(2 * page, 2 * page + 1, READ, None))
            .unwrap();
    }
    // 1.44 log2(n) is the bound of an AVL tree.
    assert!(map.tree_mut().check() <= 22);
    let window = Window {
        low: at(0),
        high: at(2 * count - 1),
    };
    assert_eq!(map.highest_gap(2 * PAGE, PAGE, window), None);
    let _ = map.remove(at(4000)..at(4001)).unwrap();
    assert_eq!(map.highest_gap(2 * PAGE, PAGE, window), Some(at(4000)));
    let _ = map.remove(at(0)..at(2 * count)).unwrap();
    assert!(map.is_empty());
    map.tree_mut().check();
}

#[test]
fn random_changes_agree_with_a_page_by_page_oracle() {
    for seed in 1..=20_u64 {
        let (mut random, mut map) = (Random::new(seed), AreaMap::new());
        let mut oracle: Vec<Known> = vec![None; PAGES as usize];
        for _ in 0..500 {
            step(&mut map, &mut oracle, &mut random);
            map.tree_mut().check();
            check_gaps(&mut map, &oracle, seed);
            for page in 0..PAGES {
                let found = map
                    .find(at(page))
                    .map(|area| (area.access, area.offset_of(at(page))));
                assert_eq!(found, oracle[page as usize], "page {page}, SEED={seed}");
            }
            let areas: Vec<_> = map.iter().collect();
            assert!(
                areas.windows(2).all(|pair| !pair[0].joins(pair[1])),
                "SEED={seed}"
            );
        }
    }
}

#[test]
fn promised_memory_is_what_the_areas_say_after_every_change() {
    let writable = |from, to| {
        let mut area = area(from, to, Access::READ_WRITE, None);
        area.traits.promised = true;
        area
    };
    let sum = |map: &AreaMap<u8>| map.iter().map(Area::promised_bytes).sum::<u64>();
    let mut map = AreaMap::new();
    map.insert(writable(10, 20)).unwrap();
    map.insert(area(20, 30, READ, None)).unwrap();
    assert_eq!(map.promised_bytes(), 10 * PAGE);
    map.update(at(15)..at(25), |area| area.traits.promised = true)
        .unwrap();
    assert_eq!(map.promised_bytes(), 15 * PAGE);
    let _ = map.remove(at(12)..at(22)).unwrap();
    assert_eq!(map.promised_bytes(), 5 * PAGE);
    map.grow_down(at(10), at(4));
    assert_eq!(map.promised_bytes(), 11 * PAGE);
    map.update(at(0)..at(100), |area| area.traits.promised = false)
        .unwrap();
    assert_eq!((map.promised_bytes(), sum(&map)), (0, 0));
}

#[test]
fn an_empty_map_gives_back_its_memory_in_parts_and_can_be_used_again() {
    let mut map = AreaMap::new();
    for page in 0..1000 {
        map.insert(area(2 * page, 2 * page + 1, READ, None))
            .unwrap();
    }
    assert!(!map.shed(), "areas are there");
    drop(map.remove(at(0)..at(2000)).unwrap());
    assert!(map.shed() && map.shed());
    map.insert(area(3, 5, READ, None)).unwrap();
    assert_eq!(bounds(&map), [(3, 5)]);
    drop(map.remove(at(0)..at(2000)).unwrap());
    while map.shed() {}
    map.insert(area(7, 8, READ, None)).unwrap();
    assert_eq!(bounds(&map), [(7, 8)]);
}
