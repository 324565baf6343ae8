//! Where the power-management timer is (ACPI 6.5, 5.2.9).

use ::acpi::word;

/// Offsets in the FADT.
const PORT: usize = 76;
const FLAGS: usize = 112;
/// The timer has 32 bits, not 24.
const LONG_TIMER: u32 = 1 << 8;
/// The machine has none of the fixed registers.
const HARDWARE_REDUCED: u32 = 1 << 20;

/// A power-management timer.
pub(crate) struct PmTimer {
    /// Its port.
    pub port: u16,
    /// Whether it has 32 bits, not 24.
    pub is_long: bool,
}

/// The timer, if the machine has one.
pub(crate) fn pm_timer() -> Option<PmTimer> {
    let fadt = super::find(*b"FACP")?;
    let flags = word(fadt, FLAGS).filter(|flags| flags & HARDWARE_REDUCED == 0)?;
    let port = u16::try_from(word(fadt, PORT)?).ok();
    Some(PmTimer {
        port: port.filter(|&port| port != 0)?,
        is_long: flags & LONG_TIMER != 0,
    })
}
