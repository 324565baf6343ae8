//! Damaged images are refused, or read as far as they can be: never a panic, never an endless loop.

mod support;

use std::fs;

use ext4::{Access, Allocate, Error, Expect, ROOT_INODE, Rename, Volume};
use models::{Random, for_each_seed};
use support::{Disk, NOW, folder, image_of, regular, temporary};

/// Reads of the disk that a run over a damaged image takes at most: an image has far fewer blocks.
const READS_MAX: u64 = 2_000_000;

fn sample(arguments: &[&str]) -> Disk {
    let root = temporary("damage");
    fs::create_dir_all(root.join("dir/sub")).unwrap();
    for index in 0..400 {
        fs::write(
            root.join(format!("dir/name-of-a-file-{index}")),
            "x".repeat(index * 20),
        )
        .unwrap();
    }
    std::os::unix::fs::symlink("y".repeat(150), root.join("link")).unwrap();
    let disk = image_of(Some(&root), arguments, "16M");
    fs::remove_dir_all(root).unwrap();
    let mut volume = disk.open();
    let file = volume
        .create(ROOT_INODE, b"scattered", &regular(), NOW)
        .unwrap();
    for index in 0..600 {
        volume
            .write(file, (600 - index) * 8192, b"data", NOW)
            .unwrap();
    }
    volume
        .set_attribute(file, b"user.long", &[7; 900], Expect::Any, NOW)
        .unwrap();
    volume.unmount().unwrap();
    disk
}

/// Overwrites some bytes of blocks that are in use.
fn damage(disk: &Disk, random: &mut Random) {
    let mut state = disk.0.lock().unwrap();
    let used: Vec<usize> = state
        .bytes
        .chunks(1024)
        .enumerate()
        .filter(|(index, block)| *index >= 1 && block.iter().any(|byte| *byte != 0))
        .map(|(index, _)| index)
        .collect();
    for _ in 0..1 + random.below(40) {
        let block = used[random.below(used.len().min(600))];
        let within = if random.once_in(3) { 64 } else { 1024 };
        let at = block * 1024 + random.below(within);
        state.bytes[at] = match random.below(4) {
            0 => 0,
            1 => 0xff,
            2 => state.bytes[at] ^ 1 << random.below(8),
            _ => random.bits() as u8,
        };
    }
}

/// Whether checksums are looked at; without them damage gets further.
fn forget_checksums(disk: &Disk) {
    let mut state = disk.0.lock().unwrap();
    state.bytes[1024 + 0x65] &= !4;
}

/// Walks the tree and looks at everything.
fn look(volume: &mut Volume, dir: u32, depth: u32) -> Result<(), Error> {
    let mut found = Vec::new();
    volume.list(dir, 0, &mut |listed| {
        found.push((listed.name.to_vec(), listed.inode));
        found.len() < 2000
    })?;
    for (name, number) in found {
        let _ = volume.lookup(dir, &name);
        let Ok(inode) = volume.inode(number) else {
            continue;
        };
        let mut bytes = vec![0; 20_000];
        let _ = volume.read(number, inode.size.saturating_sub(10_000), &mut bytes);
        let _ = volume.read(number, 0, &mut bytes);
        let _ = volume.read_link(number);
        let _ = volume.list_attributes(number, &mut |_| {});
        let _ = volume.seek(number, 0, ext4::Seek::Hole);
        if inode.is_directory() && depth < 4 {
            let _ = look(volume, number, depth + 1);
        }
    }
    Ok(())
}

/// Changes as much as it is let.
fn change(volume: &mut Volume, random: &mut Random) {
    let dir = volume.lookup(ROOT_INODE, b"dir").unwrap_or(ROOT_INODE);
    for index in 0..60 {
        let name = format!("name-of-a-file-{}", random.below(400));
        let new = format!("new-name-{index}");
        let _ = match random.below(6) {
            0 => volume
                .create(dir, new.as_bytes(), &regular(), NOW)
                .map(drop),
            1 => volume.create(dir, new.as_bytes(), &folder(), NOW).map(drop),
            2 => volume
                .unlink(dir, name.as_bytes(), NOW)
                .and_then(|gone| volume.evict(gone.inode, NOW)),
            3 => volume
                .rename(
                    (dir, name.as_bytes()),
                    (ROOT_INODE, new.as_bytes()),
                    Rename::Replace,
                    NOW,
                )
                .map(drop),
            4 => volume.lookup(ROOT_INODE, b"scattered").and_then(|file| {
                let at = random.below(5_000_000u64);
                volume.write(file, at, &[1; 9000], NOW)?;
                volume.fallocate(file, at..at + 100_000, Allocate::PunchHole, NOW)?;
                volume.set_attribute(file, new.as_bytes(), b"v", Expect::Any, NOW)
            }),
            _ => volume.commit(),
        };
    }
    if let Ok(file) = volume.lookup(ROOT_INODE, b"scattered") {
        let _ = volume.truncate(file, 3, NOW);
    }
    let _ = volume.checkpoint();
}

#[test]
fn damaged_images_bring_about_no_panic_and_no_endless_loop() {
    for arguments in [["-b", "1024"], ["-b", "4096"]] {
        let sound = sample(&arguments);
        sound.assert_clean("the sample");
        for_each_seed(150, |seed, mut random| {
            let disk = sound.copy();
            damage(&disk, &mut random);
            if seed % 4 != 0 {
                forget_checksums(&disk);
            }
            if let Ok((mut volume, _)) = disk.mount(Access::ReadWrite) {
                let _ = look(&mut volume, ROOT_INODE, 0);
                change(&mut volume, &mut random);
                let _ = volume.unmount();
            }
            assert!(disk.0.lock().unwrap().reads < READS_MAX);
        });
    }
}

#[test]
fn with_checksums_no_wrong_byte_of_metadata_goes_unnoticed() {
    let sound = sample(&["-b", "1024"]);
    let mut noticed = 0;
    for_each_seed(60, |_, mut random| {
        let disk = sound.copy();
        damage(&disk, &mut random);
        let told = match disk.mount(Access::Read) {
            Ok((mut volume, _)) => look(&mut volume, ROOT_INODE, 0).is_err(),
            Err(_) => true,
        };
        noticed += u32::from(told);
    });
    assert!(noticed > 0);
}
