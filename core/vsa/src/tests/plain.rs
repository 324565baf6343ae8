//! What the calls do while nothing goes wrong.

use std::vec::Vec;

use models::for_each_seed;

use super::disk::SimDisk;
use crate::{Catalogue, CopyState, Error, Extent, Map, New, OpenError, OutOfArea, Refused};

fn disk() -> SimDisk {
    SimDisk::new(4096, 164, 0)
}

fn new(name: &[u8], blocks: u64) -> New<'_> {
    New {
        name,
        owner: 7,
        blocks,
    }
}

/// The blocks of the disk, one by one.
fn blocks(map: &Map) -> Vec<u64> {
    let pieces = map.translate(0, map.blocks()).expect("all of it");
    pieces
        .flat_map(|piece| piece.first()..piece.end())
        .collect()
}

#[test]
fn what_was_made_is_found_after_another_opening() {
    let mut disk = disk();
    let mut catalogue = Catalogue::format(&mut disk).unwrap();
    let map = catalogue.create(&mut disk, &new(b"log", 20)).unwrap();
    let again = Catalogue::open(&mut disk).unwrap();
    assert_eq!(again.copy_state(), CopyState::Both);
    assert_eq!(again.acquire(b"log", 7), Ok(map.clone()));
    assert_eq!(again.acquire(b"log", 0), Ok(map));
    assert_eq!(again.acquire(b"log", 8), Err(Error::NotOwner));
    assert_eq!(again.acquire(b"lo", 7), Err(Error::NotFound));
    assert_eq!(again.free_blocks(), 80);
}

#[test]
fn an_area_grows_in_place_and_in_pieces_and_shrinks_from_its_end() {
    let mut disk = disk();
    let mut catalogue = Catalogue::format(&mut disk).unwrap();
    let a = catalogue.create(&mut disk, &new(b"a", 10)).unwrap();
    let grown = catalogue.resize(&mut disk, a.area(), 7, 20).unwrap();
    assert_eq!(grown.translate(0, 20).unwrap().count(), 1);
    let b = catalogue.create(&mut disk, &new(b"b", 10)).unwrap();
    let grown = catalogue.resize(&mut disk, a.area(), 7, 30).unwrap();
    assert_eq!(grown.translate(0, 30).unwrap().count(), 2);
    assert!(
        blocks(&grown)
            .iter()
            .all(|block| !blocks(&b).contains(block))
    );
    let shrunk = catalogue.resize(&mut disk, a.area(), 0, 15).unwrap();
    assert_eq!(blocks(&shrunk), blocks(&grown)[..15]);
    assert!(catalogue.is_current(&shrunk) && !catalogue.is_current(&grown));
    assert!(shrunk.version() > grown.version());
    assert_eq!(catalogue.free_blocks(), 75);
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let mut disk = disk();
    let mut catalogue = Catalogue::format(&mut disk).unwrap();
    let map = catalogue.create(&mut disk, &new(b"a", 10)).unwrap();
    let before = catalogue.list().to_vec();
    let events = disk.events;
    let mut create = |name: &[u8], blocks| catalogue.create(&mut disk, &new(name, blocks)).err();
    assert_eq!(create(b"a", 1), Some(Error::Exists));
    assert_eq!(create(b"", 1), Some(Error::BadName));
    assert_eq!(create(b"x/y", 1), Some(Error::BadName));
    assert_eq!(create(&[b'n'; 65], 1), Some(Error::BadName));
    assert_eq!(create(b"b", 0), Some(Error::Empty));
    assert_eq!(create(b"b", 91), Some(Error::NoSpace));
    assert_eq!(create(b"b", u64::MAX), Some(Error::OverQuota));
    let id = map.area();
    assert_eq!(catalogue.delete(&mut disk, id, 8), Err(Error::NotOwner));
    let resized = catalogue.resize(&mut disk, id, 7, 0);
    assert_eq!(resized, Err(Error::Empty));
    assert_eq!(catalogue.list(), before);
    assert_eq!(disk.events, events, "the disk was not asked");
}

#[test]
fn quotas_hold_and_are_kept() {
    let mut disk = disk();
    let mut catalogue = Catalogue::format(&mut disk).unwrap();
    catalogue.set_quota(&mut disk, 7, Some(15)).unwrap();
    catalogue.set_default_quota(&mut disk, 5).unwrap();
    let mut catalogue = Catalogue::open(&mut disk).unwrap();
    let map = catalogue.create(&mut disk, &new(b"a", 10)).unwrap();
    let too_much = catalogue.create(&mut disk, &new(b"b", 6));
    assert_eq!(too_much, Err(Error::OverQuota));
    let too_much = catalogue.resize(&mut disk, map.area(), 0, 16);
    assert_eq!(too_much, Err(Error::OverQuota));
    let owner = New {
        owner: 8,
        ..new(b"b", 6)
    };
    assert_eq!(catalogue.create(&mut disk, &owner), Err(Error::OverQuota));
    catalogue.set_quota(&mut disk, 7, None).unwrap();
    let resized = catalogue.resize(&mut disk, map.area(), 7, 5).unwrap();
    assert_eq!(resized.blocks(), 5);
}

