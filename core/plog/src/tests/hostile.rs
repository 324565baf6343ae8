//! Entries that somebody made up, with sums that are right.

use super::disk::SimDisk;
use crate::Area;
use crate::entry::{HEADER_BYTES, Header, sum_of};

/// A log with one entry of an epoch.
fn with_epoch(epoch: u64) -> SimDisk {
    const BLOCK: usize = 512;
    let mut disk = SimDisk::new(BLOCK as u32, 34);
    crate::format(&mut disk, 8).expect("a disk that works");
    let header = Header {
        id: 8,
        position: 0,
        sequence: 0,
        epoch,
        durable: 0,
        tag: 1,
        bytes: 0,
        payload_sum: sum_of(&[]),
    };
    let mut block = [0; BLOCK];
    header.encode(block.first_chunk_mut::<HEADER_BYTES>().expect("it fits"));
    disk.write(2, &block).expect("a disk that works");
    disk
}

#[test]
fn an_entry_whose_epoch_cannot_be_counted_on_from_is_none() {
    for (epoch, entries) in [(1, 1), (1 << 60, 0), (u64::MAX, 0)] {
        let log = crate::open(&mut with_epoch(epoch)).expect("a log");
        assert_eq!(log.cursor().end.sequence(), entries, "epoch {epoch}");
    }
}
