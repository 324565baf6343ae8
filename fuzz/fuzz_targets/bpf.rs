//! Any instructions are refused or run to an end, and what they keep of a packet does not
//! depend on how it is cut into parts.
#![no_main]

use bpf::{Fact, Facts, Packet, Program, RawInstruction};
use libfuzzer_sys::fuzz_target;

struct Zero;

impl Facts for Zero {
    fn fact(&mut self, _: Fact) -> u32 {
        0
    }
}

fuzz_target!(|input: (&[u8], &[u8], u8)| {
    let (code, bytes, cut) = input;
    let code: Vec<_> = code
        .as_chunks()
        .0
        .iter()
        .map(|chunk| RawInstruction::from_bytes(*chunk))
        .collect();
    let Ok(program) = Program::check(&code) else {
        return;
    };
    let (head, tail) = bytes.split_at(usize::from(cut).min(bytes.len()));
    let kept = |parts: &[&[u8]]| program.run(&Packet::new(parts, 0, 14), &mut Zero);
    assert_eq!(kept(&[bytes]), kept(&[head, &[], tail]));
});
