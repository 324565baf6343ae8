//! Tables that are right, damaged, and hostile.

use models::for_each_seed;
use partitions::{NUMBER_MAX, Partition, Purpose, Shape, read};

const BLOCK: usize = 512;

fn crc(bytes: &[u8]) -> u32 {
    let mut crc = !0u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 0 {
                crc >> 1
            } else {
                crc >> 1 ^ 0xedb8_8320
            };
        }
    }
    !crc
}

fn of(disk: &[u8], block: usize) -> Vec<Partition> {
    let shape = Shape {
        block_bytes: block as u32,
        blocks: (disk.len() / block) as u64,
    };
    let mut bytes = |at: u64, to: &mut [u8]| {
        assert!((at as usize).is_multiple_of(block) && to.len().is_multiple_of(block));
        let from = disk.get(at as usize..at as usize + to.len());
        from.map(|from| to.copy_from_slice(from)).is_some()
    };
    read(shape, &mut bytes)
}

fn entry(disk: &mut [u8], block: usize, index: usize, kind: u8, first: u32, count: u32) {
    let at = block * BLOCK + 446 + index * 16;
    disk[at + 4] = kind;
    disk[at + 8..at + 12].copy_from_slice(&first.to_le_bytes());
    disk[at + 12..at + 16].copy_from_slice(&count.to_le_bytes());
    disk[block * BLOCK + 510..block * BLOCK + 512].copy_from_slice(&[0x55, 0xaa]);
}

/// A header and a table of four entries, of which two are in use.
fn gpt(disk: &mut [u8], block: usize, header_at: u64, table_at: u64) {
    let table = table_at as usize * block;
    for (index, first, last) in [(0, 40u64, 47u64), (2, 50, 59)] {
        let at = table + index * 128;
        disk[at..at + 16].fill(7);
        disk[at + 16..at + 32].fill(index as u8 + 1);
        disk[at + 32..at + 40].copy_from_slice(&first.to_le_bytes());
        disk[at + 40..at + 48].copy_from_slice(&last.to_le_bytes());
    }
    let table_crc = crc(&disk[table..table + 512]);
    let at = header_at as usize * block;
    disk[at..at + 8].copy_from_slice(b"EFI PART");
    disk[at + 12..at + 16].copy_from_slice(&92u32.to_le_bytes());
    disk[at + 16..at + 20].fill(0);
    disk[at + 24..at + 32].copy_from_slice(&header_at.to_le_bytes());
    disk[at + 72..at + 80].copy_from_slice(&table_at.to_le_bytes());
    disk[at + 80..at + 84].copy_from_slice(&4u32.to_le_bytes());
    disk[at + 84..at + 88].copy_from_slice(&128u32.to_le_bytes());
    disk[at + 88..at + 92].copy_from_slice(&table_crc.to_le_bytes());
    let header_crc = crc(&disk[at..at + 92]);
    disk[at + 16..at + 20].copy_from_slice(&header_crc.to_le_bytes());
}

fn disk_with_gpt(block: usize) -> Vec<u8> {
    let mut disk = vec![0; 100 * block];
    entry(&mut disk, 0, 0, 0xee, 1, 99);
    gpt(&mut disk, block, 1, 2);
    gpt(&mut disk, block, 99, 95);
    disk
}

fn places(partitions: &[Partition]) -> Vec<(u8, u64, u64)> {
    let place = |partition: &Partition| (partition.number, partition.first, partition.count);
    partitions.iter().map(place).collect()
}

#[test]
fn four_partitions_and_a_chain_are_found() {
    let mut disk = vec![0; 1000 * BLOCK];
    entry(&mut disk, 0, 0, 0x83, 1, 9);
    entry(&mut disk, 0, 2, 0x05, 100, 800);
    entry(&mut disk, 100, 0, 0x83, 10, 20);
    entry(&mut disk, 100, 1, 0x05, 200, 100);
    entry(&mut disk, 300, 0, 0x82, 10, 30);
    let found = of(&disk, BLOCK);
    let expected = [(1, 1, 9), (3, 100, 2), (5, 110, 20), (6, 310, 30)];
    assert_eq!(places(&found), expected);
    assert_eq!(found[3].purpose, Purpose::Mbr(0x82));
}

