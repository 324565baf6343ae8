//! Volumes made by bytes, for what no tool makes; those of `xorriso` are in `tests/seeds.rs`.

use std::io::Cursor;

use super::*;
use crate::disk::Bounded;

const ROOT_SECTOR: u32 = 18;
const FILE_SECTOR: u32 = 19;

/// A record of a file with these bytes behind its name.
fn record(first_sector: u32, bytes: u32, name: &[u8], behind: &[u8]) -> Vec<u8> {
    let mut record = vec![0; RECORD_NAME_AT];
    record[2..6].copy_from_slice(&first_sector.to_le_bytes());
    record[10..14].copy_from_slice(&bytes.to_le_bytes());
    record[32] = name.len() as u8;
    record.extend_from_slice(name);
    record.resize(record.len().next_multiple_of(2), 0);
    record.extend_from_slice(behind);
    record[0] = record.len() as u8;
    record
}

/// A disk with a primary descriptor, a root of these records, and a file.
fn disk(records: &[Vec<u8>], root_bytes: u32, file: &[u8]) -> Cursor<Vec<u8>> {
    let mut disk = vec![0; 20 * SECTOR_BYTES];
    let primary = &mut disk[16 * SECTOR_BYTES..17 * SECTOR_BYTES];
    primary[..6].copy_from_slice(b"\x01CD001");
    primary[40..72].copy_from_slice(format!("{:32}", "cidata").as_bytes());
    let root = record(ROOT_SECTOR, root_bytes, &[0], &[]);
    primary[ROOT_AT..ROOT_AT + root.len()].copy_from_slice(&root);
    disk[17 * SECTOR_BYTES..][..6].copy_from_slice(b"\xffCD001");
    let records = records.concat();
    disk[18 * SECTOR_BYTES..][..records.len()].copy_from_slice(&records);
    disk[19 * SECTOR_BYTES..][..file.len()].copy_from_slice(file);
    Cursor::new(disk)
}

fn alternate(name: &[u8]) -> Vec<u8> {
    [b"NM", &[name.len() as u8 + 5, 1, 0][..], name].concat()
}

fn open(disk: Cursor<Vec<u8>>) -> Volume<Bounded<Cursor<Vec<u8>>>> {
    let volume = Volume::open(Bounded::new(disk)).expect("read");
    volume.expect("a volume")
}

#[test]
fn a_name_of_rock_ridge_may_come_in_parts() {
    let behind = [alternate(b"user-"), alternate(b"data")].concat();
    let file = record(FILE_SECTOR, 5, b"USER_DAT.;1", &behind);
    let mut volume = open(disk(&[file], 2048, b"hello there"));
    assert_eq!(volume.label, "cidata");
    let read = volume.read("user-data").expect("read");
    assert_eq!(read.as_deref(), Some(&b"hello"[..]));
    assert_eq!(volume.read("meta-data").expect("read"), None);
}

#[test]
fn a_name_of_the_standard_alone_has_its_version_cut_off() {
    let file = record(FILE_SECTOR, 1, b"META-DATA;1", &[]);
    let mut volume = open(disk(&[file], 2048, b"x"));
    assert!(volume.read("meta-data").expect("read").is_some());
}

#[test]
fn a_disk_without_a_descriptor_is_no_volume() {
    for bytes in [0, 1000, 17 * SECTOR_BYTES] {
        let disk = Cursor::new(vec![0; bytes]);
        assert!(Volume::open(disk).expect("read").is_none());
    }
}

#[test]
fn lengths_that_lie_end_at_the_disks_end_and_at_the_bounds() {
    let file = record(FILE_SECTOR, u32::MAX, b"user-data", &[]);
    let mut volume = open(disk(&[file], u32::MAX, b"x"));
    let read = volume.read("user-data").expect("read").expect("there");
    assert_eq!(read.len(), SECTOR_BYTES);
    let file = record(u32::MAX, 5, b"user-data", &[]);
    let mut volume = open(disk(&[file], 2048, b"x"));
    let read = volume.read("user-data").expect("read").expect("there");
    assert!(read.is_empty());
}

#[test]
fn whichever_byte_of_a_volume_is_changed_reading_it_ends_within_the_bounds() {
    let file = record(FILE_SECTOR, 5, b"USER_DAT.;1", &alternate(b"user-data"));
    let whole = disk(&[file], 2048, b"hello").into_inner();
    let parts = [
        16 * SECTOR_BYTES..16 * SECTOR_BYTES + 200,
        18 * SECTOR_BYTES..18 * SECTOR_BYTES + 80,
    ];
    for at in parts.into_iter().flatten() {
        for value in [0, 1, 0x7f, 0xff] {
            let mut changed = whole.clone();
            changed[at] = value;
            let volume = Volume::open(Bounded::new(Cursor::new(changed)));
            if let Ok(Some(mut volume)) = volume {
                let read = volume.read("user-data");
                assert!(
                    read.is_err()
                        || read.is_ok_and(
                            |read| read.is_none_or(|bytes| bytes.len() <= TEXT_BYTES_MAX + 1)
                        )
                );
            }
        }
    }
}
