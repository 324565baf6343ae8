//! How the machine is turned off and reset.

use ::acpi::{PowerOff, Register};

/// How to turn it off, if the tables say that.
pub(crate) fn power_off() -> Option<PowerOff> {
    PowerOff::parse(super::find(*b"FACP")?, super::dsdt::dsdt()?)
}

/// The register that resets it, if there is one, and what to write to it.
pub(crate) fn reset() -> Option<(Register, u8)> {
    ::acpi::reset(super::find(*b"FACP")?)
}
