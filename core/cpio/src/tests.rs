use alloc::vec;
use alloc::vec::Vec;

use crate::{Archive, Entry, Kind, ReadError, Writer};

fn file<'a>(name: &'a [u8], mode: u32, data: &'a [u8]) -> Entry<'a> {
    Entry {
        name,
        mode,
        uid: 1,
        gid: 2,
        links: 1,
        inode: 7,
        mtime_s: 3,
        rdev: (0, 0),
        data,
    }
}

fn archive_of(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut writer = Writer::new();
    for entry in entries {
        writer.append(entry).expect("short enough");
    }
    writer.finish()
}

#[test]
fn what_is_written_is_read_back() {
    let entries = [
        file(b"etc", 0o040_755, b""),
        file(b"etc/hosts", 0o100_644, b"127.0.0.1 localhost\n"),
        file(b"lib", 0o120_777, b"usr/lib"),
        Entry {
            rdev: (1, 3),
            ..file(b"dev/null", 0o020_666, b"")
        },
    ];
    let bytes = archive_of(&entries);
    let read: Result<Vec<_>, _> = Archive::new(&bytes).collect();
    assert_eq!(read.as_deref(), Ok(entries.as_slice()));
    let kinds: Vec<_> = entries.iter().map(Entry::kind).collect();
    assert_eq!(
        kinds,
        [Kind::Directory, Kind::File, Kind::Symlink, Kind::CharDevice]
    );
}

#[test]
fn data_is_aligned_to_four_bytes_whatever_the_name() {
    for name in [&b"a"[..], b"ab", b"abc", b"abcd", b"abcde"] {
        let bytes = archive_of(&[file(name, 0o100_644, b"xyz")]);
        let entry = Archive::new(&bytes).next().expect("one").expect("whole");
        assert_eq!(
            (entry.data.as_ptr() as usize - bytes.as_ptr() as usize) % 4,
            0
        );
        assert_eq!(entry.data, b"xyz");
    }
}

#[test]
fn data_can_be_aligned_to_pages() {
    let mut writer = Writer::new();
    for name in [&b"a"[..], b"some/longer/name"] {
        let entry = file(name, 0o100_644, b"contents");
        writer.append_aligned(&entry, 4096).expect("short enough");
        writer
            .append(&file(b"between", 0o100_644, b"odd"))
            .expect("short enough");
    }
    let bytes = writer.finish();
    let entries: Vec<_> = Archive::new(&bytes)
        .map(|entry| entry.expect("whole"))
        .collect();
    let names: Vec<_> = entries.iter().map(|entry| entry.name).collect();
    assert_eq!(
        names,
        [&b"a"[..], b"between", b"some/longer/name", b"between"]
    );
    for entry in entries.iter().step_by(2) {
        assert_eq!(
            (entry.data.as_ptr() as usize - bytes.as_ptr() as usize) % 4096,
            0
        );
        assert_eq!(entry.data, b"contents");
    }
}

#[test]
fn no_name_is_longer_than_linux_reads() {
    for before in 0..64 {
        let mut writer = Writer::new();
        let data = vec![0; before * 64];
        writer
            .append(&file(b"before", 0o100_644, &data))
            .expect("short enough");
        writer
            .append_aligned(&file(b"a/name", 0o100_644, b"x"), 4096)
            .expect("short enough");
        let bytes = writer.finish();
        let header = bytes
            .windows(6)
            .rposition(|window| window == b"a/name")
            .expect("it is there");
        let name_len = core::str::from_utf8(&bytes[header - 16..header - 8]).expect("digits");
        assert!(usize::from_str_radix(name_len, 16).expect("digits") <= 4096);
        let last = Archive::new(&bytes).last().expect("one").expect("whole");
        assert_eq!((last.name, last.data), (&b"a/name"[..], &b"x"[..]));
    }
}

#[test]
fn an_empty_image_has_no_members() {
    assert!(Archive::new(&[]).next().is_none());
    assert!(Archive::new(&archive_of(&[])).next().is_none());
}

#[test]
fn every_cut_gives_whole_members_or_one_error() {
    let bytes = archive_of(&[file(b"a", 0o100_644, b"12345"), file(b"b", 0o100_644, b"6")]);
    for end in 0..bytes.len() {
        let mut errors = 0;
        for member in Archive::new(&bytes[..end]) {
            match member {
                Ok(entry) => assert!(matches!(entry.data, b"12345" | b"6")),
                Err(_) => errors += 1,
            }
        }
        assert!(errors <= 1, "cut at {end}");
    }
}

#[test]
fn lengths_that_leave_the_archive_are_refused() {
    let mut bytes = archive_of(&[file(b"a", 0o100_644, b"12345")]);
    bytes[54..62].copy_from_slice(b"FFFFFFFF");
    assert_eq!(
        Archive::new(&bytes).next(),
        Some(Err(ReadError::Truncated { offset: 0 }))
    );
    bytes[54..62].copy_from_slice(b"zzzzzzzz");
    assert_eq!(
        Archive::new(&bytes).next(),
        Some(Err(ReadError::BadField { offset: 0 }))
    );
}

#[test]
fn something_else_than_an_archive_is_refused() {
    let bytes = vec![b'x'; 200];
    assert_eq!(
        Archive::new(&bytes).next(),
        Some(Err(ReadError::BadMagic { offset: 0 }))
    );
}
