//! Frames come in where the program said.

use base::SharedMemory;
use xdp::{Dropped, NEED_WAKEUP, offset};

use crate::world::{CHUNK, CHUNKS, world};

#[test]
fn a_frame_lies_behind_the_headroom_of_the_chunk_that_was_given() {
    let (program, mut receiver, _) = world();
    program.fill(3 * CHUNK + 77);
    let at = receiver.place(&program.fill, &program.rx, 60);
    assert_eq!(at, Ok(3 * CHUNK + 256));
    assert_eq!(program.receive(), None, "not before the batch is over");
    receiver.publish(&program.fill, &program.rx);
    let frame = program.receive().unwrap();
    assert_eq!((frame.address, frame.len), (3 * CHUNK + 256, 60));
    assert_eq!(program.fill.load(offset::CONSUMER), 1);
}

#[test]
fn each_drop_has_one_reason() {
    let (program, mut receiver, _) = world();
    let mut place = |len| receiver.place(&program.fill, &program.rx, len).err();
    assert_eq!(place(60), Some(Dropped::NoChunk));
    program.fill(CHUNK * CHUNKS);
    assert_eq!(place(60), Some(Dropped::InvalidAddress));
    assert_eq!(place(60), Some(Dropped::NoChunk));
    assert_eq!(place(1793), Some(Dropped::TooLong));
    for number in 0..8 {
        program.fill(number * CHUNK);
        assert_eq!(place(1792), None);
    }
    program.fill(9 * CHUNK);
    assert_eq!(place(60), Some(Dropped::RingFull));
    let counts = Dropped::ALL.iter().map(|reason| receiver.dropped(*reason));
    assert_eq!(counts.collect::<Vec<_>>(), [1, 1, 2, 1]);
}

#[test]
fn a_program_that_gave_no_chunk_is_told_to_call_until_it_has() {
    let (program, mut receiver, _) = world();
    let flags = || program.fill.load(offset::FLAGS);
    assert_eq!(flags(), 0);
    receiver.place(&program.fill, &program.rx, 60).unwrap_err();
    assert_eq!(flags(), NEED_WAKEUP);
    receiver.wake(&program.fill);
    assert_eq!(flags(), NEED_WAKEUP);
    program.fill(0);
    receiver.wake(&program.fill);
    assert_eq!(flags(), 0);
}
