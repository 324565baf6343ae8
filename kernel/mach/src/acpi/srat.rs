//! The nodes that the firmware describes.

use ::acpi::{Numa, NumaError};

/// What SRAT and SLIT say; `None` without a SRAT.
pub(crate) fn numa() -> Option<Result<Numa, NumaError>> {
    let srat = super::find(*b"SRAT")?;
    Some(Numa::read(srat, super::find(*b"SLIT")))
}
