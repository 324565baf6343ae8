//! A device that does not answer.

use block::{Done, Durability, Failure, Operation, REQUESTS_MAX, RETRIES_MAX, TIMEOUT};
use models::for_each_seed;

use crate::rig::{Rig, limits, range};

impl Rig {
    pub fn stop_and_start(&mut self) {
        self.disk.stop();
        self.queue.stop();
        let Self {
            queue, ended, now, ..
        } = self;
        let channel = self.disk.channel();
        queue.restart(channel, *now, &mut |completion| {
            Self::note(ended, completion)
        });
    }
}

#[test]
fn a_device_that_hangs_is_started_anew_and_asked_again() {
    let mut rig = Rig::new(limits(), 2);
    for number in 0..4 {
        rig.write(number, u64::from(number) * 8, 9, Durability::Volatile);
    }
    assert!(!rig.queue.is_stuck(rig.now));
    rig.now += TIMEOUT;
    assert!(rig.queue.is_stuck(rig.now));
    rig.stop_and_start();
    assert!(!rig.queue.is_stuck(rig.now));
    rig.run(&mut |_| 0);
    for number in 0..4 {
        assert!(matches!(rig.outcome(number), Ok(Done::Written(_))));
    }
    assert_eq!(rig.queue.counters(rig.now).retried, 4);
}

#[test]
fn a_device_that_hangs_again_and_again_fails_its_requests() {
    let mut rig = Rig::new(limits(), 2);
    rig.write(0, 0, 9, Durability::Volatile);
    for _ in 0..RETRIES_MAX {
        rig.now += TIMEOUT;
        rig.stop_and_start();
        assert!(rig.ended.is_empty());
    }
    rig.now += TIMEOUT;
    rig.stop_and_start();
    assert_eq!(rig.outcome(0), Err(Failure::TimedOut));
    assert_eq!(rig.memory.buffers(), 0);
}

#[test]
fn a_device_that_lies_is_stuck_at_once_and_nothing_is_lost() {
    let mut rig = Rig::new(limits(), 4);
    rig.write(0, 0, 9, Durability::Forced);
    rig.disk.lie();
    rig.complete();
    assert!(rig.queue.is_stuck(rig.now) && rig.ended.is_empty());
    rig.write(1, 8, 8, Durability::Volatile);
    rig.stop_and_start();
    rig.run(&mut |_| 0);
    assert!(matches!(rig.outcome(0), Ok(Done::Durable(_))));
    assert!(matches!(rig.outcome(1), Ok(Done::Written(_))));
}

#[test]
fn a_device_that_is_gone_fails_all_once() {
    let mut rig = Rig::new(limits(), 2);
    for number in 0..5 {
        rig.write(number, 0, 0, Durability::Volatile);
    }
    rig.disk.stop();
    rig.queue.stop();
    let Rig {
        queue, ended, now, ..
    } = &mut rig;
    queue.fail_all(*now, &mut |completion| Rig::note(ended, completion));
    for number in 0..5 {
        assert_eq!(rig.outcome(number), Err(Failure::Gone));
    }
    assert!(rig.ended.is_empty());
    assert_eq!(rig.memory.buffers(), 0);
}

#[test]
fn a_queue_takes_no_more_than_it_can_send_again() {
    let mut rig = Rig::new(limits(), 64);
    let mut taken = 0;
    loop {
        let (durability, lens): (_, &[usize]) = match taken % 2 {
            0 => (Durability::Volatile, &[4096]),
            _ => (Durability::Forced, &[2048, 2048]),
        };
        let operation = Operation::Write(durability);
        let request = rig.request(taken, operation, range(0, 8), lens, 7);
        if !rig.submit(request) {
            break;
        }
        taken += 1;
    }
    assert_eq!((taken as usize, rig.queue.room()), (REQUESTS_MAX, 0));
    rig.stop_and_start();
    assert_eq!(rig.queue.room(), 0);
    rig.run(&mut |_| 0);
    assert_eq!(
        (rig.ended.len(), rig.queue.room()),
        (REQUESTS_MAX, REQUESTS_MAX)
    );
    assert!(rig.ended.iter().all(|(_, result, _)| result.is_ok()));
    assert!(rig.queue.is_idle());
}

#[test]
fn a_start_at_any_moment_loses_and_doubles_nothing() {
    for_each_seed(200, |_, mut random| {
        let mut rig = Rig::new(limits(), 1 + random.below(5u16));
        for number in 0..30u32 {
            let durability = match random.once_in(3u32) {
                true => Durability::Forced,
                false => Durability::Volatile,
            };
            rig.write(number, u64::from(number) * 8, number as u8 + 1, durability);
            if rig.disk.pending() != 0 && random.once_in(2u32) {
                rig.disk.finish(random.below(rig.disk.pending()));
                if random.once_in(2u32) {
                    rig.complete();
                }
            }
            if random.once_in(25u32) {
                rig.stop_and_start();
            }
        }
        rig.run(&mut |count| random.below(count));
        let mut ended: Vec<u32> = rig.ended.iter().map(|(number, ..)| *number).collect();
        ended.sort_unstable();
        assert_eq!(ended, (0..30).collect::<Vec<_>>());
        for (number, result, _) in &rig.ended {
            let byte = rig.disk.bytes(range(u64::from(*number) * 8, 1))[0];
            assert!(result.is_err() || byte == *number as u8 + 1);
        }
    });
}
