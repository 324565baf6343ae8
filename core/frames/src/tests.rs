//! The buddy against a bitmap that remembers every frame.

use std::boxed::Box;
use std::vec::Vec;

use crate::{Buddy, Extent, FrameCache, FrameInfo, FrameTable, PAGES_MAX};

fn infos(frames: usize) -> &'static [FrameInfo] {
    Box::leak(
        (0..frames)
            .map(|_| FrameInfo::reserved())
            .collect::<Vec<_>>()
            .into_boxed_slice(),
    )
}

fn ram(sections: &[(u64, usize)]) -> (FrameTable, Buddy) {
    let (mut table, mut buddy) = (FrameTable::new(), Buddy::new());
    for &(first, frames) in sections {
        table.add(first, infos(frames)).unwrap();
        assert_eq!(buddy.donate(&table, first, frames as u64), frames as u64);
    }
    (table, buddy)
}

/// xorshift64*: deterministic, so that a seed replays a run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) % limit
    }
}

/// Marks the frames of an extent in the oracle; panics if one is already marked so.
fn mark(oracle: &mut [bool], extent: &Extent, used: bool, seed: u64) {
    for frame in extent.first()..extent.first() + extent.pages() {
        let state = &mut oracle[frame as usize];
        assert_ne!(*state, used, "frame {frame} doubled or lost, SEED={seed}");
        *state = used;
    }
}

fn churn(seed: u64) {
    let (table, mut buddy) = ram(&[(3, 1500), (5000, 2049)]);
    let total = buddy.free_frames();
    let mut oracle = [false; 8000];
    let mut held: Vec<Extent> = Vec::new();
    let mut random = Random(seed);
    for _ in 0..10_000 {
        if random.below(2) == 0 {
            let pages = if random.below(4) == 0 {
                1 + random.below(300)
            } else {
                1
            };
            if let Some(extent) = buddy.alloc(&table, pages) {
                mark(&mut oracle, &extent, true, seed);
                held.push(extent);
            }
        } else if !held.is_empty() {
            let extent = held.swap_remove(random.below(held.len() as u64) as usize);
            mark(&mut oracle, &extent, false, seed);
            buddy.free(&table, extent);
        }
        let used: u64 = held.iter().map(Extent::pages).sum();
        assert_eq!(buddy.free_frames(), total - used, "SEED={seed}");
    }
    held.drain(..).for_each(|extent| buddy.free(&table, extent));
    assert_eq!(buddy.free_frames(), total, "SEED={seed}");
    assert!(
        buddy.alloc(&table, PAGES_MAX).is_some(),
        "blocks merge again, SEED={seed}"
    );
}

#[test]
fn no_frame_is_lost_or_doubled_in_random_use() {
    (1..=8).for_each(churn);
}

#[test]
fn the_tail_of_an_odd_run_is_free_and_merges_back() {
    let (table, mut buddy) = ram(&[(1024, 1024)]);
    let run = buddy.alloc(&table, 5).unwrap();
    assert_eq!(buddy.free_frames(), 1019);
    assert!(buddy.alloc(&table, PAGES_MAX).is_none());
    buddy.free(&table, run);
    assert_eq!(buddy.alloc(&table, PAGES_MAX).unwrap().pages(), PAGES_MAX);
}

#[test]
fn a_run_may_be_given_back_frame_by_frame() {
    let (table, mut buddy) = ram(&[(0, 1024)]);
    let run = buddy.alloc(&table, 64).unwrap();
    let (first, pages) = run.into_parts();
    (first..first + pages).for_each(|frame| buddy.free_one(&table, frame));
    assert!(buddy.alloc(&table, PAGES_MAX).is_some());
}

#[test]
fn a_frame_given_back_twice_is_counted_once() {
    let (table, mut buddy) = ram(&[(0, 16)]);
    let frame = buddy.alloc_one(&table).unwrap();
    buddy.free_one(&table, frame);
    buddy.free_one(&table, frame);
    assert_eq!(buddy.free_frames(), 16);
}

#[test]
fn reserved_neighbours_never_merge() {
    let mut table = FrameTable::new();
    table.add(0, infos(8)).unwrap();
    let mut buddy = Buddy::new();
    buddy.donate(&table, 0, 3);
    assert_eq!(buddy.free_frames(), 3);
    assert!(buddy.alloc(&table, 4).is_none());
}

#[test]
fn exhaustion_is_none_and_requests_out_of_range_are_refused() {
    let (table, mut buddy) = ram(&[(7, 2)]);
    assert!(buddy.alloc(&table, 0).is_none());
    assert!(buddy.alloc(&table, PAGES_MAX + 1).is_none());
    assert!(buddy.alloc_one(&table).is_some() && buddy.alloc_one(&table).is_some());
    assert_eq!(buddy.alloc_one(&table), None);
}

#[test]
fn the_last_owner_is_told_to_give_the_frame_back() {
    let (table, mut buddy) = ram(&[(0, 4)]);
    let frame = buddy.alloc_one(&table).unwrap();
    table.share(frame).unwrap();
    assert_eq!(table.owners(frame), 2);
    assert!(!table.release(frame));
    assert!(table.release(frame));
    buddy.free_one(&table, frame);
    assert_eq!(table.owners(frame), 0);
    assert_eq!(buddy.free_frames(), 4);
}

#[test]
fn extents_join_only_where_they_touch() {
    let (table, mut buddy) = ram(&[(0, 64)]);
    let (low, high) = buddy.alloc(&table, 8).unwrap().split(3).unwrap();
    assert_eq!((low.pages(), high.pages()), (3, 5));
    let (high, low) = high.join(low).unwrap_err();
    buddy.free(&table, low.join(high).unwrap());
    assert_eq!(buddy.free_frames(), 64);
}

#[test]
fn a_cache_returns_the_frame_it_got_last_and_refuses_when_full() {
    let mut cache = FrameCache::new();
    assert_eq!(cache.pop(), None);
    let kept = (0..).take_while(|&frame| cache.push(frame).is_ok()).count() as u64;
    assert_eq!(cache.push(99), Err(99));
    assert_eq!(cache.pop(), Some(kept - 1));
}
