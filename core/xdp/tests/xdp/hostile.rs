//! A program that writes whatever it likes wherever it can.

use base::SharedMemory;
use models::for_each_seed;

use crate::world::{CHUNK, CHUNKS, ENTRIES, world};

#[test]
fn a_program_that_scribbles_gets_no_byte_outside_of_its_memory() {
    for_each_seed(40, |_, mut random| {
        let (program, mut receiver, mut sender) = world();
        let inside =
            |at: u64, len: u64| at / CHUNK == (at + len - 1) / CHUNK && at < CHUNK * CHUNKS;
        for _ in 0..3000 {
            let rings = [&program.fill, &program.rx, &program.tx, &program.completion];
            let ring = rings[random.below(4_usize)];
            let value = match random.below(3) {
                0 => random.below(64),
                _ => random.bits() as u32,
            };
            ring.store(random.below(ring.words()) * 4, value);
            let len = random.below(1900_usize).max(1);
            if let Ok(at) = receiver.place(&program.fill, &program.rx, len) {
                assert!(inside(at, len as u64));
            }
            receiver.publish(&program.fill, &program.rx);
            sender.kick(&program.tx);
            assert!(sender.asked() <= ENTRIES);
            let mut frames = 0;
            let turn = sender.read(&program.tx, &program.completion, |frame| {
                frames += 1;
                assert!(inside(frame.address, frame.len.into()));
                true
            });
            assert!(frames <= ENTRIES);
            sender.complete(&program.tx, &program.completion, &turn);
        }
    });
}
