//! What is written is there, survives a mount, and passes e2fsck.

mod support;

use ext4::{
    Allocate, Change, Error, Expect, Mapping, ROOT_INODE, Rename, Seek, Sync, Time, Unlinked,
};
use support::{NOW, at, contents, folder, image, link_to, names, regular};

/// Feature sets that have to be written.
const IMAGES: [&[&str]; 7] = [
    &["-b", "4096"],
    &["-b", "4096", "-O", "orphan_file,metadata_csum_seed"],
    &["-b", "1024"],
    &["-b", "2048", "-g", "1024"],
    &["-b", "4096", "-O", "^64bit,^metadata_csum,uninit_bg"],
    &["-b", "4096", "-O", "^has_journal,metadata_csum_seed"],
    &["-b", "1024", "-O", "^flex_bg,^dir_index", "-I", "128"],
];

fn pattern(seed: usize, len: usize) -> Vec<u8> {
    (0..len)
        .map(|index| (index / 3 + seed * 7 + index / 1000) as u8)
        .collect()
}

#[test]
fn a_mount_and_unmount_leaves_nothing_to_be_said() {
    for arguments in IMAGES {
        let disk = image(arguments, "48M");
        disk.open().unmount().unwrap();
        disk.assert_clean("an empty mount");
    }
}

#[test]
fn files_are_made_written_and_read_again() {
    for arguments in IMAGES {
        let disk = image(arguments, "48M");
        let mut volume = disk.open();
        let dir = volume.create(ROOT_INODE, b"dir", &folder(), NOW).unwrap();
        for index in 0..50 {
            let name = format!("file-{index}");
            let file = volume
                .create(dir, name.as_bytes(), &regular(), NOW)
                .unwrap();
            let data = pattern(index, index * 1777);
            assert_eq!(volume.write(file, 0, &data, NOW), Ok(data.len()));
        }
        let text = "y".repeat(100);
        volume
            .create(dir, b"short", &link_to(b"file-3"), NOW)
            .unwrap();
        volume
            .create(dir, b"long", &link_to(text.as_bytes()), NOW)
            .unwrap();
        volume.unmount().unwrap();
        disk.assert_clean(&format!("files on {arguments:?}"));
        let mut volume = disk.open();
        for index in 0..50 {
            let file = at(&mut volume, &format!("dir/file-{index}"));
            assert!(contents(&mut volume, file) == pattern(index, index * 1777));
        }
        let long = at(&mut volume, "dir/long");
        assert_eq!(volume.read_link(long).unwrap(), text.as_bytes());
        let made = volume.inode(long).unwrap();
        assert_eq!(made.links, 1);
    }
}

#[test]
fn times_and_owners_are_kept() {
    let disk = image(&[], "16M");
    let mut volume = disk.open();
    let file = volume.create(ROOT_INODE, b"file", &regular(), NOW).unwrap();
    let long_ago = Time {
        seconds: -86_400,
        nanos: 5,
    };
    let far_off = Time {
        seconds: 5_000_000_000,
        nanos: 999_999_999,
    };
    let change = Change {
        mode: Some(0o6711),
        uid: Some(0x12_3456),
        gid: Some(0xfe_dcba),
        accessed: Some(long_ago),
        modified: Some(far_off),
    };
    volume.change(file, &change, NOW).unwrap();
    volume.unmount().unwrap();
    disk.assert_clean("a change of owner");
    let inode = disk.open().inode(file).unwrap();
    assert_eq!(
        (inode.mode, inode.uid, inode.gid),
        (0o106711, 0x12_3456, 0xfe_dcba)
    );
    assert_eq!((inode.accessed, inode.modified), (long_ago, far_off));
    assert_eq!((inode.changed, inode.created), (NOW, NOW));
}

