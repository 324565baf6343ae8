//! A machine as simple as the paper's description: codes as written, one slice of bytes.

use bpf::{Packet, Program, RawInstruction};

use crate::{Nothing, raw};
use models::{Random, for_each_seed};

/// What the program keeps; the instructions are known to be legal.
fn interpret(code: &[RawInstruction], packet: &[u8]) -> u32 {
    let (mut a, mut x, mut at) = (0_u32, 0_u32, 0);
    let mut memory = [0; 16];
    let load = |from: u32, bytes: usize| -> Option<u32> {
        let bytes = packet.get(from as usize..)?.get(..bytes)?;
        Some(
            bytes
                .iter()
                .fold(0, |sum, byte| sum << 8 | u32::from(*byte)),
        )
    };
    loop {
        let RawInstruction {
            code: c,
            yes,
            no,
            k,
        } = code[at];
        at += 1;
        let operand = if c & 8 == 0 { k } else { x };
        let size = [4, 2, 1, 0][usize::from(c >> 3 & 3)];
        let loaded = match c & 0xe7 {
            0x20 => load(k, size),
            0x40 => load(x.wrapping_add(k), size),
            0xa1 => load(k, 1),
            _ => Some(0),
        };
        let Some(loaded) = loaded else { return 0 };
        match (c & 7, c & 0xf0) {
            (0, 0x00) => a = k,
            (1, 0x00) => x = k,
            (0, 0x80) => a = packet.len() as u32,
            (1, 0x80) => x = packet.len() as u32,
            (0, 0x60) => a = memory[k as usize],
            (1, 0x60) => x = memory[k as usize],
            (0, _) => a = loaded,
            (1, _) => x = (loaded & 15) * 4,
            (2, _) => memory[k as usize] = a,
            (3, _) => memory[k as usize] = x,
            (4, 0x00) => a = a.wrapping_add(operand),
            (4, 0x10) => a = a.wrapping_sub(operand),
            (4, 0x20) => a = a.wrapping_mul(operand),
            (4, 0x30 | 0x90) if operand == 0 => return 0,
            (4, 0x30) => a /= operand,
            (4, 0x40) => a |= operand,
            (4, 0x50) => a &= operand,
            (4, 0x60) => a <<= operand & 31,
            (4, 0x70) => a >>= operand & 31,
            (4, 0x80) => a = 0_u32.wrapping_sub(a),
            (4, 0x90) => a %= operand,
            (4, 0xa0) => a ^= operand,
            (5, 0x00) => at += k as usize,
            (5, op) => {
                let holds = match op {
                    0x10 => a == operand,
                    0x20 => a > operand,
                    0x30 => a >= operand,
                    _ => a & operand != 0,
                };
                at += usize::from(if holds { yes } else { no });
            }
            (6, 0x10) => return a,
            (6, _) => return k,
            (_, 0x00) => x = a,
            _ => a = x,
        }
    }
}

const CODES: [u16; 42] = [
    0x00, 0x01, 0x80, 0x81, 0x60, 0x61, 0x02, 0x03, 0x20, 0x28, 0x30, 0x40, 0x48, 0x50, 0xb1, 0x84,
    0x07, 0x87, 0x05, 0x06, 0x16, 0x04, 0x0c, 0x14, 0x1c, 0x24, 0x2c, 0x34, 0x3c, 0x44, 0x4c, 0x5c,
    0x64, 0x6c, 0x74, 0x7c, 0x94, 0x9c, 0xac, 0x15, 0x2d, 0x45,
];

fn instruction(random: &mut Random, left: u64) -> RawInstruction {
    let code = CODES[random.below(CODES.len())];
    let k = match code {
        0x05 => random.below(left.max(1)),
        0x60 | 0x61 | 0x02 | 0x03 => random.below(3),
        _ if random.below(3) == 0 => random.below(1 << 31),
        _ => random.below(48),
    };
    let mut skip = || random.below(left.clamp(1, 200)) as u8;
    raw((code, skip(), skip(), k as u32))
}

fn instructions(random: &mut Random) -> Vec<RawInstruction> {
    let count = 1 + random.below(24);
    let mut code: Vec<_> = (0..count)
        .map(|at| instruction(random, count - at))
        .collect();
    code.push(raw((0x16, 0, 0, 0)));
    code
}

/// Cuts `bytes` at random places, into empty pieces too.
fn cut<'a>(random: &mut Random, mut bytes: &'a [u8]) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    while !bytes.is_empty() {
        let (part, rest) = bytes.split_at(random.below(bytes.len() as u64 + 1) as usize);
        parts.push(part);
        bytes = rest;
    }
    parts
}

#[test]
fn a_program_keeps_what_the_oracle_keeps_however_the_packet_is_cut() {
    for_each_seed(400, |_, mut random| {
        let random = &mut random;
        let bytes: Vec<u8> = (0..random.below(64)).map(|_| random.bits() as u8).collect();
        let parts = cut(random, &bytes);
        let legal = (0..60).filter(|_| {
            let code = instructions(random);
            let Ok(program) = Program::check(&code) else {
                return false;
            };
            let kept = program.run(&Packet::new(&parts, 0, 0), &mut Nothing);
            assert_eq!(kept, interpret(&code, &bytes), "{code:x?} on {bytes:x?}");
            true
        });
        assert!(legal.count() > 6);
    });
}
