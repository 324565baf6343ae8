//! How a machine is turned off and reset (ACPI 6.5, 4.8.3, 4.8.3.6, 4.8.3.7, 7.4.2).
//!
//! Turning off is to enter the sleeping state S5: a number that the AML object `_S5_` holds is
//! written to a control register that the FADT names. The object is constant in every
//! firmware that we know, so the bytes of the DSDT are searched for it, without running the
//! program.

use crate::{address, word};

/// Offsets in the FADT.
mod fadt {
    pub const SMI_COMMAND: usize = 48;
    pub const ACPI_ENABLE: usize = 52;
    pub const PM1_CONTROL: [usize; 2] = [64, 68];
    pub const FLAGS: usize = 112;
    pub const RESET_REGISTER: usize = 116;
    pub const RESET_VALUE: usize = 128;
    pub const LONG_PM1_CONTROL: [usize; 2] = [172, 184];
    pub const SLEEP_CONTROL: usize = 244;
}

const HAS_RESET_REGISTER: u32 = 1 << 10;
const HARDWARE_REDUCED: u32 = 1 << 20;

/// A register of the platform.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Register {
    /// By its I/O port.
    Port(u16),
    /// By its physical address.
    Memory(u64),
}

impl Register {
    /// A generic address (5.2.3.2) of these spaces.
    fn parse(table: &[u8], at: usize) -> Option<Self> {
        let place = address(table, at + 4).filter(|&place| place != 0)?;
        match table.get(at)? {
            0 => Some(Self::Memory(place)),
            1 => u16::try_from(place).ok().map(Self::Port),
            _ => None,
        }
    }

    fn of_port(table: &[u8], at: usize) -> Option<Self> {
        let port = word(table, at).and_then(|port| u16::try_from(port).ok());
        port.filter(|&port| port != 0).map(Self::Port)
    }
}

/// How to turn the machine off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PowerOff {
    /// By one or two control registers of 16 bits.
    Fixed {
        /// The registers, each with its number for S5.
        controls: [Option<(Register, u8)>; 2],
        /// What makes the firmware leave the registers to us: a port and a value for it.
        take_over: Option<(u16, u8)>,
    },
    /// By one register of 8 bits, where hardware is reduced.
    Reduced {
        /// The register.
        control: Register,
        /// Its number for S5.
        sleep_type: u8,
    },
}

impl PowerOff {
    /// Bit of a fixed control register: it is ours.
    pub const OURS: u16 = 1;
    /// Bits of a fixed control register that say where to go and that we go.
    const FIXED_SLEEP: u16 = 0b1111 << 10;

    /// What to write to a fixed control register that holds `now`.
    pub const fn fixed_value(now: u16, sleep_type: u8) -> u16 {
        now & !Self::FIXED_SLEEP | (sleep_type as u16 & 7) << 10 | 1 << 13
    }

    /// What to write to the control register of reduced hardware.
    pub const fn reduced_value(sleep_type: u8) -> u8 {
        (sleep_type & 7) << 2 | 1 << 5
    }

    /// What these tables say; `None` if they offer no way.
    pub fn parse(fadt: &[u8], dsdt: &[u8]) -> Option<Self> {
        let types = s5(dsdt)?;
        if word(fadt, fadt::FLAGS)? & HARDWARE_REDUCED != 0 {
            return Some(Self::Reduced {
                control: Register::parse(fadt, fadt::SLEEP_CONTROL)?,
                sleep_type: types[0],
            });
        }
        let control = |number: usize| {
            let register = Register::parse(fadt, fadt::LONG_PM1_CONTROL[number])
                .or_else(|| Register::of_port(fadt, fadt::PM1_CONTROL[number]))?;
            Some((register, types[number]))
        };
        let controls = [control(0), control(1)];
        controls[0]?;
        Some(Self::Fixed {
            controls,
            take_over: take_over(fadt),
        })
    }
}

fn take_over(fadt: &[u8]) -> Option<(u16, u8)> {
    let port = u16::try_from(word(fadt, fadt::SMI_COMMAND)?).ok()?;
    let value = *fadt.get(fadt::ACPI_ENABLE)?;
    (port != 0 && value != 0).then_some((port, value))
}

/// How to reset the machine: a register, and what to write to it.
pub fn reset(fadt: &[u8]) -> Option<(Register, u8)> {
    let is_there = word(fadt, fadt::FLAGS)? & HAS_RESET_REGISTER != 0;
    let register = Register::parse(fadt, fadt::RESET_REGISTER)?;
    let value = *fadt.get(fadt::RESET_VALUE)?;
    is_there.then_some((register, value))
}

/// `Name (_S5_, Package (...))` in AML (ACPI 6.5, 20.2.5).
const NAME_S5: &[u8] = b"\x08_S5_\x12";
/// The same with the name counted from the root.
const NAME_ROOT_S5: &[u8] = b"\x08\\_S5_\x12";

/// The numbers of S5 for the two control registers.
fn s5(dsdt: &[u8]) -> Option<[u8; 2]> {
    let behind = |name: &[u8]| {
        let at = dsdt.windows(name.len()).position(|bytes| bytes == name)?;
        dsdt.get(at + name.len()..)
    };
    let package = behind(NAME_S5).or_else(|| behind(NAME_ROOT_S5))?;
    // The length's first byte says how many more it has.
    let more = usize::from(package.first()? >> 6);
    let elements = package.get(1 + more..)?;
    let (&count, elements) = elements.split_first()?;
    let (first, rest) = small_number(elements)?;
    let second = small_number(rest).map_or(first, |(second, _)| second);
    match count {
        0 => None,
        1 => Some([first, first]),
        _ => Some([first, second]),
    }
}

/// A constant (20.2.3), as far as it fits a byte, and what follows.
fn small_number(aml: &[u8]) -> Option<(u8, &[u8])> {
    match *aml {
        [0, ref rest @ ..] => Some((0, rest)),
        [1, ref rest @ ..] => Some((1, rest)),
        [0x0a, value, ref rest @ ..] => Some((value, rest)),
        [0x0b, value, 0, ref rest @ ..] => Some((value, rest)),
        [0x0c, value, 0, 0, 0, ref rest @ ..] => Some((value, rest)),
        _ => None,
    }
}