#[test]
fn a_directory_of_many_names_is_indexed_and_emptied() {
    for arguments in IMAGES {
        let disk = image(&[arguments, &["-N", "8192"]].concat(), "64M");
        let mut volume = disk.open();
        let dir = volume.create(ROOT_INODE, b"dir", &folder(), NOW).unwrap();
        for index in 0..4000 {
            let name = format!("a-name-of-some-length-{index}");
            volume
                .create(dir, name.as_bytes(), &regular(), NOW)
                .unwrap();
        }
        assert_eq!(names(&mut volume, dir).len(), 4000);
        volume.unmount().unwrap();
        disk.assert_clean(&format!("4000 names on {arguments:?}"));
        let mut volume = disk.open();
        let dir = at(&mut volume, "dir");
        for index in 0..4000 {
            let name = format!("a-name-of-some-length-{index}");
            let Unlinked { inode, links } = volume.unlink(dir, name.as_bytes(), NOW).unwrap();
            assert_eq!(links, 0);
            volume.evict(inode, NOW).unwrap();
        }
        assert!(names(&mut volume, dir).is_empty());
        let gone = volume.rmdir(ROOT_INODE, b"dir", NOW).unwrap();
        volume.evict(gone.inode, NOW).unwrap();
        volume.unmount().unwrap();
        disk.assert_clean(&format!("4000 names removed on {arguments:?}"));
    }
}

#[test]
fn a_file_of_many_extents_grows_shrinks_and_goes() {
    for arguments in IMAGES {
        let disk = image(arguments, "64M");
        let mut volume = disk.open();
        let block = volume.block_bytes();
        let free = volume.usage().free_blocks;
        let file = volume.create(ROOT_INODE, b"file", &regular(), NOW).unwrap();
        for index in 0..3000u64 {
            // Every other block, from behind: nothing can be joined.
            let at = (3000 - index) * 2 * block as u64;
            volume
                .write(file, at, &pattern(index as usize, block), NOW)
                .unwrap();
        }
        volume.checkpoint().unwrap();
        disk.copy_clean(&format!("3000 extents on {arguments:?}"));
        for index in 0..3000u64 {
            let mut bytes = vec![0; block];
            volume
                .read(file, (3000 - index) * 2 * block as u64, &mut bytes)
                .unwrap();
            assert!(bytes == pattern(index as usize, block));
        }
        volume
            .truncate(file, 2000 * block as u64 + 17, NOW)
            .unwrap();
        volume.checkpoint().unwrap();
        disk.copy_clean(&format!("a truncate on {arguments:?}"));
        let gone = volume.unlink(ROOT_INODE, b"file", NOW).unwrap();
        volume.evict(gone.inode, NOW).unwrap();
        assert_eq!(volume.usage().free_blocks, free);
        volume.unmount().unwrap();
        disk.assert_clean(&format!("the file's end on {arguments:?}"));
    }
}

#[test]
fn holes_are_punched_and_reserved_blocks_read_as_zeroes() {
    for arguments in IMAGES {
        let disk = image(arguments, "48M");
        let mut volume = disk.open();
        let block = volume.block_bytes() as u64;
        let file = volume.create(ROOT_INODE, b"file", &regular(), NOW).unwrap();
        let data = pattern(1, 40 * block as usize);
        volume.write(file, 0, &data, NOW).unwrap();
        volume
            .fallocate(file, 100 * block..500 * block, Allocate::KeepSize, NOW)
            .unwrap();
        volume
            .fallocate(
                file,
                10 * block + 5..20 * block + 9,
                Allocate::PunchHole,
                NOW,
            )
            .unwrap();
        volume
            .fallocate(
                file,
                30 * block + 7..30 * block + 90,
                Allocate::ZeroRange,
                NOW,
            )
            .unwrap();
        volume
            .fallocate(file, 40 * block..60 * block + 1, Allocate::Extend, NOW)
            .unwrap();
        let mut expected = data.clone();
        expected.resize(60 * block as usize + 1, 0);
        expected[10 * block as usize + 5..20 * block as usize + 9].fill(0);
        expected[30 * block as usize + 7..30 * block as usize + 90].fill(0);
        assert!(contents(&mut volume, file) == expected, "{arguments:?}");
        assert_eq!(volume.map(file, 15).unwrap().place, Mapping::Hole);
        assert!(matches!(
            volume.map(file, 45).unwrap().place,
            Mapping::Unwritten(_)
        ));
        assert_eq!(volume.seek(file, 0, Seek::Hole), Ok(11 * block));
        assert_eq!(volume.seek(file, 11 * block, Seek::Data), Ok(20 * block));
        for index in [50, 45, 47, 46, 41, 40, 59] {
            let new = pattern(index, block as usize / 2);
            let at = index as u64 * block + 100;
            volume.write(file, at, &new, NOW).unwrap();
            expected[at as usize..at as usize + new.len()].copy_from_slice(&new);
        }
        assert!(contents(&mut volume, file) == expected, "{arguments:?}");
        volume.unmount().unwrap();
        disk.assert_clean(&format!("fallocate on {arguments:?}"));
        let mut volume = disk.open();
        assert!(contents(&mut volume, file) == expected, "{arguments:?}");
    }
}

