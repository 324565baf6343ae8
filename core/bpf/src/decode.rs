//! One instruction: which codes exist and what each may say (`linux/bpf_common.h`).
//!
//! A code is a class in its low three bits and, above them, what the class makes of them.
//! Codes are matched whole, as Linux does, so that a stray bit is refused.

use crate::check::CheckError;
use crate::fact::Fact;
use crate::instruction::{
    Calculation, Extension, Instruction, Kept, Operand, RawInstruction, Register, Size, Slot, Test,
};

/// Absolute loads from here up ask for something else than bytes (`SKF_AD_OFF`).
const EXTENSIONS: u32 = -0x1000_i32 as u32;

/// The instruction at `at` of a program with `left` more behind it.
pub(crate) fn decode(
    raw: RawInstruction,
    at: usize,
    left: usize,
) -> Result<Instruction, CheckError> {
    let slot = || Slot::new(raw.k).ok_or(CheckError::Scratch { at, slot: raw.k });
    Ok(match raw.code {
        0x00 => Instruction::Constant(Register::A, raw.k),
        0x01 => Instruction::Constant(Register::X, raw.k),
        0x80 => Instruction::Length(Register::A),
        0x81 => Instruction::Length(Register::X),
        0x60 => Instruction::Recall(Register::A, slot()?),
        0x61 => Instruction::Recall(Register::X, slot()?),
        0x02 => Instruction::Remember(Register::A, slot()?),
        0x03 => Instruction::Remember(Register::X, slot()?),
        0x20 | 0x28 | 0x30 if raw.k >= EXTENSIONS => {
            let unknown = CheckError::Extension { at, offset: raw.k };
            Instruction::Extension(extension(raw.k - EXTENSIONS).ok_or(unknown)?)
        }
        0x20 | 0x28 | 0x30 | 0x40 | 0x48 | 0x50 => Instruction::Load {
            size: [Size::Word, Size::Half, Size::Byte][usize::from(raw.code >> 3 & 3)],
            offset: raw.k,
            is_indexed: raw.code & 0x40 != 0,
        },
        0xb1 => Instruction::HeaderLength { offset: raw.k },
        0x84 => Instruction::Negate,
        0x07 => Instruction::IndexFromAccumulator,
        0x87 => Instruction::AccumulatorFromIndex,
        0x05 => jump(raw, at, left)?,
        0x06 => Instruction::Return(Kept::Constant(raw.k)),
        0x16 => Instruction::Return(Kept::Accumulator),
        code if code & 0xff07 == 0x04 => calculate(raw, at)?,
        code if code & 0xff07 == 0x05 => branch(raw, at, left)?,
        code => return Err(CheckError::Unknown { at, code }),
    })
}

fn operand(raw: RawInstruction) -> Operand {
    if raw.code & 0x08 == 0 {
        Operand::Constant(raw.k)
    } else {
        Operand::Index
    }
}

fn calculate(raw: RawInstruction, at: usize) -> Result<Instruction, CheckError> {
    let calculation = match raw.code & 0xf0 {
        0x00 => Calculation::Add,
        0x10 => Calculation::Subtract,
        0x20 => Calculation::Multiply,
        0x30 => Calculation::Divide,
        0x40 => Calculation::Or,
        0x50 => Calculation::And,
        0x60 => Calculation::ShiftLeft,
        0x70 => Calculation::ShiftRight,
        0x90 => Calculation::Remainder,
        0xa0 => Calculation::Xor,
        _ => return Err(CheckError::Unknown { at, code: raw.code }),
    };
    let operand = operand(raw);
    match (calculation, operand) {
        (Calculation::Divide | Calculation::Remainder, Operand::Constant(0)) => {
            Err(CheckError::Divisor { at })
        }
        (Calculation::ShiftLeft | Calculation::ShiftRight, Operand::Constant(bits @ 32..)) => {
            Err(CheckError::Shift { at, bits })
        }
        _ => Ok(Instruction::Calculate(calculation, operand)),
    }
}

fn jump(raw: RawInstruction, at: usize, left: usize) -> Result<Instruction, CheckError> {
    if raw.k as usize >= left {
        return Err(CheckError::Jump { at, skips: raw.k });
    }
    Ok(Instruction::Jump(raw.k))
}

fn branch(raw: RawInstruction, at: usize, left: usize) -> Result<Instruction, CheckError> {
    let test = match raw.code & 0xf0 {
        0x10 => Test::Equal,
        0x20 => Test::Above,
        0x30 => Test::AtLeast,
        0x40 => Test::AnyBit,
        _ => return Err(CheckError::Unknown { at, code: raw.code }),
    };
    let skips = raw.yes.max(raw.no);
    if usize::from(skips) >= left {
        let skips = skips.into();
        return Err(CheckError::Jump { at, skips });
    }
    Ok(Instruction::Branch {
        test,
        operand: operand(raw),
        yes: raw.yes,
        no: raw.no,
    })
}

fn extension(offset: u32) -> Option<Extension> {
    Some(match offset {
        0 => Extension::Fact(Fact::Protocol),
        4 => Extension::Fact(Fact::PacketType),
        8 => Extension::Fact(Fact::Interface),
        12 => Extension::Attribute,
        16 => Extension::NestedAttribute,
        20 => Extension::Fact(Fact::Mark),
        24 => Extension::Fact(Fact::Queue),
        28 => Extension::Fact(Fact::HardwareType),
        32 => Extension::Fact(Fact::FlowHash),
        36 => Extension::Fact(Fact::Cpu),
        40 => Extension::XorIndex,
        44 => Extension::Fact(Fact::VlanTag),
        48 => Extension::Fact(Fact::VlanPresent),
        52 => Extension::Fact(Fact::PayloadOffset),
        56 => Extension::Fact(Fact::Random),
        60 => Extension::Fact(Fact::VlanProtocol),
        _ => return None,
    })
}