#[test]
fn an_id_is_never_used_again_and_nothing_of_the_deleted_is_read() {
    let mut disk = SimDisk::new(512, 600, 0xaa);
    let mut catalogue = Catalogue::format(&mut disk).unwrap();
    let first = catalogue.create(&mut disk, &new(b"a", 80)).unwrap();
    for block in blocks(&first) {
        disk.bytes[block as usize * 512] = 0xbb;
    }
    catalogue.delete(&mut disk, first.area(), 7).unwrap();
    let mut catalogue = Catalogue::open(&mut disk).unwrap();
    let second = catalogue.create(&mut disk, &new(b"a", 88)).unwrap();
    assert_ne!(first.area(), second.area());
    for block in blocks(&second) {
        assert_eq!(disk.bytes[block as usize * 512..][..512], [0; 512]);
    }
}

#[test]
fn a_map_answers_for_its_blocks_and_no_others() {
    let mut disk = disk();
    let mut catalogue = Catalogue::format(&mut disk).unwrap();
    for name in [b"a", b"b", b"c", b"d", b"e"] {
        catalogue.create(&mut disk, &new(name, 20)).unwrap();
    }
    for name in [b"a", b"c", b"e"] {
        let id = catalogue.acquire(name, 7).unwrap().area();
        catalogue.delete(&mut disk, id, 7).unwrap();
    }
    let map = catalogue.create(&mut disk, &new(b"big", 55)).unwrap();
    let all = blocks(&map);
    assert_eq!(all.len(), 55);
    for first in 0..=56 {
        for count in 0..=56 {
            let inside = map.translate(first, count).map(|pieces| {
                let each = pieces.flat_map(|piece| piece.first()..piece.end());
                each.collect::<Vec<_>>()
            });
            let range = first as usize..(first + count) as usize;
            let expected = all.get(range).map(<[u64]>::to_vec);
            assert_eq!(inside.ok(), expected, "{first} {count}");
        }
    }
    assert_eq!(map.translate(u64::MAX, 2).err(), Some(OutOfArea));
    assert_eq!(map.translate(1, u64::MAX).err(), Some(OutOfArea));
}

#[test]
fn a_disk_that_grew_has_more_room_and_one_that_shrank_is_refused() {
    let mut disk = disk();
    let mut catalogue = Catalogue::format(&mut disk).unwrap();
    catalogue.create(&mut disk, &new(b"a", 10)).unwrap();
    disk.resize(200);
    assert_eq!(Catalogue::open(&mut disk).unwrap().free_blocks(), 126);
    disk.resize(100);
    let small = Catalogue::open(&mut disk).err();
    assert_eq!(small, Some(OpenError::Refused([Some(Refused::Shape); 2])));
    disk.resize(64);
    assert_eq!(Catalogue::open(&mut disk).err(), Some(OpenError::Shape));
}

#[test]
fn random_changes_never_give_a_block_twice_and_lose_none() {
    for_each_seed(20, |_, mut random| {
        let mut disk = SimDisk::new(4096, 264, 0);
        let mut catalogue = Catalogue::format(&mut disk).unwrap();
        for step in 0..120 {
            let name = [b'a' + random.below(12u8)];
            let size = 1 + random.below(40u64);
            let _ = match (catalogue.acquire(&name, 0), random.below(3)) {
                (Err(_), _) => catalogue.create(&mut disk, &new(&name, size)).map(|_| ()),
                (Ok(map), 0) => catalogue.delete(&mut disk, map.area(), 0),
                (Ok(map), _) => catalogue.resize(&mut disk, map.area(), 0, size).map(|_| ()),
            };
            let areas = catalogue.list();
            let mut extents: Vec<Extent> = areas
                .iter()
                .flat_map(|area| area.extents().to_vec())
                .collect();
            extents.sort_unstable();
            assert!(extents.windows(2).all(|pair| !pair[0].overlaps(pair[1])));
            let used: u64 = areas.iter().map(|area| area.blocks()).sum();
            assert_eq!(used + catalogue.free_blocks(), 200);
            if step % 10 == 0 {
                let again = Catalogue::open(&mut disk).unwrap();
                assert_eq!(again.list(), areas);
                assert_eq!(again.free_blocks(), catalogue.free_blocks());
            }
        }
    });
}
