//! Filters over system calls (seccomp(2)).
//!
//! Such a program runs over a call instead of a packet: sixteen words that say its number, the
//! architecture, the instruction and the arguments ([`CallData`]). It reads them whole and
//! aligned, so it lacks the loads of bytes, the indexed ones, the extensions and the remainder;
//! what is left is checked as any other program is.
//!
//! Its answer is a [`Verdict`]: what becomes of the call, and sixteen bits for whoever hears of
//! it. Of several filters over one call the strictest verdict holds, of equally strict ones the
//! newest filter's.
//!
//! Sources: seccomp(2); `linux/seccomp.h`.

use crate::check::{CheckError, Program};
use crate::fact::{Fact, Facts};
use crate::instruction::RawInstruction;
use crate::packet::Packet;

/// Words of [`CallData`].
const WORDS: usize = 16;
/// Bytes of it.
const DATA_BYTES: u32 = 4 * WORDS as u32;

/// `struct seccomp_data`: the call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallData {
    /// Its number.
    pub number: u32,
    /// Who calls so (`AUDIT_ARCH_*`).
    pub architecture: u32,
    /// The address behind the instruction.
    pub instruction: u64,
    /// What the registers of arguments hold.
    pub arguments: [u64; 6],
}

impl CallData {
    /// The words as a program loads them. Loads are big-endian, and these are numbers of the
    /// machine, so each is turned around here.
    fn bytes(&self) -> [[u8; 4]; WORDS] {
        let mut words = [[0; 4]; WORDS];
        let [number, architecture, rest @ ..] = &mut words;
        *number = self.number.to_be_bytes();
        *architecture = self.architecture.to_be_bytes();
        let values = core::iter::once(&self.instruction).chain(&self.arguments);
        for ([low, high], value) in rest.as_chunks_mut().0.iter_mut().zip(values) {
            *low = (*value as u32).to_be_bytes();
            *high = ((value >> 32) as u32).to_be_bytes();
        }
        words
    }
}

/// What becomes of a call, strictest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Action {
    /// The process ends as by SIGSYS.
    KillProcess,
    /// The thread does.
    KillThread,
    /// The thread gets SIGSYS instead of the call.
    Trap,
    /// The call fails.
    Errno,
    /// Whoever listens decides; as nobody can here, the call does not exist.
    Notify,
    /// The tracer decides; without one the call does not exist.
    Trace,
    /// It runs, and that is written down.
    Log,
    /// It runs.
    Allow,
}

impl Action {
    /// All of them with their numbers (`SECCOMP_RET_*`).
    const NUMBERS: [(u32, Self); 8] = [
        (0x8000_0000, Self::KillProcess),
        (0x0000_0000, Self::KillThread),
        (0x0003_0000, Self::Trap),
        (0x0005_0000, Self::Errno),
        (0x7fc0_0000, Self::Notify),
        (0x7ff0_0000, Self::Trace),
        (0x7ffc_0000, Self::Log),
        (0x7fff_0000, Self::Allow),
    ];

    /// The one with this number, if there is one.
    pub fn from_number(number: u32) -> Option<Self> {
        let known = Self::NUMBERS.iter().find(|(known, _)| *known == number);
        known.map(|(_, action)| *action)
    }
}

/// A program's answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// What becomes of the call.
    pub action: Action,
    /// For whoever hears of it: an error's number, a tracer's message.
    pub data: u16,
}

impl Verdict {
    /// That of no filter.
    pub const ALLOW: Self = Self {
        action: Action::Allow,
        data: 0,
    };

    /// What a program returned; actions that nobody knows kill.
    fn decode(value: u32) -> Self {
        let action = Action::from_number(value & 0xffff_0000);
        Self {
            action: action.unwrap_or(Action::KillProcess),
            data: value as u16,
        }
    }
}

/// A program over system calls.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallFilter(Program);

impl CallFilter {
    /// Checks a program as Linux does.
    pub fn check(raw: &[RawInstruction]) -> Result<Self, CheckError> {
        let program = Program::check(raw)?;
        match raw.iter().position(|one| !is_for_calls(one)) {
            Some(at) => Err(CheckError::NotForCalls { at }),
            None => Ok(Self(program)),
        }
    }

    /// How many instructions it has.
    pub fn len(&self) -> usize {
        self.0.instructions().len()
    }

    /// Never: a program returns.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What it makes of a call.
    pub fn run(&self, call: &CallData) -> Verdict {
        let words = call.bytes();
        let parts = [words.as_flattened()];
        let data = Packet::new(&parts, 0, 0);
        Verdict::decode(self.0.run(&data, &mut NoFacts))
    }
}

/// Whether the instruction, legal by itself, is one of a filter over calls.
fn is_for_calls(one: &RawInstruction) -> bool {
    /// Loads of the packet, in the three sizes, of the byte, indexed, and of the header's length.
    const LOADS: [u16; 6] = [0x28, 0x30, 0x40, 0x48, 0x50, 0xb1];
    /// The remainder by a constant and by the index.
    const REMAINDERS: [u16; 2] = [0x94, 0x9c];
    const LOAD_WORD: u16 = 0x20;
    match one.code {
        LOAD_WORD => one.k < DATA_BYTES && one.k.is_multiple_of(4),
        code => !LOADS.contains(&code) && !REMAINDERS.contains(&code),
    }
}

/// A call has none, and no program that asks for one is let in.
struct NoFacts;

impl Facts for NoFacts {
    fn fact(&mut self, _: Fact) -> u32 {
        0
    }
}
