//! Where the interrupts of the PC's old devices arrive (ACPI 6.5, 5.2.12.5).
//!
//! Interrupt `n` of the ISA bus arrives at global interrupt `n`, by an edge to high, unless the
//! MADT overrides that.

use crate::word;

/// Interrupts of the ISA bus.
pub const ISA_INTERRUPTS: usize = 16;
/// The kind of an override among the MADT's structures.
pub const SOURCE_OVERRIDE: u8 = 2;

const BUS: usize = 2;
const SOURCE: usize = 3;
const GSI: usize = 4;
const FLAGS: usize = 8;
const ISA: u8 = 0;
/// Both fields of the flags: 0 is the bus' custom, 1 high or edge, 3 low or level.
const POLARITY_SHIFT: u8 = 0;
const TRIGGER_SHIFT: u8 = 2;

/// How an interrupt of the ISA bus arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IsaPin {
    /// The global interrupt.
    pub gsi: u32,
    /// Whether it is active when low.
    pub is_active_low: bool,
    /// Whether a level raises it, not an edge.
    pub is_level: bool,
}

impl IsaPin {
    /// The custom for interrupt `number`.
    pub const fn customary(number: u8) -> Self {
        Self {
            gsi: number as u32,
            is_active_low: false,
            is_level: false,
        }
    }

    /// What a structure of the kind [`SOURCE_OVERRIDE`] says, and of which interrupt.
    pub fn parse(structure: &[u8]) -> Option<(u8, Self)> {
        let source = *structure.get(SOURCE)?;
        let is_isa = structure.get(BUS) == Some(&ISA) && usize::from(source) < ISA_INTERRUPTS;
        let flags = *structure.get(FLAGS)?;
        let is_three = |shift: u8| flags >> shift & 3 == 3;
        let pin = Self {
            gsi: word(structure, GSI)?,
            is_active_low: is_three(POLARITY_SHIFT),
            is_level: is_three(TRIGGER_SHIFT),
        };
        is_isa.then_some((source, pin))
    }
}
