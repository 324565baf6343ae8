//! Data that a cache of pages writes outside of the volume.

mod support;

use std::ops::Range;

use ext4::{Allocate, Device, Durability, Error, Grown, Mapping, ROOT_INODE, Run, Volume};
use models::{Random, for_each_seed};
use support::{Disk, NOW, after_loss, contents, image, regular};

/// So many are written while they get their place.
const SHORT_BLOCKS: u32 = 3;

/// Writes whole blocks as a cache does: `byte` everywhere.
fn bring(disk: &Disk, volume: &mut Volume, file: u32, blocks: Range<u32>, byte: u8) {
    let each = volume.block_bytes();
    let mut at = blocks.start;
    while at < blocks.end {
        let grown = |end: u32| Grown {
            size: u64::from(end) * each as u64,
            modified: Some(NOW),
        };
        let mut write = |block: u64, part: Range<u32>| {
            let bytes = vec![byte; part.len() * each];
            (disk.clone()).write(block * each as u64, &bytes, Durability::Volatile)
        };
        let rest = at..blocks.end;
        let new = volume.write_new(file, rest, SHORT_BLOCKS, grown(blocks.end), &mut write);
        if let Some(len) = new.unwrap() {
            at += len;
            continue;
        }
        let run: Run = volume.place(file, at..blocks.end).unwrap();
        let (Mapping::Written(block) | Mapping::Unwritten(block)) = run.place else {
            panic!("a place is no hole");
        };
        write(block, 0..run.len).unwrap();
        at += run.len;
        volume.settle(file, &run, grown(at)).unwrap();
    }
}

#[test]
fn data_written_outside_are_the_files_and_e2fsck_is_content() {
    for arguments in [["-b", "1024"], ["-b", "4096"]] {
        let sound = image(&arguments, "16M");
        for_each_seed(8, |_, mut random| {
            let disk = sound.copy();
            let mut volume = disk.open();
            let each = volume.block_bytes();
            let file = volume.create(ROOT_INODE, b"file", &regular(), NOW).unwrap();
            let mut model = Vec::new();
            for round in 1..60u8 {
                let first = random.below(400u32);
                let most = if random.once_in(3) { 100u32 } else { 3 };
                let end = first + 1 + random.below(most);
                if random.once_in(5) {
                    let range = u64::from(first) * each as u64..u64::from(end) * each as u64;
                    volume
                        .fallocate(file, range, Allocate::KeepSize, NOW)
                        .unwrap();
                }
                bring(&disk, &mut volume, file, first..end, round);
                let bytes = first as usize * each..end as usize * each;
                model.resize(model.len().max(bytes.end), 0);
                model[bytes].fill(round);
                if random.once_in(10) {
                    volume.commit().unwrap();
                }
            }
            assert!(contents(&mut volume, file) == model);
            volume.unmount().unwrap();
            disk.assert_clean("data from outside");
        });
    }
}

/// A sector that belonged to nobody before the test.
const STALE: u8 = 0xee;

fn with_stale_free_blocks(disk: &Disk) {
    let mut volume = disk.open();
    let file = volume
        .create(ROOT_INODE, b"stale", &regular(), NOW)
        .unwrap();
    volume.write(file, 0, &vec![STALE; 6 << 20], NOW).unwrap();
    let gone = volume.unlink(ROOT_INODE, b"stale", NOW).unwrap();
    volume.evict(gone.inode, NOW).unwrap();
    volume.unmount().unwrap();
}

#[test]
fn no_loss_of_power_shows_what_a_block_held_before() {
    let sound = image(&["-b", "1024"], "16M");
    with_stale_free_blocks(&sound);
    for_each_seed(30, |_, mut random: Random| {
        let disk = sound.copy();
        let mut volume = disk.open();
        let file = volume.create(ROOT_INODE, b"file", &regular(), NOW).unwrap();
        volume.commit().unwrap();
        let before = disk.bytes();
        disk.0.lock().unwrap().history = Some(Vec::new());
        let mut acknowledged = vec![(0, 0)];
        let mut end = 0;
        for round in 1..20u8 {
            let most = if random.once_in(2) { 40u32 } else { 3 };
            let len = 1 + random.below(most);
            bring(&disk, &mut volume, file, end..end + len, round);
            end += len;
            if random.once_in(3) {
                volume.sync_file(file, ext4::Sync::Data).unwrap();
                let events = disk.0.lock().unwrap().history.as_ref().unwrap().len();
                acknowledged.push((events, u64::from(end) * 1024));
            }
        }
        let history = disk.0.lock().unwrap().history.take().unwrap();
        for _ in 0..8 {
            let cut = random.below(history.len() + 1);
            let after = after_loss(&before, &history, cut, &mut random);
            let mut volume = after.open();
            let file = volume.lookup(ROOT_INODE, b"file").unwrap();
            let bytes = contents(&mut volume, file);
            let known = acknowledged.iter().rfind(|(events, _)| *events <= cut);
            assert!(
                bytes.len() as u64 >= known.unwrap().1,
                "what was synchronized is there"
            );
            assert!(!bytes.contains(&STALE), "nothing of others is shown");
            assert!(!bytes.contains(&0), "nothing is shown that is not there");
            volume.unmount().unwrap();
            after.assert_clean("a loss of power");
        }
    });
}

