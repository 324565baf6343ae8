//! The bytes are two copies of a catalogue, whose checksums are made right: it is refused, or it is
//! sound, takes changes, and is read again as it was left.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vsa::{Blocks, COPY_BYTES, Catalogue, Disk, DiskError, Extent, New};

const BLOCK: usize = 4096;
const BLOCKS: usize = 2 * COPY_BYTES / BLOCK + 40;

struct Memory(Vec<u8>);

impl Disk for Memory {
    fn block_bytes(&self) -> u32 {
        BLOCK as u32
    }

    fn blocks(&self) -> Blocks {
        BLOCKS as u64
    }

    fn read(&mut self, first: u64, into: &mut [u8]) -> Result<(), DiskError> {
        into.copy_from_slice(&self.0[first as usize * BLOCK..][..into.len()]);
        Ok(())
    }

    fn write(&mut self, first: u64, from: &[u8]) -> Result<(), DiskError> {
        self.0[first as usize * BLOCK..][..from.len()].copy_from_slice(from);
        Ok(())
    }

    fn zero(&mut self, blocks: Extent) -> Result<(), DiskError> {
        self.0[blocks.first() as usize * BLOCK..blocks.end() as usize * BLOCK].fill(0);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), DiskError> {
        Ok(())
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut disk = Memory(vec![0; BLOCKS * BLOCK]);
    Catalogue::format(&mut disk).expect("memory works");
    // Header and body of each copy by turns, 1 KiB each.
    let places = [0, BLOCK, COPY_BYTES, COPY_BYTES + BLOCK];
    for (place, part) in places.into_iter().zip(bytes.chunks(1024)) {
        let at = if place % COPY_BYTES == 0 { place + 12 } else { place };
        disk.0[at..at + part.len()].copy_from_slice(part);
    }
    vsa::seal(&mut disk.0[..COPY_BYTES]);
    vsa::seal(&mut disk.0[COPY_BYTES..2 * COPY_BYTES]);
    let Ok(mut catalogue) = Catalogue::open(&mut disk) else {
        return;
    };
    for area in catalogue.list().to_vec() {
        let map = catalogue.acquire(area.name().bytes(), 0).expect("it is listed");
        let pieces = map.translate(0, map.blocks()).expect("all of it");
        assert!(pieces.into_iter().all(|piece| piece.end() <= BLOCKS as u64));
        let _ = catalogue.resize(&mut disk, area.id(), 0, area.blocks() / 2 + 3);
    }
    let new = New { name: b"new", owner: 1, blocks: 2 };
    let _ = catalogue.create(&mut disk, &new);
    let again = Catalogue::open(&mut disk).expect("what we wrote");
    assert_eq!(again.list(), catalogue.list());
});
