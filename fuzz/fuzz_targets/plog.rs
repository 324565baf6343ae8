//! The bytes are what somebody left on the area of a log, laid over a sound one: it is refused, or
//! read to its end or to the first entry that is none; nothing panics and no read leaves the area.
#![no_main]

use block::Failure;
use libfuzzer_sys::fuzz_target;
use plog::{Area, Limits, Map};

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

fuzz_target!(|bytes: &[u8]| {
    let mut area = Memory(vec![0; BLOCKS * BLOCK]);
    plog::format(&mut area, 1).expect("memory works");
    for step in bytes.chunks_exact(4) {
        let at = usize::from(u16::from_le_bytes([step[0], step[1]])) % area.0.len();
        area.0[at] = step[2];
    }
    let Ok(log) = plog::open(&mut area) else {
        return;
    };
    let mut cursor = log.cursor();
    let mut entry = Vec::new();
    while let Ok(Some(_)) = cursor.next(&mut area, &mut entry) {}
    let _ = Map::open(log, &mut area, Limits { keys: 8, key_bytes: 64 });
});