#[test]
fn names_move_over_others_and_change_places() {
    let disk = image(&[], "32M");
    let mut volume = disk.open();
    let one = volume.create(ROOT_INODE, b"one", &folder(), NOW).unwrap();
    let two = volume.create(ROOT_INODE, b"two", &folder(), NOW).unwrap();
    let inner = volume.create(one, b"inner", &folder(), NOW).unwrap();
    let file = volume.create(one, b"file", &regular(), NOW).unwrap();
    let other = volume.create(two, b"other", &regular(), NOW).unwrap();
    let into_itself = volume.rename((ROOT_INODE, b"one"), (inner, b"x"), Rename::Replace, NOW);
    assert_eq!(into_itself, Err(Error::Invalid));
    let lost = volume
        .rename((one, b"file"), (two, b"other"), Rename::Replace, NOW)
        .unwrap();
    assert_eq!(
        lost,
        Some(Unlinked {
            inode: other,
            links: 0
        })
    );
    volume.evict(other, NOW).unwrap();
    volume
        .rename((one, b"inner"), (two, b"moved"), Rename::NoReplace, NOW)
        .unwrap();
    assert_eq!(volume.lookup(inner, b".."), Ok(two));
    volume
        .rename((two, b"moved"), (ROOT_INODE, b"one"), Rename::Exchange, NOW)
        .unwrap();
    assert_eq!(volume.lookup(two, b"moved"), Ok(one));
    assert_eq!(volume.lookup(one, b".."), Ok(two));
    assert_eq!(volume.lookup(ROOT_INODE, b"one"), Ok(inner));
    let exists = volume.rename((two, b"moved"), (two, b"other"), Rename::NoReplace, NOW);
    assert_eq!(exists, Err(Error::Exists));
    let over_file = volume.rename((two, b"moved"), (two, b"other"), Rename::Replace, NOW);
    assert_eq!(over_file, Err(Error::NotDirectory));
    volume.link(one, b"again", file, NOW).unwrap();
    assert_eq!(volume.inode(file).unwrap().links, 2);
    assert_eq!(volume.rmdir(two, b"moved", NOW), Err(Error::NotEmpty));
    assert_eq!(volume.unlink(two, b"moved", NOW), Err(Error::IsDirectory));
    volume.unmount().unwrap();
    disk.assert_clean("renames");
}

#[test]
fn attributes_are_set_replaced_and_removed() {
    for arguments in IMAGES {
        let disk = image(arguments, "16M");
        let mut volume = disk.open();
        let file = volume.create(ROOT_INODE, b"file", &regular(), NOW).unwrap();
        let long = vec![b'v'; 700];
        let set = |volume: &mut ext4::Volume, name: &str, value: &[u8], expect| {
            volume.set_attribute(file, name.as_bytes(), value, expect, NOW)
        };
        set(&mut volume, "user.a", b"1", Expect::Absent).unwrap();
        set(&mut volume, "trusted.long", &long, Expect::Any).unwrap();
        set(&mut volume, "security.capability", b"", Expect::Any).unwrap();
        set(&mut volume, "user.a", b"twenty-two", Expect::Present).unwrap();
        assert_eq!(
            set(&mut volume, "user.a", b"", Expect::Absent),
            Err(Error::Exists)
        );
        assert_eq!(
            set(&mut volume, "user.b", b"", Expect::Present),
            Err(Error::NotFound)
        );
        assert_eq!(
            set(&mut volume, "user.b", &[0; 5000], Expect::Any),
            Err(Error::NoSpace)
        );
        assert_eq!(
            set(&mut volume, "nonsense", b"", Expect::Any),
            Err(Error::Unsupported)
        );
        volume.checkpoint().unwrap();
        disk.copy_clean(&format!("attributes on {arguments:?}"));
        assert_eq!(volume.get_attribute(file, b"trusted.long").unwrap(), long);
        assert_eq!(
            volume.get_attribute(file, b"user.a").unwrap(),
            b"twenty-two"
        );
        assert!(
            disk.copy()
                .debugfs("ea_get file trusted.long")
                .contains(&"v".repeat(700))
        );
        volume.remove_attribute(file, b"trusted.long", NOW).unwrap();
        volume.remove_attribute(file, b"user.a", NOW).unwrap();
        volume.unmount().unwrap();
        disk.assert_clean(&format!("attributes removed on {arguments:?}"));
    }
}

