//! Instructions, as a program writes them and as the machine runs them.

use crate::fact::Fact;

/// `struct sock_filter`: an instruction that nobody has looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawInstruction {
    /// Class, size, mode, operation.
    pub code: u16,
    /// Instructions to skip if a test holds.
    pub yes: u8,
    /// Instructions to skip if it does not.
    pub no: u8,
    /// A number that the operation explains.
    pub k: u32,
}

impl RawInstruction {
    /// Bytes of one.
    pub const BYTES: usize = 8;

    /// Reads one as the machine's C programs lay it out, little-endian.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let [c0, c1, yes, no, k @ ..] = bytes;
        Self {
            code: u16::from_le_bytes([c0, c1]),
            yes,
            no,
            k: u32::from_le_bytes(k),
        }
    }
}

/// A register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Register {
    A,
    X,
}

/// Words of scratch memory.
pub(crate) const SLOTS: u32 = 16;

/// A word of scratch memory that exists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slot(u8);

impl Slot {
    pub(crate) fn new(index: u32) -> Option<Self> {
        (index < SLOTS).then_some(Self(index as u8))
    }

    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The second operand of a calculation or test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operand {
    Constant(u32),
    Index,
}

/// How many bytes a load takes from the packet, big-endian.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Size {
    Word,
    Half,
    Byte,
}

/// `A = A op operand`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Calculation {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Or,
    And,
    Xor,
    ShiftLeft,
    ShiftRight,
}

/// How `A` compares with the operand, unsigned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Test {
    Equal,
    Above,
    AtLeast,
    AnyBit,
}

/// What `A` becomes by one of Linux's extensions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Extension {
    /// What the caller knows of the packet.
    Fact(Fact),
    /// The offset of the netlink attribute of type `X` at or behind offset `A`.
    Attribute,
    /// The same inside of the attribute at offset `A`.
    NestedAttribute,
    /// `A ^ X`; from the days before there was an instruction for it.
    XorIndex,
}

/// An instruction that is known to be legal where it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Instruction {
    Constant(Register, u32),
    Length(Register),
    Recall(Register, Slot),
    Remember(Register, Slot),
    /// `A` from the packet, at the offset or that much behind `X`.
    Load {
        size: Size,
        offset: u32,
        is_indexed: bool,
    },
    /// `X` = four times the low half of a byte: the length of an IPv4 header.
    HeaderLength {
        offset: u32,
    },
    Extension(Extension),
    Calculate(Calculation, Operand),
    Negate,
    IndexFromAccumulator,
    AccumulatorFromIndex,
    /// Skips that many.
    Jump(u32),
    Branch {
        test: Test,
        operand: Operand,
        yes: u8,
        no: u8,
    },
    Return(Kept),
}

/// How many bytes a program asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kept {
    Constant(u32),
    Accumulator,
}
