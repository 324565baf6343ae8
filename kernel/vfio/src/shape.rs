//! What a function has, read once: its capabilities, and what its header held before any program
//! had it.

use core::ops::Range;

use hal::Mmio;
use hal::msi::Msi;
use hal::pci::{PciFunction, capabilities, id};
use mach::sync::Once;
use pci::{BARS, Function};
use vfio::{Bar, Config};

const MSIX: u8 = 0x11;
const EXPRESS: u8 = 0x10;
const ADVANCED: u8 = 0x13;
/// Of capabilities: the function can be reset by itself.
const EXPRESS_RESETS: u32 = 1 << 28;
const ADVANCED_RESETS: u32 = 1 << 25;

/// Registers of the header that are kept over a reset.
const HEADER: usize = 16;
const ENTRY_BYTES: usize = 16;

/// The table of a function's MSI-X messages.
#[derive(Clone, Debug)]
pub struct MsixTable {
    /// How many there are.
    pub entries: u16,
    /// The base address behind which it lies, and where.
    pub bar: usize,
    pub bytes: Range<usize>,
}

/// How a function is reset, by the capability at an offset.
#[derive(Clone, Copy, Debug)]
pub enum Reset {
    Express(u16),
    Advanced(u16),
}

/// A function and what it has.
pub struct Shape {
    pub function: &'static Function,
    pub msi: Option<Msi>,
    pub msix: Option<MsixTable>,
    pub reset: Option<Reset>,
    header: [u32; HEADER],
    /// Registers, mapped when they are first needed.
    bars: [Once<Option<Mmio>>; BARS],
}

impl Shape {
    /// Reads it.
    pub fn of(function: &'static Function) -> Self {
        Self {
            function,
            msi: Msi::of(function),
            msix: find(function, MSIX).and_then(|offset| msix(function, offset)),
            reset: reset(function),
            header: core::array::from_fn(|word| function.config_read(word as u16 * 4)),
            bars: [const { Once::new() }; BARS],
        }
    }

    /// The registers behind a base address.
    pub fn bar(&self, index: usize) -> Option<&Mmio> {
        let bar = self.bars.get(index)?;
        bar.call_once(|| self.function.bar(index as u8)).as_ref()
    }

    /// The command register before any program had it.
    pub fn first_command(&self) -> u16 {
        self.header[1] as u16
    }

    /// Writes what a reset took away; not the command register.
    pub fn restore(&self) {
        for (word, value) in self.header.iter().enumerate().skip(2) {
            self.function.config_write(word as u16 * 4, *value);
        }
    }

    /// Configuration space for a program that takes the function.
    pub fn config(&self) -> Config {
        let (vendor, device) = id(self.function);
        let bars = core::array::from_fn(|index| {
            let bar = (*self.function.bars().get(index)?)?;
            let word = self.header.get(4 + index)?;
            Some(Bar {
                bytes: bar.bytes as u64,
                kind: word & 0xf,
            })
        });
        let id = u32::from(device) << 16 | u32::from(vendor);
        Config::new(id, bars, self.msi.map(|msi| msi.registers()))
    }
}

/// Whoever asks for registers gets those that are mapped already.
impl PciFunction for Shape {
    fn config_read(&self, offset: u16) -> u32 {
        self.function.config_read(offset)
    }

    fn config_write(&self, offset: u16, value: u32) {
        self.function.config_write(offset, value);
    }

    fn bar(&self, index: u8) -> Option<Mmio> {
        let bar = Self::bar(self, index.into())?;
        bar.window(0, bar.bytes())
    }
}

fn find(function: &Function, wanted: u8) -> Option<u16> {
    let capability = capabilities(function).find(|&(id, _)| id == wanted);
    capability.map(|(_, offset)| offset)
}

fn msix(function: &Function, offset: u16) -> Option<MsixTable> {
    let entries = (function.config_read(offset) >> 16 & 0x7ff) as u16 + 1;
    let place = function.config_read(offset + 4);
    let (bar, start) = ((place & 7) as usize, (place & !7) as usize);
    let bytes = start..start + usize::from(entries) * ENTRY_BYTES;
    let is_inside = (*function.bars().get(bar)?)?.bytes >= bytes.end;
    is_inside.then_some(MsixTable {
        entries,
        bar,
        bytes,
    })
}

fn reset(function: &Function) -> Option<Reset> {
    let has = |offset: &u16, register, bit| function.config_read(offset + register) & bit != 0;
    let express = find(function, EXPRESS).filter(|at| has(at, 4, EXPRESS_RESETS));
    let advanced = find(function, ADVANCED).filter(|at| has(at, 0, ADVANCED_RESETS));
    let express = express.map(Reset::Express);
    express.or(advanced.map(Reset::Advanced))
}