#[test]
fn a_full_disk_says_so_and_nothing_else() {
    for arguments in IMAGES {
        let disk = image(arguments, "12M");
        let mut volume = disk.open();
        let dir = volume.create(ROOT_INODE, b"dir", &folder(), NOW).unwrap();
        let mut count = 0;
        let error = loop {
            let name = format!("file-{count}");
            let made = volume.create(dir, name.as_bytes(), &regular(), NOW);
            let wrote = made.and_then(|file| volume.write(file, 0, &pattern(count, 50_000), NOW));
            match wrote {
                Ok(_) => count += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(error, Error::NoSpace);
        assert_eq!(volume.failure(), None);
        volume.checkpoint().unwrap();
        disk.copy_clean(&format!("a full disk, {arguments:?}"));
        for index in 0..count {
            let gone = volume
                .unlink(dir, format!("file-{index}").as_bytes(), NOW)
                .unwrap();
            volume.evict(gone.inode, NOW).unwrap();
        }
        let file = volume.create(dir, b"again", &regular(), NOW).unwrap();
        assert_eq!(
            volume.write(file, 0, &pattern(1, 1_000_000), NOW),
            Ok(1_000_000)
        );
        volume.sync_file(file, Sync::All).unwrap();
        volume.unmount().unwrap();
        disk.assert_clean(&format!("room again, {arguments:?}"));
    }
}

#[test]
fn a_file_without_a_name_gets_one_or_goes() {
    let disk = image(&[], "16M");
    let mut volume = disk.open();
    let kept = volume.create_nameless(ROOT_INODE, &regular(), NOW).unwrap();
    let lost = volume.create_nameless(ROOT_INODE, &regular(), NOW).unwrap();
    volume
        .write(lost, 0, b"nobody will read this", NOW)
        .unwrap();
    volume.write(kept, 0, b"somebody will", NOW).unwrap();
    volume.link(ROOT_INODE, b"kept", kept, NOW).unwrap();
    assert_eq!(volume.evict(kept, NOW), Err(Error::Invalid));
    let gone = volume.create_nameless(ROOT_INODE, &regular(), NOW).unwrap();
    volume.evict(gone, NOW).unwrap();
    assert_eq!(volume.evict(gone, NOW), Err(Error::NotFound));
    volume.commit().unwrap();
    // The machine stops here.
    let (mut volume, found) = disk.mount(ext4::Access::ReadWrite).unwrap();
    assert_eq!(found.orphans, 1);
    assert_eq!(contents(&mut volume, kept), b"somebody will");
    volume.unmount().unwrap();
    disk.assert_clean("nameless files");
}

#[test]
fn an_indexed_directory_moves_to_another_parent() {
    let disk = image(&["-b", "1024"], "32M");
    let mut volume = disk.open();
    let parent = volume
        .create(ROOT_INODE, b"parent", &folder(), NOW)
        .unwrap();
    let dir = volume.create(ROOT_INODE, b"dir", &folder(), NOW).unwrap();
    for index in 0..500 {
        let name = format!("name-{index}");
        volume.create(dir, name.as_bytes(), &folder(), NOW).unwrap();
    }
    volume
        .rename(
            (ROOT_INODE, b"dir"),
            (parent, b"moved"),
            Rename::Replace,
            NOW,
        )
        .unwrap();
    assert_eq!(volume.lookup(dir, b".."), Ok(parent));
    assert_eq!(volume.inode(dir).unwrap().links, 502);
    for index in 0..500 {
        let from = format!("name-{index}");
        let to = format!("another-name-{index}");
        let to_dir = if index % 2 == 0 { dir } else { parent };
        volume
            .rename(
                (dir, from.as_bytes()),
                (to_dir, to.as_bytes()),
                Rename::NoReplace,
                NOW,
            )
            .unwrap();
    }
    assert_eq!(names(&mut volume, dir).len(), 250);
    assert_eq!(names(&mut volume, parent).len(), 251);
    volume.unmount().unwrap();
    disk.assert_clean("moves of directories");
}
