//! What /proc/iommu shows: a line for each unit, and one for each function behind one.
//!
//! ```text
//! unit 0 at 0xfed90000 version 1.0 levels 3 interrupts remapped strange 0 lost 0
//! 00:02.0 unit 0 driven refused 0
//! 00:1e.0 unit 0 undriven refused 2 last 0x80000
//! ```

use core::fmt::{Result, Write};
use core::sync::atomic::Ordering::Relaxed;

use crate::MACHINE;
use crate::functions::Guarded;
use crate::machine::Remapper;

/// Writes it; nothing on a machine without an IOMMU.
pub fn write(text: &mut impl Write) -> Result {
    let Some(machine) = MACHINE.get() else {
        return Ok(());
    };
    for (place, remapper) in machine.units() {
        write_unit(text, place, remapper)?;
    }
    let mut functions = machine.functions().iter();
    functions.try_for_each(|function| write_function(text, function))
}

fn write_unit(text: &mut impl Write, place: usize, remapper: &Remapper) -> Result {
    let capabilities = *remapper.unit.lock().capabilities();
    let (major, minor) = capabilities.version;
    let (at, levels) = (remapper.registers, capabilities.levels);
    let interrupts = match remapper.remaps_interrupts.load(Relaxed) {
        true => "remapped",
        false => "plain",
    };
    let (strange, lost) = (remapper.refusals.strange(), remapper.refusals.lost());
    writeln!(
        text,
        "unit {place} at {at:#x} version {major}.{minor} levels {levels} interrupts {interrupts} strange {strange} lost {lost}"
    )
}

fn write_function(text: &mut impl Write, function: &Guarded) -> Result {
    let driven = match (function.is_driven(), function.is_lent()) {
        (true, _) => "driven",
        (_, true) => "lent",
        _ => "undriven",
    };
    let (name, unit) = (function.address, function.unit);
    let (refused, last) = function.refused();
    write!(text, "{name} unit {unit} {driven} refused {refused}")?;
    match refused {
        0 => writeln!(text),
        _ => writeln!(text, " last {last:#x}"),
    }
}
