//! Transfers of one page, whose memory is kept by others.

use block::{Done, Durability, Failure, Limits, REQUESTS_MAX, RETRIES_MAX, TIMEOUT};
use hal::caching::WriteBack;
use hal::owner::Device;
use hal::{DmaBuf, DmaRequest, DmaSource, HasDeviceAddr};
use models::for_each_seed;

use crate::rig::{Rig, limits, range};

impl Rig {
    fn page(&self, fill: u8) -> DmaBuf<WriteBack, Device> {
        let buffer: DmaBuf = self.memory.dma_alloc(&DmaRequest::new(4096, 4096)).unwrap();
        buffer.copy_in(0, &[fill; 4096]);
        buffer.give()
    }

    /// Hands a transfer between sectors from `first` on and a part of a page in; false if the queue does not take it so.
    fn submit_page(
        &mut self,
        number: u32,
        is_write: bool,
        first: u64,
        (offset, len): (usize, usize),
        fill: u8,
    ) -> bool {
        let page = self.page(fill);
        let span = page.dev_addr(offset, len).unwrap();
        let mut page = Some(page);
        let owner = || (number, Vec::from_iter(page.take()));
        let is_sent = self
            .queue
            .submit_page(is_write, first, span, owner, self.now);
        self.queue.publish();
        if let Some(page) = page {
            assert!(!is_sent);
            drop(page.take_back());
        }
        is_sent
    }
}

#[test]
fn pages_and_other_requests_end_once_each_whatever_the_order() {
    for_each_seed(200, |_, mut random| {
        let mut rig = Rig::new(limits(), 8);
        let mut expected = Vec::new();
        for number in 0..40u32 {
            let (first, fill) = (u64::from(number) * 8, number as u8 + 1);
            match random.below(3u32) {
                0 => rig.write(number, first, fill, Durability::Volatile),
                1 => rig.write(number, first, fill, Durability::Forced),
                _ => {
                    if !rig.submit_page(number, true, first, (0, 4096), fill) {
                        rig.write(number, first, fill, Durability::Volatile);
                    }
                }
            }
            expected.push(number);
            if random.below(4u32) == 0 {
                rig.disk.finish_all(&mut |count| random.below(count));
                rig.complete();
            }
        }
        rig.run(&mut |count| random.below(count));
        let mut ended: Vec<u32> = rig.ended.iter().map(|end| end.0).collect();
        ended.sort_unstable();
        assert_eq!(ended, expected);
        rig.ended.clear();
        for number in expected {
            assert!(rig.submit_page(number, false, u64::from(number) * 8, (0, 4096), 0));
            rig.run(&mut |_| 0);
            let (_, result, bytes) = rig.ended.pop().unwrap();
            assert_eq!(result, Ok(Done::Read));
            assert_eq!(bytes, [number as u8 + 1; 4096]);
        }
        assert!(rig.queue.is_idle());
        assert_eq!(rig.queue.counters(rig.now).under_way, 0);
    });
}

#[test]
fn what_is_no_part_of_a_page_or_of_the_disk_is_not_taken() {
    let mut rig = Rig::new(limits(), 8);
    assert!(!rig.submit_page(0, true, 1017, (0, 4096), 1));
    assert!(!rig.submit_page(0, true, u64::MAX, (0, 4096), 1));
    assert!(!rig.submit_page(0, true, 0, (256, 512), 1));
    assert!(!rig.submit_page(0, true, 0, (0, 100), 1));
    assert!(!rig.submit_page(0, true, 0, (0, 0), 1));
    assert!(rig.submit_page(0, true, 1023, (3584, 512), 1));
    let mut fixed = Rig::new(
        Limits {
            is_read_only: true,
            block_bytes: 4096,
            ..limits()
        },
        8,
    );
    assert!(!fixed.submit_page(0, true, 0, (0, 4096), 1));
    assert!(!fixed.submit_page(0, false, 0, (0, 512), 1));
    assert!(!fixed.submit_page(0, false, 4, (0, 4096), 1));
    assert!(fixed.submit_page(0, false, 8, (0, 4096), 1));
    rig.run(&mut |_| 0);
    fixed.run(&mut |_| 0);
}

#[test]
fn pages_that_hang_are_asked_for_again_and_then_fail() {
    let mut rig = Rig::new(limits(), 8);
    assert!(rig.submit_page(0, true, 0, (0, 4096), 9));
    assert!(rig.submit_page(1, false, 8, (0, 512), 9));
    assert_eq!(rig.queue.room(), REQUESTS_MAX - 2);
    assert!(!rig.queue.is_stuck(rig.now) && !rig.queue.is_idle());
    for _ in 0..RETRIES_MAX {
        rig.now += TIMEOUT;
        assert!(rig.queue.is_stuck(rig.now));
        rig.stop_and_start();
        assert!(rig.ended.is_empty());
    }
    rig.disk.finish_all(&mut |_| 0);
    rig.complete();
    assert!(matches!(rig.outcome(0), Ok(Done::Written(_))));
    assert_eq!(rig.outcome(1), Ok(Done::Read));
    assert!(rig.submit_page(2, true, 0, (0, 4096), 9));
    for _ in 0..=RETRIES_MAX {
        rig.now += TIMEOUT;
        rig.stop_and_start();
    }
    assert_eq!(rig.outcome(2), Err(Failure::TimedOut));
    assert!(rig.queue.is_idle());
    assert_eq!(rig.memory.buffers(), 0);
}

#[test]
fn a_page_waits_its_turn_behind_others_that_wait() {
    let mut rig = Rig::new(limits(), 2);
    for number in 0..3 {
        rig.write(number, u64::from(number) * 8, 9, Durability::Volatile);
    }
    assert!(!rig.submit_page(3, true, 64, (0, 4096), 1));
    rig.run(&mut |_| 0);
    assert!(rig.submit_page(3, true, 64, (0, 4096), 1));
    let request = rig.request(4, block::Operation::Read, range(64, 8), &[4096], 0);
    assert!(rig.submit(request));
    rig.run(&mut |_| 0);
    assert_eq!(rig.outcome(4), Ok(Done::Read));
}
