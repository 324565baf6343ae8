//! A program that writes whatever it likes wherever it can.

use base::SharedMemory;
use uring::{
    BufferRing, CompletionQueue, Cqe, CqeFlags, Next, Operation, Sqe, SubmissionQueue, decode,
};

use crate::world::{Program, for_each_seed};

#[test]
fn a_program_that_scribbles_gets_no_more_than_its_rings_hold() {
    for_each_seed(|seed, mut random| {
        let program = Program::new(8, None);
        let mut submissions = SubmissionQueue::new(program.geometry);
        let mut completions = CompletionQueue::new(program.geometry);
        for _ in 0..2000 {
            let words = (program.rings.len() / 4) as u64;
            let at = random.below(words) as usize * 4;
            program.rings.store(at, random.next() as u32);
            let pending = submissions.pending(&program.rings);
            assert!(pending <= 8, "SEED={seed}");
            match submissions.take(&program.rings, &program.sqes) {
                Next::Empty => assert_eq!(pending, 0, "SEED={seed}"),
                Next::Dropped | Next::Entry(_) => {}
            }
            if completions.owed() < 64 {
                completions.reserve().unwrap();
                let cqe = Cqe {
                    user_data: 0,
                    result: 0,
                    flags: CqeFlags::empty(),
                };
                completions.post(&program.rings, cqe);
            }
            completions.flush(&program.rings);
            assert!(completions.ready(&program.rings) <= 16, "SEED={seed}");
        }
    });
}

#[test]
fn any_bytes_are_an_entry_that_is_decoded_or_refused() {
    for_each_seed(|_, mut random| {
        for _ in 0..2000 {
            let mut bytes = [0; 64];
            let sparse = random.below(2) == 0;
            for byte in &mut bytes {
                if !sparse || random.below(8) == 0 {
                    *byte = random.next() as u8;
                }
            }
            bytes[0] = random.below(64) as u8;
            let sqe = Sqe::from_bytes(&bytes);
            if let Ok(operation) = decode(&sqe) {
                let shots = operation.is_multishot();
                assert!(!shots || operation.needs_file());
            }
        }
    });
}

#[test]
fn a_tail_of_lent_buffers_may_be_anything() {
    for_each_seed(|seed, mut random| {
        let mut ring = BufferRing::new(16).unwrap();
        for _ in 0..2000 {
            if let Some(lent) = ring.next(random.next() as u16) {
                assert!(lent.offset + 16 <= ring.bytes(), "SEED={seed}");
                ring.advance();
            }
        }
    });
}

#[test]
fn an_unknown_flag_is_refused() {
    let sqe = Sqe {
        flags: 0x80,
        ..Sqe::default()
    };
    assert!(decode(&sqe).is_err());
    assert_eq!(decode(&Sqe::default()), Ok(Operation::Nop));
}
