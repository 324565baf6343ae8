//! What mke2fs wrote is read as it was meant.

mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use ext4::{Access, Error, MountError, ROOT_INODE, Seek};
use support::{at, contents, image, image_of, names, temporary};

/// A folder with files of many kinds.
fn tree() -> PathBuf {
    let root = temporary("tree");
    fs::create_dir_all(root.join("deep/er/and/deeper")).unwrap();
    fs::create_dir(root.join("many")).unwrap();
    fs::write(root.join("empty"), b"").unwrap();
    fs::write(root.join("small"), b"hello").unwrap();
    fs::write(root.join("large"), pattern(3_000_001)).unwrap();
    fs::write(root.join("deep/er/and/deeper/file"), b"found").unwrap();
    symlink("small", root.join("short-link")).unwrap();
    symlink("x".repeat(200), root.join("long-link")).unwrap();
    for index in 0..1500 {
        fs::write(
            root.join(format!("many/name-of-file-{index}")),
            index.to_string(),
        )
        .unwrap();
    }
    let sparse = fs::File::create(root.join("sparse")).unwrap();
    std::os::unix::fs::FileExt::write_at(&sparse, b"end", 5_000_000).unwrap();
    fs::set_permissions(root.join("small"), fs::Permissions::from_mode(0o4755)).unwrap();
    root
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len)
        .map(|index| (index / 7 + index / 4096) as u8)
        .collect()
}

/// Feature sets that have to be read.
const IMAGES: [&[&str]; 6] = [
    &["-b", "4096"],
    &["-b", "1024"],
    &["-b", "2048"],
    &["-b", "4096", "-O", "^64bit,^metadata_csum,uninit_bg"],
    &["-b", "4096", "-O", "^has_journal,metadata_csum_seed"],
    &["-b", "1024", "-O", "^flex_bg,^dir_index", "-I", "128"],
];

#[test]
fn a_tree_of_files_is_read_from_images_of_many_kinds() {
    let tree = tree();
    for arguments in IMAGES {
        let disk = image_of(Some(&tree), arguments, "48M");
        let (mut volume, _) = disk
            .mount(Access::Read)
            .unwrap_or_else(|error| panic!("{arguments:?}: {error:?}"));
        let volume = &mut volume;
        let small = at(volume, "small");
        assert_eq!(contents(volume, small), b"hello");
        assert_eq!(volume.inode(small).unwrap().mode, 0o104755);
        let large = at(volume, "large");
        assert!(
            contents(volume, large) == pattern(3_000_001),
            "{arguments:?}"
        );
        let deep = at(volume, "deep/er/and/deeper/file");
        assert_eq!(contents(volume, deep), b"found");
        let short = at(volume, "short-link");
        assert_eq!(volume.read_link(short).unwrap(), b"small");
        let long = at(volume, "long-link");
        assert_eq!(volume.read_link(long).unwrap(), "x".repeat(200).as_bytes());
        let many = at(volume, "many");
        for index in (0..1500).step_by(13) {
            let file = at(volume, &format!("many/name-of-file-{index}"));
            assert_eq!(contents(volume, file), index.to_string().as_bytes());
        }
        assert_eq!(
            volume.lookup(many, b"name-of-file-1500"),
            Err(Error::NotFound)
        );
        let mut listed = names(volume, many);
        listed.sort();
        listed.dedup();
        assert_eq!(listed.len(), 1500, "{arguments:?}");
        assert_eq!(names(volume, ROOT_INODE).len(), 9);
        let sparse = at(volume, "sparse");
        let data = volume.seek(sparse, 0, Seek::Data).unwrap();
        assert!(data > 4_900_000 && data <= 5_000_000);
        assert_eq!(volume.seek(sparse, 0, Seek::Hole), Ok(0));
        assert_eq!(&contents(volume, sparse)[5_000_000..], b"end");
    }
    fs::remove_dir_all(tree).unwrap();
}

#[test]
fn attributes_are_read_from_the_inode_and_from_its_block() {
    let disk = image(&["-b", "4096"], "16M");
    let long = "v".repeat(2000);
    disk.debugfs("write /etc/hostname file");
    disk.debugfs("ea_set file user.short value");
    disk.debugfs(&format!("ea_set file user.long {long}"));
    let (mut volume, _) = disk.mount(Access::Read).unwrap();
    let file = at(&mut volume, "file");
    assert_eq!(volume.get_attribute(file, b"user.short").unwrap(), b"value");
    assert_eq!(
        volume.get_attribute(file, b"user.long").unwrap(),
        long.as_bytes()
    );
    let mut listed = Vec::new();
    volume
        .list_attributes(file, &mut |name| listed.push(name.to_vec()))
        .unwrap();
    listed.sort();
    assert_eq!(listed, [b"user.long".to_vec(), b"user.short".to_vec()]);
    assert_eq!(
        volume.get_attribute(file, b"user.none"),
        Err(Error::NotFound)
    );
}

#[test]
fn features_that_are_not_provided_are_refused_by_name() {
    for (feature, name) in [
        ("inline_data", "inline_data"),
        ("encrypt", "encrypt"),
        ("casefold", "casefold"),
        ("ea_inode", "ea_inode"),
        ("meta_bg,^resize_inode", "meta_bg"),
        ("mmp", "mmp"),
        ("bigalloc", "bigalloc"),
    ] {
        let disk = image(&["-O", feature], "16M");
        assert_eq!(
            disk.mount(Access::Read).err(),
            Some(MountError::Feature(name))
        );
    }
    for (feature, name) in [
        ("quota", "quota"),
        ("project", "project"),
        ("verity", "verity"),
    ] {
        let disk = image(&["-O", feature], "32M");
        assert_eq!(
            disk.mount(Access::ReadWrite).err(),
            Some(MountError::ReadOnlyFeature(name))
        );
    }
}

#[test]
fn what_is_no_ext4_is_not_mounted() {
    let disk = support::Disk::new(vec![0; 1 << 20]);
    assert_eq!(disk.mount(Access::Read).err(), Some(MountError::NotExt4));
    let disk = support::Disk::new(Vec::new());
    assert_eq!(disk.mount(Access::Read).err(), Some(MountError::NotExt4));
}

#[test]
fn a_disk_that_cannot_be_written_is_not_written() {
    let disk = image(&[], "16M");
    disk.0.lock().unwrap().is_read_only = true;
    let (mut volume, _) = disk.mount(Access::ReadWrite).unwrap();
    assert!(!volume.is_writable());
    let made = volume.create(ROOT_INODE, b"file", &support::regular(), support::NOW);
    assert_eq!(made, Err(Error::ReadOnly));
}