#[test]
fn a_block_that_has_its_place_is_written_where_the_next_finds_none() {
    let disk = image(&["-b", "1024"], "16M");
    let mut volume = disk.open();
    let file = volume.create(ROOT_INODE, b"file", &regular(), NOW).unwrap();
    bring(&disk, &mut volume, file, 0..1, 1);
    let rest = volume.create(ROOT_INODE, b"rest", &regular(), NOW).unwrap();
    let mut at = 0;
    while let Ok(count) = volume.write(rest, at, &[7; 1024], NOW) {
        at += count as u64;
    }
    let grown = Grown {
        size: 2048,
        modified: Some(NOW),
    };
    let mut write = |_: u64, _: Range<u32>| panic!("nothing has a place for both");
    let new = volume.write_new(file, 0..2, SHORT_BLOCKS, grown, &mut write);
    assert_eq!(new, Ok(None));
    let run = volume.place(file, 0..2).unwrap();
    assert!(matches!(
        run,
        Run {
            place: Mapping::Written(_),
            len: 1,
            ..
        }
    ));
    assert_eq!(volume.place(file, 1..2).unwrap_err(), Error::NoSpace);
}

#[test]
fn a_block_that_has_its_place_is_settled_where_only_the_tree_finds_none() {
    let disk = image(&["-b", "1024"], "16M");
    let mut volume = disk.open();
    let file = volume.create(ROOT_INODE, b"file", &regular(), NOW).unwrap();
    // As many extents as the inode holds.
    for at in [0, 2, 4, 6] {
        bring(&disk, &mut volume, file, at..at + 1, 1);
    }
    let rest = volume.create(ROOT_INODE, b"rest", &regular(), NOW).unwrap();
    let mut at = 0;
    while let Ok(count) = volume.write(rest, at, &[7; 1024], NOW) {
        at += count as u64;
    }
    volume.truncate(rest, at - 1024, NOW).unwrap();
    volume.commit().unwrap();
    let grown = Grown {
        size: 8192,
        modified: Some(NOW),
    };
    let mut written = 0;
    let mut write = |_: u64, part: Range<u32>| {
        written += part.len();
        Ok(())
    };
    let new = volume.write_new(file, 6..8, SHORT_BLOCKS, grown, &mut write);
    assert_eq!(new, Ok(None));
    assert_eq!(written, 2, "there is one more block");
    let run = volume.place(file, 6..8).unwrap();
    assert_eq!(run.len, 1);
    assert!(matches!(run.place, Mapping::Written(_)));
}

#[test]
fn what_is_promised_nobody_else_gets() {
    let disk = image(&["-b", "1024"], "16M");
    let mut volume = disk.open();
    let promises = volume.promises();
    let file = volume.create(ROOT_INODE, b"file", &regular(), NOW).unwrap();
    let other = volume
        .create(ROOT_INODE, b"other", &regular(), NOW)
        .unwrap();
    let mut promised = 0;
    while promises.promise(100) {
        promised += 100u32;
    }
    assert!(promised > 10_000, "{promised}");
    let data = vec![7; 16 << 20];
    let written = volume.write(other, 0, &data, NOW).unwrap_or(0);
    assert!(written < 1 << 20, "only what is over");
    assert_eq!(
        volume.write(other, 1 << 30, &data, NOW),
        Err(Error::NoSpace)
    );
    bring(&disk, &mut volume, file, 0..promised, 5);
    promises.release(u64::from(promised));
    assert!(contents(&mut volume, file) == vec![5; promised as usize * 1024]);
    volume.unmount().unwrap();
    disk.assert_clean("a disk that is full of what was promised");
}
