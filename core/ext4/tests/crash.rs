//! A disk that loses power at any write comes back consistent, and with what was committed.

mod support;

use std::collections::BTreeMap;

use ext4::{Access, Allocate, Expect, ROOT_INODE, Rename, Volume};
use models::{Random, for_each_seed};
use support::{NOW, after_loss, contents, folder, image, names, regular};

/// What has to be there: files with their bytes, as of the last commit.
type Model = BTreeMap<String, Vec<u8>>;

fn step(volume: &mut Volume, dir: u32, model: &mut Model, random: &mut Random) -> ext4::Result<()> {
    let name = format!("file-{}", random.below(40));
    let known = model.contains_key(&name);
    match random.below(9) {
        0..=2 if !known => {
            let file = volume.create(dir, name.as_bytes(), &regular(), NOW)?;
            let data = vec![random.bits() as u8; random.below(30_000usize)];
            volume.write(file, 0, &data, NOW)?;
            model.insert(name, data);
        }
        3 if known => {
            let gone = volume.unlink(dir, name.as_bytes(), NOW)?;
            model.remove(&name);
            volume.evict(gone.inode, NOW)?;
        }
        4 if known => {
            let file = volume.lookup(dir, name.as_bytes())?;
            let size = random.below(40_000usize);
            volume.truncate(file, size as u64, NOW)?;
            if let Some(data) = model.get_mut(&name) {
                data.resize(size, 0);
            }
        }
        5 if known => {
            let to = format!("file-{}", random.below(40));
            let lost = volume.rename(
                (dir, name.as_bytes()),
                (dir, to.as_bytes()),
                Rename::Replace,
                NOW,
            )?;
            let data = model.remove(&name).unwrap();
            model.insert(to, data);
            if let Some(lost) = lost {
                volume.evict(lost.inode, NOW)?;
            }
        }
        6 if known => {
            let file = volume.lookup(dir, name.as_bytes())?;
            let (at, len) = (random.below(50_000usize), 1 + random.below(9_000usize));
            volume.fallocate(file, at as u64..(at + len) as u64, Allocate::PunchHole, NOW)?;
            let data = model.get_mut(&name).unwrap();
            let end = (at + len).min(data.len());
            data[at.min(end)..end].fill(0);
        }
        7 if known => {
            let file = volume.lookup(dir, name.as_bytes())?;
            let value = vec![1; random.below(600usize)];
            volume.set_attribute(file, b"user.some", &value, Expect::Any, NOW)?;
        }
        _ => {
            let sub = format!("sub-{}", random.below(8));
            match volume.create(dir, sub.as_bytes(), &folder(), NOW) {
                Ok(_) => {}
                Err(_) => {
                    let gone = volume.rmdir(dir, sub.as_bytes(), NOW)?;
                    volume.evict(gone.inode, NOW)?;
                }
            }
        }
    }
    Ok(())
}

fn assert_holds(volume: &mut Volume, model: &Model) {
    let dir = volume.lookup(ROOT_INODE, b"dir").expect("the directory");
    for (name, data) in model {
        let file = volume.lookup(dir, name.as_bytes()).expect(name);
        assert!(contents(volume, file) == *data, "{name}");
    }
    let files = names(volume, dir)
        .iter()
        .filter(|name| name.starts_with(b"file"))
        .count();
    assert_eq!(files, model.len());
}

#[test]
fn random_operations_agree_with_a_model_and_pass_e2fsck() {
    for arguments in [
        &["-b", "1024"][..],
        &["-b", "4096"],
        &["-b", "1024", "-O", "^has_journal"],
    ] {
        let sound = image(arguments, "16M");
        for_each_seed(12, |_, mut random| {
            let disk = sound.copy();
            let mut volume = disk.open();
            let dir = volume.create(ROOT_INODE, b"dir", &folder(), NOW).unwrap();
            let mut model = Model::new();
            for _ in 0..600 {
                step(&mut volume, dir, &mut model, &mut random).expect("a step");
                if random.once_in(40) {
                    volume.commit().unwrap();
                }
            }
            assert_holds(&mut volume, &model);
            volume.unmount().unwrap();
            disk.assert_clean("random operations");
            assert_holds(&mut disk.open(), &model);
        });
    }
}

#[test]
fn what_was_committed_survives_a_loss_of_power_at_any_write() {
    for arguments in [["-b", "1024"], ["-b", "4096"]] {
        let sound = image(&arguments, "16M");
        for_each_seed(10, |_, mut random| {
            let disk = sound.copy();
            let mut volume = disk.open();
            let dir = volume.create(ROOT_INODE, b"dir", &folder(), NOW).unwrap();
            volume.commit().unwrap();
            let before = disk.bytes();
            disk.0.lock().unwrap().history = Some(Vec::new());
            // The model after each commit, and how many events there were then.
            let mut model = Model::new();
            let mut commits = vec![(0, model.clone())];
            for _ in 0..150 {
                step(&mut volume, dir, &mut model, &mut random).expect("a step");
                if random.once_in(12) {
                    match random.once_in(4) {
                        true => volume.checkpoint().unwrap(),
                        false => volume.commit().unwrap(),
                    }
                    let events = disk.0.lock().unwrap().history.as_ref().unwrap().len();
                    commits.push((events, model.clone()));
                }
            }
            let history = disk.0.lock().unwrap().history.take().unwrap();
            for _ in 0..6 {
                let cut = random.below(history.len());
                let after = after_loss(&before, &history, cut, &mut random);
                let (mut volume, _) = after
                    .mount(Access::ReadWrite)
                    .expect("a mount after the loss");
                let committed = commits.iter().any(|(events, _)| *events == cut);
                if committed {
                    let (_, model) = commits.iter().rfind(|(events, _)| *events <= cut).unwrap();
                    assert_holds(&mut volume, model);
                }
                volume.unmount().unwrap();
                after.assert_clean("a loss of power");
            }
            for (events, model) in commits.iter().step_by(3) {
                let after = after_loss(&before, &history, *events, &mut random);
                let (mut volume, _) = after
                    .mount(Access::ReadWrite)
                    .expect("a mount after the loss");
                assert_holds(&mut volume, model);
                volume.unmount().unwrap();
                after.assert_clean("a loss of power after a commit");
            }
        });
    }
}

#[test]
fn a_disk_that_fails_at_any_write_leaves_a_sound_image() {
    let sound = image(&["-b", "1024"], "16M");
    for_each_seed(40, |seed, mut random| {
        let disk = sound.copy();
        let mut volume = disk.open();
        let dir = volume.create(ROOT_INODE, b"dir", &folder(), NOW).unwrap();
        volume.commit().unwrap();
        disk.0.lock().unwrap().writes_left = Some(seed * 3 % 200);
        let mut model = Model::new();
        for _ in 0..200 {
            let _ = step(&mut volume, dir, &mut model, &mut random);
            if random.once_in(20) {
                let _ = volume.commit();
            }
        }
        let _ = volume.checkpoint();
        drop(volume);
        disk.0.lock().unwrap().writes_left = None;
        disk.open().unmount().unwrap();
        disk.assert_clean("a disk that failed");
    });
}
