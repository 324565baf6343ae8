//! Zones, blocks and owners.

use std::vec::Vec;

use super::{LOW_END, Lock, describe, ram};
use crate::table::OWNERS_MAX;
use crate::{Extent, FrameTable, Node, Overshared, PAGES_MAX, Reach, Request, Urgency, Zones};

const CRITICAL: Urgency = Urgency::Critical;
const HERE: Node = Node(0);

fn alloc(zones: &Zones<Lock>, table: &FrameTable, pages: u64) -> Option<Extent> {
    zones.alloc(table, Request::new(pages, CRITICAL), HERE)
}

#[test]
fn the_tail_of_an_odd_run_is_free_and_merges_back() {
    let (table, zones) = ram(&[(1024, 1024)]);
    for pages in [3, 5, 17, 513, 1023] {
        let run = alloc(&zones, &table, pages).unwrap();
        assert_eq!(zones.free_frames(), 1024 - pages);
        let tail = 1024 - pages;
        let mut one = [0];
        let others: Vec<_> = (0..tail)
            .map(|_| match zones.take(&table, &mut one, CRITICAL, HERE) {
                1 => one[0],
                _ => unreachable!("the tail is there to be taken"),
            })
            .collect();
        assert!(
            others
                .iter()
                .all(|frame| !(run.first()..run.first() + pages).contains(frame))
        );
        zones.give(&table, &others);
        zones.free(&table, run);
        let whole = alloc(&zones, &table, PAGES_MAX).unwrap();
        zones.free(&table, whole);
    }
}

#[test]
fn a_run_may_be_given_back_frame_by_frame() {
    let (table, zones) = ram(&[(0, 1024)]);
    let (first, pages) = alloc(&zones, &table, 64).unwrap().into_parts();
    (first..first + pages).for_each(|frame| zones.give(&table, &[frame]));
    assert!(alloc(&zones, &table, PAGES_MAX).is_some());
}

#[test]
fn frames_that_are_not_ram_are_not_donated() {
    let (mut table, zones) = ram(&[]);
    describe(&mut table, 0, 100);
    describe(&mut table, 200, 56);
    assert_eq!(zones.donate(&table, 0, 4096), 156);
    let blocks = zones.stats().next().unwrap().blocks;
    assert_eq!(&blocks[..7], &[0, 0, 1, 1, 1, 2, 1], "64+32+4 and 8+16+32");
}

#[test]
fn reserved_neighbours_never_merge() {
    let (mut table, zones) = ram(&[]);
    describe(&mut table, 0, 8);
    zones.donate(&table, 0, 3);
    assert_eq!(zones.free_frames(), 3);
    assert!(alloc(&zones, &table, 4).is_none());
}

#[test]
fn exhaustion_is_none_and_requests_out_of_range_are_refused() {
    let (table, zones) = ram(&[(7, 2)]);
    assert!(alloc(&zones, &table, 0).is_none());
    assert!(alloc(&zones, &table, PAGES_MAX + 1).is_none());
    assert!(alloc(&zones, &table, 1).is_some());
    assert!(alloc(&zones, &table, 1).is_some());
    assert!(alloc(&zones, &table, 1).is_none());
}

#[test]
fn a_batch_takes_small_blocks_first_and_breaks_no_large_one_for_the_rest() {
    let (table, zones) = ram(&[(0, 1024 + 3)]);
    let mut batch = [0; 32];
    assert_eq!(zones.take(&table, &mut batch, Urgency::Ordinary, HERE), 3);
    assert_eq!(&batch[..3], &[1026, 1024, 1025]);
    for first in [0, 32, 64] {
        assert_eq!(zones.take(&table, &mut batch, Urgency::Ordinary, HERE), 32);
        assert!(batch.iter().copied().eq(first..first + 32), "a whole block");
    }
    let blocks = zones.stats().next().unwrap().blocks;
    let fewest = u64::from((1024_u64 - 96).count_ones());
    assert_eq!(blocks.iter().sum::<u64>(), fewest);
}

