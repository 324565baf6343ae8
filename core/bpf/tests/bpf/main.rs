//! The packet filter beside Linux's and beside an oracle.

mod calls;
mod linux;
mod oracle;
mod refusals;
mod runs;

use bpf::{Fact, Facts, RawInstruction};

/// A packet of which nothing is known: each fact is zero.
struct Nothing;

impl Facts for Nothing {
    fn fact(&mut self, _: Fact) -> u32 {
        0
    }
}

/// `code jt jf k`.
fn raw((code, yes, no, k): (u16, u8, u8, u32)) -> RawInstruction {
    RawInstruction { code, yes, no, k }
}

fn program(instructions: &[(u16, u8, u8, u32)]) -> Vec<RawInstruction> {
    instructions.iter().copied().map(raw).collect()
}
