//! The ISO: `grub-mkrescue` makes one that BIOS and UEFI boot from a CD, and from a disk onto
//! which it is copied as it is.

use std::path::Path;

use super::{Files, tools};
use crate::failure::Failure;

/// What GRUB needs to find and read the files, and the kinds of partitions for which its start
/// from UEFI looks in any case.
const MODULES: &str = "normal multiboot2 iso9660 fat search part_gpt part_msdos part_acorn \
    part_amiga part_apple part_bsd part_dfly part_dvh part_plan part_sun part_sunpc";

pub(super) fn write(files: &Files, output: &Path) -> Result<(), Failure> {
    let mut command = tools::command("grub-mkrescue");
    command
        .arg(format!("--install-modules={MODULES}"))
        .args(["--locales=", "--fonts=", "--themes="])
        .arg("-o")
        .arg(output)
        .arg(&files.folder);
    tools::run(command)
}
