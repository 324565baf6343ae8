//! The programs and files of Debian's that images are made of.

use std::path::Path;
use std::process::Command;

use crate::failure::Failure;
use crate::host_programs::find;

/// What is needed, and the package that has it.
const NEEDS: [(&str, &str); 6] = [
    ("grub-mkrescue", "grub-common"),
    ("xorriso", "xorriso"),
    ("mformat", "mtools"),
    ("mcopy", "mtools"),
    ("/usr/lib/grub/i386-pc/boot.img", "grub-pc-bin"),
    ("/usr/lib/grub/x86_64-efi/moddep.lst", "grub-efi-amd64-bin"),
];
/// GRUB's parts for BIOS.
pub(super) const GRUB_PC: &str = "/usr/lib/grub/i386-pc";

/// The packages that are missing on this host, each once.
pub fn missing_packages() -> Vec<&'static str> {
    let is_missing = |need: &str| match Path::new(need).is_absolute() {
        true => !Path::new(need).exists(),
        false => find(need).is_none(),
    };
    let mut packages: Vec<_> = NEEDS
        .iter()
        .filter(|(need, _)| is_missing(need))
        .map(|&(_, package)| package)
        .collect();
    packages.dedup();
    packages
}

/// Fails with the names of what is missing.
pub(super) fn check() -> Result<(), Failure> {
    let packages = missing_packages();
    match packages.is_empty() {
        true => Ok(()),
        false => Err(Failure::NoImageTools {
            packages: packages.join(" "),
        }),
    }
}

/// A program of [`NEEDS`].
pub(super) fn command(name: &str) -> Command {
    let mut command = Command::new(find(name).unwrap_or_else(|| name.into()));
    // mtools asks nothing of files that are no floppies.
    command.env("MTOOLS_SKIP_CHECK", "1");
    command
}

/// Runs the program to its end; what it says is shown only if it fails.
pub(super) fn run(mut command: Command) -> Result<(), Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(Failure::file(&name))?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.lines().rev().find(|line| !line.trim().is_empty());
            Err(Failure::ImageTool {
                name,
                said: last.unwrap_or("it says nothing").trim().into(),
            })
        }
    }
}
