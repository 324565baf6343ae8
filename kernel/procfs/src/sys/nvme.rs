//! What /sys says of NVMe controllers, beside their disks and below class/nvme.

use core::fmt::{Error, Result, Write};
use core::ops::Range;

use kernel_block::{Disk, Family, Partition, nvme};
use vfs::pseudo::Text;

use super::block::Say;

/// The files of a controller.
pub(super) const OF_CONTROLLERS: [(&str, Say); 5] = [
    ("model", |disk, _, text| identity(disk, nvme::MODEL, text)),
    ("serial", |disk, _, text| identity(disk, nvme::SERIAL, text)),
    ("firmware_rev", |disk, _, text| {
        identity(disk, nvme::FIRMWARE, text)
    }),
    ("transport", |_, _, text| writeln!(text, "pcie")),
    ("state", |_, _, text| writeln!(text, "live")),
];

fn identity(disk: &Disk, place: Range<usize>, text: &mut Text) -> Result {
    let bytes = nvme::identity(disk, place).map_err(|_| Error)?;
    let said = core::str::from_utf8(&bytes).map_err(|_| Error)?;
    writeln!(text, "{said}")
}

/// The controller's number, of a disk that has one.
pub(super) fn controller_of(disk: &Disk, part: Option<&Partition>) -> Option<usize> {
    match (disk.family(), part) {
        (Family::Nvme { controller, .. }, None) => Some(controller),
        _ => None,
    }
}
