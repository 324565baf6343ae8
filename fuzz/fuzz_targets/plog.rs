//! The bytes are what somebody left on the area of a log, laid over a sound one with an entry in each block, and the
//! checksums are made right: it is refused, or read to its end or to the first entry that is none; nothing panics and
//! no read leaves the area.
#![no_main]

use block::Failure;
use checksum::crc32c;
use libfuzzer_sys::fuzz_target;
use plog::{Area, HEADER_BYTES, Limits, Map};

const BLOCK: usize = 512;
const BLOCKS: usize = 34;

struct Memory(Vec<u8>);

impl Area for Memory {
    fn block_bytes(&self) -> u32 {
        BLOCK as u32
    }

    fn blocks(&self) -> u64 {
        BLOCKS as u64
    }

    fn read(&mut self, first: u64, into: &mut [u8]) -> Result<(), Failure> {
        into.copy_from_slice(&self.0[first as usize * BLOCK..][..into.len()]);
        Ok(())
    }

    fn write(&mut self, first: u64, from: &[u8]) -> Result<(), Failure> {
        self.0[first as usize * BLOCK..][..from.len()].copy_from_slice(from);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// Blocks that are anchors.
const ANCHORS: usize = 2;
/// An entry's bytes, and those of each part of it: what it says, and up to where that is summed.
const PAYLOAD_BYTES: usize = 12;
const HEADER_SUMMED_BYTES: usize = 60;
const ANCHOR_SUMMED_BYTES: usize = 96;

/// The entry of a block, as a map has it: a key of two bytes and a value.
fn put_entry(block: &mut [u8], number: u64) {
    block[..4].copy_from_slice(b"PLE1");
    block[4] = 1;
    for (at, value) in [(8, 1), (16, number), (24, number), (32, 1), (40, number)] {
        block[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    block[48] = PAYLOAD_BYTES as u8;
    block[HEADER_BYTES] = 2;
}

fn seal(area: &mut [u8]) {
    for number in 0..BLOCKS {
        let at = number * BLOCK;
        let summed = match number < ANCHORS {
            true => ANCHOR_SUMMED_BYTES,
            false => {
                let len = u32::from_le_bytes(area[at + 48..at + 52].try_into().expect("four bytes"));
                let payload = area[at + HEADER_BYTES..].get(..len as usize);
                let sum = payload.map_or(0, crc32c);
                area[at + 52..at + 56].copy_from_slice(&sum.to_le_bytes());
                HEADER_SUMMED_BYTES
            }
        };
        let sum = crc32c(&area[at..at + summed]);
        area[at + summed..at + summed + 4].copy_from_slice(&sum.to_le_bytes());
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut area = Memory(vec![0; BLOCKS * BLOCK]);
    plog::format(&mut area, 1).expect("memory works");
    for (number, block) in (0..).zip(area.0.chunks_exact_mut(BLOCK).skip(ANCHORS)) {
        put_entry(block, number);
    }
    // A byte at a place of a block's first half: what is behind has no meaning in a log of short entries.
    for step in bytes.chunks_exact(3) {
        let at = usize::from(step[0]) % BLOCKS * BLOCK + usize::from(step[1]);
        area.0[at] = step[2];
    }
    seal(&mut area.0);
    let Ok(log) = plog::open(&mut area) else {
        return;
    };
    let mut cursor = log.cursor();
    let mut entry = Vec::new();
    while let Ok(Some(_)) = cursor.next(&mut area, &mut entry) {}
    let _ = Map::open(log, &mut area, Limits { keys: 8, key_bytes: 64 });
});
