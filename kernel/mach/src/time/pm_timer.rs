//! ACPI's power-management timer (ACPI 6.5, 4.8.3.3): 3.579545 MHz, read from one port.

use arch::instr;
use timekeeping::{Reading, Reference};

use super::reference::bracketed;

const HERTZ: u64 = 3_579_545;
const BITS: u32 = 24;
const LONG_BITS: u32 = 32;

/// Where the timer is, and how wide.
#[derive(Clone, Copy, Debug)]
pub(super) struct PmTimer {
    port: u16,
    bits: u32,
}

/// The timer that the firmware describes.
pub(super) fn find() -> Option<PmTimer> {
    let found = crate::acpi::pm_timer()?;
    Some(PmTimer {
        port: found.port,
        bits: if found.is_long { LONG_BITS } else { BITS },
    })
}

impl PmTimer {
    pub(super) fn reference(self) -> Reference {
        Reference {
            hertz: HERTZ,
            bits: self.bits,
        }
    }

    pub(super) fn read(self) -> Reading {
        // SAFETY: the firmware says that this port is the timer, whose reading has no effect.
        bracketed(|| u64::from(unsafe { instr::in32(self.port) }))
    }
}
