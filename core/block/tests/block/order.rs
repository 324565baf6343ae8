//! What survives a loss of power.

use std::collections::BTreeMap;

use block::{Cache, Done, Durability, Failure, Flushed, Limits, Operation, Verdict, Written};
use models::for_each_seed;

use crate::rig::{Rig, limits, range};

fn written(rig: &mut Rig, number: u32) -> Written {
    match rig.outcome(number) {
        Ok(Done::Written(written)) => written,
        other => panic!("{other:?}"),
    }
}

fn flushed(rig: &mut Rig, number: u32) -> Flushed {
    match rig.outcome(number) {
        Ok(Done::Flushed(flushed)) => flushed,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_flush_covers_what_was_complete_when_it_was_sent() {
    let mut rig = Rig::new(limits(), 8);
    rig.write(0, 0, 1, Durability::Volatile);
    rig.run(&mut |_| 0);
    rig.write(1, 8, 1, Durability::Volatile);
    rig.flush(2);
    rig.run(&mut |count| count - 1);
    let flushed = flushed(&mut rig, 2);
    assert!(written(&mut rig, 0).settle(&flushed).is_ok());
    assert!(written(&mut rig, 1).settle(&flushed).is_err());
}

#[test]
fn a_flush_after_one_that_failed_does_not_cover_what_that_one_may_have_lost() {
    let mut rig = Rig::new(limits(), 8);
    rig.write(0, 0, 1, Durability::Volatile);
    rig.run(&mut |_| 0);
    rig.disk.end_next_with(Verdict::Failed);
    rig.flush(1);
    rig.run(&mut |_| 0);
    assert_eq!(rig.outcome(1), Err(Failure::Medium));
    rig.write(2, 8, 1, Durability::Volatile);
    rig.run(&mut |_| 0);
    rig.flush(3);
    rig.run(&mut |_| 0);
    let flushed = flushed(&mut rig, 3);
    assert!(written(&mut rig, 0).settle(&flushed).is_err());
    assert!(written(&mut rig, 2).settle(&flushed).is_ok());
}

#[test]
fn a_flush_that_failed_while_a_write_was_half_done_may_have_lost_that_half() {
    for durability in [Durability::Volatile, Durability::Forced] {
        let mut rig = Rig::new(limits(), 8);
        let write = Operation::Write(durability);
        let request = rig.request(0, write, range(0, 64), &[4096; 8], 9);
        assert!(rig.submit(request));
        rig.disk.finish(0);
        rig.complete();
        rig.flush(1);
        rig.disk.end_next_with(Verdict::Failed);
        rig.disk.finish(1);
        rig.disk.lose_cache();
        rig.run(&mut |_| 0);
        match durability {
            Durability::Forced => assert_eq!(rig.outcome(0), Err(Failure::Medium)),
            Durability::Volatile => {
                rig.flush(2);
                rig.run(&mut |_| 0);
                let flushed = flushed(&mut rig, 2);
                assert!(written(&mut rig, 0).settle(&flushed).is_err());
            }
        }
    }
}

#[test]
fn a_forced_write_takes_a_flush_where_the_device_cannot_force() {
    for (cache, commands) in [
        (Cache::WriteBack { forces: false }, 2),
        (Cache::WriteBack { forces: true }, 1),
        (Cache::WriteThrough, 1),
    ] {
        let mut rig = Rig::new(Limits { cache, ..limits() }, 8);
        rig.write(0, 0, 7, Durability::Forced);
        rig.run(&mut |_| 0);
        assert!(matches!(rig.outcome(0), Ok(Done::Durable(_))));
        assert_eq!(rig.disk.commands(), commands, "{cache:?}");
        rig.disk.lose_power(&mut |_| 0);
        assert_eq!(rig.disk.bytes(range(0, 1))[0], 7);
    }
}

#[test]
fn a_disk_without_a_cache_needs_no_flush() {
    let cache = Cache::WriteThrough;
    let mut rig = Rig::new(Limits { cache, ..limits() }, 8);
    rig.write(0, 0, 7, Durability::Volatile);
    rig.run(&mut |_| 0);
    rig.flush(1);
    let flushed = flushed(&mut rig, 1);
    assert!(written(&mut rig, 0).settle(&flushed).is_ok());
    assert_eq!(rig.disk.commands(), 1);
}

#[test]
fn a_forced_write_whose_flush_fails_is_an_error() {
    let mut rig = Rig::new(limits(), 8);
    rig.write(0, 0, 7, Durability::Forced);
    rig.disk.end_next_with(Verdict::Done);
    rig.disk.end_next_with(Verdict::Failed);
    rig.run(&mut |_| 0);
    assert_eq!(rig.outcome(0), Err(Failure::Medium));
}

#[test]
fn whatever_the_power_takes_what_was_proven_durable_is_there() {
    for_each_seed(300, |_, mut random| {
        let mut rig = Rig::new(limits(), 8);
        // By block: what was last said to survive, and all that was written since.
        let mut durable: BTreeMap<u64, u8> = BTreeMap::new();
        let mut since: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        let mut open: Vec<(u64, u8, Written)> = Vec::new();
        for number in 0..60 {
            let (block, fill) = (random.below(6u64), 1 + number as u8);
            match random.below(4u32) {
                0 => {
                    rig.flush(number);
                    rig.run(&mut |_| 0);
                    let flushed = flushed(&mut rig, number);
                    for (block, fill, written) in open.drain(..) {
                        assert!(written.settle(&flushed).is_ok());
                        durable.insert(block, fill);
                        since.remove(&block);
                    }
                }
                1 => {
                    rig.write(number, block * 8, fill, Durability::Forced);
                    rig.run(&mut |_| 0);
                    assert!(matches!(rig.outcome(number), Ok(Done::Durable(_))));
                    durable.insert(block, fill);
                    since.remove(&block);
                    open.retain(|(other, ..)| *other != block);
                }
                2 => {
                    let write = Operation::Write(Durability::Volatile);
                    let request = rig.request(number, write, range(block * 8, 8), &[4096], fill);
                    assert!(rig.submit(request));
                    since.entry(block).or_default().push(fill);
                    if random.once_in(3u32) {
                        break;
                    }
                    rig.run(&mut |_| 0);
                    open.push((block, fill, written(&mut rig, number)));
                }
                _ => {}
            }
        }
        rig.disk.lose_power(&mut |count| random.below(count));
        for block in 0..6 {
            let found = rig.disk.bytes(range(block * 8, 8));
            for sector in found.chunks(512) {
                let said = durable.get(&block).copied().unwrap_or(0);
                let later = since
                    .get(&block)
                    .is_some_and(|all| all.contains(&sector[0]));
                assert!(sector[0] == said || later, "block {block}");
                assert!(
                    sector.iter().all(|byte| *byte == sector[0]),
                    "a torn sector"
                );
            }
        }
    });
}
