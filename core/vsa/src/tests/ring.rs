//! Whatever a program writes into its rings, nothing outside its area and its memory is touched.

use core::cell::Cell;
use std::sync::Arc;
use std::vec::Vec;

use models::{Random, for_each_seed};

use crate::ring::{Nonsense, Operation, Outcome, RingSize, Submission, Translation};
use crate::{AreaId, Extent, Map};

const MEMORY: u64 = 64 << 10;

fn map() -> Map {
    let extents = [(100, 10), (50, 5), (200, 1)];
    let extents = extents.map(|(first, count)| Extent::new(first, count).unwrap());
    Map::new(AreaId(1), 1, &extents)
}

fn read(first: u64, count: u64, memory: u64) -> Submission {
    Submission {
        operation: Operation::Read,
        first,
        count,
        memory,
        cookie: 7,
    }
}

#[test]
fn indices_pass_the_end_of_their_numbers_and_nonsense_is_refused() {
    let size = RingSize::new(8).unwrap();
    assert_eq!(size.filled(u32::MAX - 2, 3), Ok(6));
    assert_eq!(size.room(3, u32::MAX - 2), Ok(2));
    assert_eq!(size.filled(0, 9), Err(Nonsense));
    assert_eq!(size.filled(5, 4), Err(Nonsense));
    assert_eq!(size.room(5, 6), Err(Nonsense));
    assert_eq!(size.place(u32::MAX), 7);
    let refused = [0, 3, 8192].map(RingSize::new);
    assert_eq!(refused, [None; 3]);
}

#[test]
fn a_submission_is_what_was_written_and_is_translated() {
    let asked = read(8, 7, 4096);
    let found = Submission::decode(&asked.encode()).unwrap();
    assert_eq!(found, asked);
    let map = map();
    let checked = found.check(&map, 4096, MEMORY).unwrap();
    let pieces: Vec<_> = checked
        .pieces
        .map(|piece| (piece.first(), piece.count()))
        .collect();
    assert_eq!(pieces, [(108, 2), (50, 5)]);
    assert_eq!(checked.memory, 4096..8 * 4096);
}

#[test]
fn what_lies_outside_is_refused_by_its_reason() {
    let map = map();
    let refused = |asked: Submission| asked.check(&map, 4096, MEMORY).err();
    assert_eq!(refused(read(15, 1, 0)), None);
    assert_eq!(refused(read(15, 2, 0)), Some(Outcome::OutOfArea));
    assert_eq!(refused(read(u64::MAX, 1, 0)), Some(Outcome::OutOfArea));
    assert_eq!(refused(read(0, 0, 0)), Some(Outcome::OutOfArea));
    assert_eq!(refused(read(0, 1, MEMORY)), Some(Outcome::OutOfMemory));
    assert_eq!(
        refused(read(0, 1, u64::MAX - 511)),
        Some(Outcome::OutOfMemory)
    );
    assert_eq!(refused(read(0, 1, 4)), Some(Outcome::OutOfMemory));
    let mut flush = read(0, 0, u64::MAX);
    flush.operation = Operation::Flush;
    assert_eq!(refused(flush), None);
}

fn hostile(random: &mut Random) -> [u8; 32] {
    let mut bytes = read(
        random.below(20u64),
        random.below(20u64),
        random.below(MEMORY),
    )
    .encode();
    for _ in 0..random.below(4) {
        bytes[random.below(32usize)] = random.bits() as u8;
    }
    bytes
}

#[test]
fn random_submissions_reach_only_the_area_and_the_memory() {
    let map = map();
    let own: Vec<u64> = (100..110).chain(50..55).chain([200]).collect();
    for_each_seed(20_000, |_, mut random| {
        let bytes = hostile(&mut random);
        let asked = match Submission::decode(&bytes) {
            Ok(asked) => asked,
            Err((outcome, cookie)) => {
                assert_eq!(outcome, Outcome::Unknown);
                assert_eq!(cookie.to_le_bytes(), bytes[24..]);
                return;
            }
        };
        let Ok(checked) = asked.check(&map, 4096, MEMORY) else {
            return;
        };
        assert!(checked.memory.end <= MEMORY && checked.memory.start <= checked.memory.end);
        let mut blocks = checked.pieces.flat_map(|piece| piece.first()..piece.end());
        assert!(blocks.all(|block| own.contains(&block)));
    });
}

/// What the short way must say: a read or an unforced write of one extent and one page is that, all else is not for it.
fn as_page(bytes: &[u8; 32], map: &Map, block_bytes: u32) -> Option<(bool, u64, u64, u64)> {
    let asked = Submission::decode(bytes).ok()?;
    let is_write = match asked.operation {
        Operation::Read => false,
        Operation::Write { is_forced: false } => true,
        _ => return None,
    };
    let checked = asked.check(map, block_bytes, u64::MAX).ok()?;
    let pieces: Vec<_> = checked.pieces.collect();
    let [piece] = pieces[..] else {
        return None;
    };
    let range = checked.memory;
    let is_in_page = range.start / 4096 == (range.end - 1) / 4096;
    let first = piece.first() * u64::from(block_bytes);
    is_in_page.then_some((is_write, first, range.start, range.end))
}

#[test]
fn memory_ends_before_the_last_byte_that_can_be_named() {
    for block_bytes in [512, 4096] {
        let mut translation = Translation::new(Arc::new(map()), block_bytes);
        let last = u64::MAX - u64::from(block_bytes) + 1;
        assert_eq!(translation.page(&read(0, 1, last).encode()), None);
        let before = last - u64::from(block_bytes);
        assert!(translation.page(&read(0, 1, before).encode()).is_some());
    }
}

#[test]
fn the_short_way_says_of_pages_what_the_long_one_says_and_nothing_of_others() {
    let map = Arc::new(map());
    let found = Cell::new(0);
    for_each_seed(2_000, |_, mut random| {
        let block_bytes = 512 << random.below(4u32);
        let mut translation = Translation::new(map.clone(), block_bytes);
        for _ in 0..50 {
            let mut bytes = hostile(&mut random);
            if random.below(4) != 0 {
                let memory = random.below(64u64) * 512;
                let mut asked = read(random.below(18u64), random.below(4u64), memory);
                if random.below(2) == 0 {
                    let is_forced = random.below(4) == 0;
                    asked.operation = Operation::Write { is_forced };
                }
                bytes = asked.encode();
            }
            let page = translation.page(&bytes);
            found.set(found.get() + u32::from(page.is_some()));
            let said = page.map(|page| (page.is_write, page.first, page.memory, page.memory_end));
            assert_eq!(said, as_page(&bytes, &map, block_bytes));
            assert!(page.is_none_or(|page| page.cookie.to_le_bytes() == bytes[24..]));
        }
        translation.set(None);
        let asked = read(0, 1, 0).encode();
        assert_eq!(translation.page(&asked), None);
        translation.set(Some(map.clone()));
        assert!(translation.page(&asked).is_some());
    });
    assert!(found.get() > 10_000);
}
