//! The caches of one CPU.

use std::vec::Vec;

use super::{memory, ram};
use crate::{BATCH, Backing, Frame, HUGE_PAGES, LocalFrames, Request, Urgency};

const ORDINARY: Urgency = Urgency::Ordinary;

#[test]
fn the_frame_returned_last_comes_first() {
    let (memory, cpu) = (memory(ram(&[(0, 1024)])), LocalFrames::new());
    let frame = cpu.alloc(&memory, ORDINARY).unwrap();
    let number = frame.number();
    cpu.free(&memory, frame);
    assert_eq!(cpu.alloc(&memory, ORDINARY).unwrap().number(), number);
}

#[test]
fn the_lock_is_taken_once_for_a_batch() {
    let (memory, cpu) = (memory(ram(&[(0, 1024)])), LocalFrames::new());
    let count = 8 * BATCH;
    let frames: Vec<_> = (0..count)
        .map(|_| cpu.alloc(&memory, ORDINARY).unwrap())
        .collect();
    assert_eq!(cpu.stats().misses, 8);
    frames
        .into_iter()
        .for_each(|frame| cpu.free(&memory, frame));
    assert!(cpu.stats().returns <= 8);
    assert_eq!(cpu.stats().requests, count as u64);
}

#[test]
fn a_batch_that_goes_back_is_the_one_that_rested_longest() {
    let (memory, cpu) = (memory(ram(&[(0, 1024)])), LocalFrames::new());
    let frames: Vec<_> = (0..96)
        .map(|_| cpu.alloc(&memory, ORDINARY).unwrap())
        .collect();
    let last = frames.last().unwrap().number();
    frames
        .into_iter()
        .for_each(|frame| cpu.free(&memory, frame));
    assert_eq!(cpu.alloc(&memory, ORDINARY).unwrap().number(), last);
}

#[test]
fn frames_in_order_go_back_by_whole_blocks_wherever_they_begin() {
    // The first frame lies within a block of a batch, the last ones are not given back yet.
    let pieces_of_an_end = u64::from(BATCH.ilog2());
    for (kept, is_descending) in (1..BATCH).flat_map(|kept| [(kept, false), (kept, true)]) {
        let (memory, cpu) = (memory(ram(&[(0, 1024)])), LocalFrames::new());
        let take = |_| cpu.alloc(&memory, ORDINARY).unwrap();
        let mut frames: Vec<_> = (0..7 * BATCH).map(take).collect();
        let mut given: Vec<_> = frames.drain(kept..kept + 6 * BATCH).collect();
        if is_descending {
            given.reverse();
        }
        for frame in given {
            cpu.free(&memory, frame);
            let blocks = memory.zones().stats().next().unwrap().blocks;
            let pieces: u64 = blocks[..BATCH.ilog2() as usize].iter().sum();
            assert!(
                pieces <= pieces_of_an_end,
                "{pieces} behind {kept} frames, down: {is_descending}"
            );
        }
    }
}

#[test]
fn nothing_is_zeroed_twice() {
    let (memory, cpu) = (memory(ram(&[(0, 1024)])), LocalFrames::new());
    while cpu.zero_one(&memory) {}
    let ahead = cpu.stats().zeroed_idle;
    cpu.flush(&memory);
    let frames: Vec<_> = (0..ahead)
        .map(|_| cpu.alloc_zeroed(&memory, ORDINARY).unwrap())
        .collect();
    let mut zeroed = memory.zeroed.lock().unwrap().clone();
    zeroed.sort_unstable();
    zeroed.dedup();
    assert_eq!(cpu.stats().found_zero, ahead, "flushed and found again");
    assert_eq!(zeroed.len() as u64, ahead);
    assert!(frames.iter().all(|frame| zeroed.contains(&frame.number())));
}

#[test]
fn a_huge_page_is_zeroed_in_slices_and_only_where_it_is_not_zero() {
    let (memory, cpu) = (memory(ram(&[(0, 2048)])), LocalFrames::new());
    let request = Request::new(HUGE_PAGES, ORDINARY);
    let page = cpu.alloc_extent(&memory, request).unwrap();
    cpu.free_extent(&memory, page);
    let singles_goal = 96;
    for _ in 0..singles_goal + 100 {
        assert!(cpu.zero_one(&memory));
    }
    let page = cpu.alloc_extent_zeroed(&memory, request).unwrap();
    assert_eq!(cpu.stats().found_zero, 100);
    assert_eq!(cpu.stats().zeroed_now, HUGE_PAGES - 100);
    cpu.free_extent(&memory, page);
    let _page = cpu.alloc_extent_zeroed(&memory, request).unwrap();
    assert_eq!(cpu.stats().found_zero, 100, "forgotten when it was used");
}

#[test]
fn huge_pages_in_the_cache_help_those_who_find_nothing_else() {
    let (memory, cpu) = (memory(ram(&[(0, 512)])), LocalFrames::new());
    let huge = Request::new(HUGE_PAGES, Urgency::Critical);
    let page = cpu.alloc_extent(&memory, huge).unwrap();
    cpu.free_extent(&memory, page);
    assert_eq!(cpu.stats().resting, 512);
    assert!(cpu.alloc(&memory, ORDINARY).is_some());
}

#[test]
fn small_machines_keep_little_aside() {
    let (memory, cpu) = (memory(ram(&[(0, 4096)])), LocalFrames::new());
    cpu.fit(4096);
    let request = Request::new(HUGE_PAGES, ORDINARY);
    let page = cpu.alloc_extent(&memory, request).unwrap();
    cpu.free_extent(&memory, page);
    while cpu.zero_one(&memory) {}
    assert!(cpu.stats().resting <= 64);
}

#[test]
fn all_that_rests_comes_back_when_it_is_flushed() {
    let (memory, cpu) = (memory(ram(&[(0, 4096)])), LocalFrames::new());
    let page = cpu.alloc_extent(&memory, Request::new(HUGE_PAGES, ORDINARY));
    cpu.free_extent(&memory, page.unwrap());
    cpu.free(&memory, cpu.alloc(&memory, ORDINARY).unwrap());
    while cpu.zero_one(&memory) {}
    cpu.flush(&memory);
    assert_eq!(cpu.stats().resting, 0);
    assert_eq!(memory.zones().free_frames(), 4096);
    assert_eq!(memory.zones().stats().next().unwrap().blocks[10], 4);
}

#[test]
fn shuffled_frames_never_follow_each_other() {
    for seed in 1..10 {
        let (memory, cpu) = (memory(ram(&[(0, 4096)])), LocalFrames::new());
        cpu.shuffle(seed);
        let mut held = Vec::new();
        let mut last = u64::MAX - 1;
        for step in 0..2000_u64 {
            // A run that was given back in order is what a stack would return in order.
            if step % 64 == 63 {
                let frames = held.drain(held.len() / 2..);
                frames.for_each(|number| cpu.free(&memory, Frame::from_number(number)));
            }
            let frame = cpu.alloc(&memory, ORDINARY).unwrap().into_number();
            assert_ne!(frame.abs_diff(last), 1, "SEED={seed}");
            last = frame;
            held.push(frame);
            held.sort_unstable();
        }
    }
}

#[test]
fn shuffled_memory_can_be_used_up() {
    let (memory, cpu) = (memory(ram(&[(0, 1024)])), LocalFrames::new());
    cpu.shuffle(1);
    let taken = core::iter::from_fn(|| cpu.alloc(&memory, Urgency::Critical)).count();
    assert_eq!(taken, 1024);
}