#[test]
fn two_batches_in_a_row_bring_a_full_one_whatever_the_pieces() {
    for fragments in 1..32 {
        let (table, zones) = ram(&[(0, 1024 + fragments)]);
        let mut batch = [0; 32];
        let mut take = || zones.take(&table, &mut batch, Urgency::Ordinary, HERE);
        let mut last = take();
        for _ in 0..8 {
            let next = take();
            assert!(last + next >= 32, "{last} and {next} of {fragments} more");
            last = next;
        }
    }
}

#[test]
fn high_memory_is_preferred_and_low_requests_stay_low() {
    let (table, zones) = ram(&[(LOW_END - 1024, 2048)]);
    let any = alloc(&zones, &table, 1).unwrap();
    assert!(any.first() >= LOW_END);
    let request = Request {
        reach: Reach::Low,
        ..Request::new(1024, CRITICAL)
    };
    let low = zones.alloc(&table, request, HERE).unwrap();
    assert!(low.first() + low.pages() <= LOW_END);
    assert!(
        zones
            .alloc(
                &table,
                Request {
                    pages: 1,
                    ..request
                },
                HERE
            )
            .is_none()
    );
    assert_eq!(zones.free_frames(), 1023);
}

#[test]
fn blocks_do_not_merge_across_zones_and_joined_extents_go_home() {
    let (table, zones) = ram(&[(LOW_END - 512, 1024)]);
    let request = |reach| Request {
        reach,
        ..Request::new(512, CRITICAL)
    };
    let high = zones.alloc(&table, request(Reach::Any), HERE).unwrap();
    let low = zones.alloc(&table, request(Reach::Low), HERE).unwrap();
    zones.free(&table, low.join(high).unwrap());
    assert!(zones.stats().all(|zone| zone.blocks[9] == 1));
}

#[test]
fn the_reserve_is_for_critical_requests_and_leaves_frame_by_frame() {
    let (table, zones) = ram(&[(0, 1024)]);
    let reserve = zones.reserve();
    let mut batch = [0; 1024];
    let mut take = || zones.take(&table, &mut batch, Urgency::Ordinary, HERE);
    let taken: usize = core::iter::from_fn(|| Some(take()).filter(|&taken| taken > 0)).sum();
    assert_eq!(taken as u64, 1024 - reserve);
    assert_eq!(zones.take(&table, &mut batch, Urgency::Ordinary, HERE), 0);
    assert!(
        zones
            .alloc(&table, Request::new(1, Urgency::Ordinary), HERE)
            .is_none()
    );
    assert_eq!(zones.take(&table, &mut batch, CRITICAL, HERE), 1);
    assert!(alloc(&zones, &table, 2).is_some());
}

#[test]
fn the_last_owner_is_told_to_give_the_frame_back() {
    let (table, zones) = ram(&[(0, 4)]);
    let frame = alloc(&zones, &table, 1).unwrap();
    table.share(frame.first()).unwrap();
    assert_eq!(table.owners(frame.first()), 2);
    assert!(!table.release(frame.first()));
    assert!(table.release(frame.first()));
    zones.free(&table, frame);
    assert_eq!(zones.free_frames(), 4);
}

#[test]
fn an_owner_too_many_is_refused_and_not_counted() {
    let (table, zones) = ram(&[(0, 4)]);
    let frame = alloc(&zones, &table, 1).unwrap().first();
    table.info(frame).unwrap().set_owners(OWNERS_MAX - 1);
    assert_eq!(table.share(frame), Ok(()));
    assert_eq!(table.share(frame), Err(Overshared));
    assert_eq!(table.owners(frame), OWNERS_MAX);
    assert_eq!(table.share(LOW_END), Err(Overshared), "no RAM");
}

#[test]
fn extents_join_only_where_they_touch() {
    let (table, zones) = ram(&[(0, 64)]);
    let (low, high) = alloc(&zones, &table, 8).unwrap().split(3).unwrap();
    assert_eq!((low.pages(), high.pages()), (3, 5));
    let (high, low) = high.join(low).unwrap_err();
    zones.free(&table, low.join(high).unwrap());
    assert_eq!(zones.free_frames(), 64);
}
