//! The machine.

use crate::attributes::Search;
use crate::check::Program;
use crate::fact::Facts;
use crate::instruction::{
    Calculation, Extension, Instruction, Kept, Operand, Register, SLOTS, Size, Test,
};
use crate::packet::Packet;

impl Program {
    /// How many bytes of the packet the program wants: none drops it, more than there are
    /// means all.
    pub fn run(&self, packet: &Packet, facts: &mut dyn Facts) -> u32 {
        let mut machine = Machine::new(packet, facts);
        let mut instructions = self.instructions().iter();
        // By Forward each turn is one instruction further. What does not return
        // (which Ends rules out) or reads beyond the packet keeps nothing.
        while let Some(instruction) = instructions.next() {
            match machine.step(instruction) {
                Some(Next::Skip(0)) => {}
                Some(Next::Skip(count)) => {
                    instructions.nth(count - 1);
                }
                Some(Next::Return(kept)) => return kept,
                None => return 0,
            }
        }
        0
    }
}

/// Where a run goes on.
enum Next {
    /// Behind that many instructions.
    Skip(usize),
    /// Nowhere: keep that many bytes.
    Return(u32),
}

struct Machine<'a> {
    packet: &'a Packet<'a>,
    facts: &'a mut dyn Facts,
    search: Search,
    a: u32,
    x: u32,
    scratch: [u32; SLOTS as usize],
}

impl<'a> Machine<'a> {
    fn new(packet: &'a Packet<'a>, facts: &'a mut dyn Facts) -> Self {
        Self {
            packet,
            facts,
            search: Search::new(),
            a: 0,
            x: 0,
            scratch: [0; SLOTS as usize],
        }
    }

    /// `None` ends the run with nothing kept.
    fn step(&mut self, instruction: &Instruction) -> Option<Next> {
        match *instruction {
            Instruction::Constant(register, value) => *self.register(register) = value,
            Instruction::Length(register) => *self.register(register) = self.len(),
            Instruction::Recall(register, slot) => {
                *self.register(register) = self.scratch[slot.index()];
            }
            Instruction::Remember(register, slot) => {
                self.scratch[slot.index()] = *self.register(register);
            }
            Instruction::Load {
                size,
                offset,
                is_indexed,
            } => {
                let base = if is_indexed { self.x } else { 0 };
                self.a = self.load(size, base.wrapping_add(offset))?;
            }
            Instruction::HeaderLength { offset } => {
                self.x = (self.load(Size::Byte, offset)? & 0xf) * 4;
            }
            Instruction::Extension(extension) => self.a = self.extension(extension)?,
            Instruction::Calculate(calculation, operand) => {
                self.a = calculate(calculation, self.a, self.operand(operand))?;
            }
            Instruction::Negate => self.a = self.a.wrapping_neg(),
            Instruction::IndexFromAccumulator => self.x = self.a,
            Instruction::AccumulatorFromIndex => self.a = self.x,
            Instruction::Jump(skip) => return Some(Next::Skip(skip as usize)),
            Instruction::Branch {
                test,
                operand,
                yes,
                no,
            } => {
                let holds = holds(test, self.a, self.operand(operand));
                return Some(Next::Skip(usize::from(if holds { yes } else { no })));
            }
            Instruction::Return(Kept::Constant(bytes)) => return Some(Next::Return(bytes)),
            Instruction::Return(Kept::Accumulator) => return Some(Next::Return(self.a)),
        }
        Some(Next::Skip(0))
    }

    fn register(&mut self, register: Register) -> &mut u32 {
        match register {
            Register::A => &mut self.a,
            Register::X => &mut self.x,
        }
    }

    fn operand(&self, operand: Operand) -> u32 {
        match operand {
            Operand::Constant(value) => value,
            Operand::Index => self.x,
        }
    }

    fn len(&self) -> u32 {
        u32::try_from(self.packet.len()).unwrap_or(u32::MAX)
    }

    fn load(&self, size: Size, offset: u32) -> Option<u32> {
        Some(match size {
            Size::Word => u32::from_be_bytes(self.packet.load(offset)?),
            Size::Half => u16::from_be_bytes(self.packet.load(offset)?).into(),
            Size::Byte => u8::from_be_bytes(self.packet.load(offset)?).into(),
        })
    }

    fn extension(&mut self, extension: Extension) -> Option<u32> {
        match extension {
            Extension::Fact(fact) => Some(self.facts.fact(fact)),
            Extension::Attribute => self.search.flat(self.packet, self.a, self.x).ok(),
            Extension::NestedAttribute => self.search.nested(self.packet, self.a, self.x).ok(),
            Extension::XorIndex => Some(self.a ^ self.x),
        }
    }
}

/// `None` for a division by zero. A shift counts modulo 32, as the CPU's do.
fn calculate(calculation: Calculation, a: u32, by: u32) -> Option<u32> {
    match calculation {
        Calculation::Add => Some(a.wrapping_add(by)),
        Calculation::Subtract => Some(a.wrapping_sub(by)),
        Calculation::Multiply => Some(a.wrapping_mul(by)),
        Calculation::Divide => a.checked_div(by),
        Calculation::Remainder => a.checked_rem(by),
        Calculation::Or => Some(a | by),
        Calculation::And => Some(a & by),
        Calculation::Xor => Some(a ^ by),
        Calculation::ShiftLeft => Some(a.wrapping_shl(by)),
        Calculation::ShiftRight => Some(a.wrapping_shr(by)),
    }
}

fn holds(test: Test, a: u32, with: u32) -> bool {
    match test {
        Test::Equal => a == with,
        Test::Above => a > with,
        Test::AtLeast => a >= with,
        Test::AnyBit => a & with != 0,
    }
}