#[test]
fn what_is_no_table_has_no_partitions() {
    let mut disk = vec![0; 10 * BLOCK];
    assert_eq!(of(&disk, BLOCK), []);
    entry(&mut disk, 0, 0, 0x83, 1, 2);
    disk[446] = 0x33;
    assert_eq!(of(&disk, BLOCK), [], "a boot loader");
    disk[446] = 0x80;
    assert_eq!(places(&of(&disk, BLOCK)), [(1, 1, 2)]);
    disk[0x36..0x39].copy_from_slice(b"FAT");
    assert_eq!(of(&disk, BLOCK), [], "a file system");
}

#[test]
fn a_partition_that_the_disk_does_not_have_is_left_out() {
    let mut disk = vec![0; 100 * BLOCK];
    entry(&mut disk, 0, 0, 0x83, 50, 51);
    entry(&mut disk, 0, 1, 0x83, u32::MAX, u32::MAX);
    entry(&mut disk, 0, 2, 0x83, 50, 50);
    assert_eq!(places(&of(&disk, BLOCK)), [(3, 50, 50)]);
}

#[test]
fn a_chain_that_comes_back_to_itself_ends() {
    let mut disk = vec![0; 1000 * BLOCK];
    entry(&mut disk, 0, 0, 0x05, 100, 800);
    entry(&mut disk, 100, 0, 0x83, 1, 1);
    entry(&mut disk, 100, 1, 0x05, 100, 1);
    entry(&mut disk, 200, 0, 0x83, 1, 1);
    entry(&mut disk, 200, 1, 0x05, 0, 1);
    let found = of(&disk, BLOCK);
    assert!(found.iter().all(|partition| partition.number <= NUMBER_MAX));
}

#[test]
fn a_gpt_is_read_with_blocks_of_either_size() {
    for block in [512, 4096] {
        let found = of(&disk_with_gpt(block), block);
        assert_eq!(places(&found), [(1, 40, 8), (3, 50, 10)]);
        let purpose = Purpose::Gpt {
            kind: [7; 16],
            id: [3; 16],
        };
        assert_eq!(found[1].purpose, purpose);
    }
}

#[test]
fn the_second_gpt_stands_in_for_a_first_one_that_is_damaged() {
    let disk = disk_with_gpt(BLOCK);
    for damaged in [BLOCK + 3, BLOCK + 80, 2 * BLOCK + 40] {
        let mut disk = disk.clone();
        disk[damaged] ^= 1;
        assert_eq!(places(&of(&disk, BLOCK)), [(1, 40, 8), (3, 50, 10)]);
        disk[99 * BLOCK + 24] ^= 1;
        assert_eq!(of(&disk, BLOCK), []);
    }
}

#[test]
fn whatever_stands_on_a_disk_partitions_lie_on_it() {
    for_each_seed(3000, |_, mut random| {
        let block = [512, 4096][random.below(2usize)];
        let mut disk = disk_with_gpt(block);
        if random.once_in(2u32) {
            entry(
                &mut disk,
                0,
                0,
                0x05,
                random.below(120u32),
                random.below(120u32),
            );
        }
        for _ in 0..random.below(20u32) {
            let near = [0, 440, block, 2 * block, 95 * block, 99 * block][random.below(6usize)];
            let at = (near + random.below(200usize)).min(disk.len() - 1);
            disk[at] = random.bits() as u8;
        }
        if random.once_in(3u32) {
            disk.truncate(block * random.below(100usize));
        }
        for partition in of(&disk, block) {
            let end = partition.first + partition.count;
            assert!(partition.count != 0 && end <= (disk.len() / block) as u64);
            assert!((1..=NUMBER_MAX).contains(&partition.number));
        }
    });
}
