//! Where the kernel is.

use std::env;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Where cargo puts the kernel, from the target folder.
const IN_TARGET: &str = "x86_64-unknown-none/release/sietch-kernel";

/// Where an installed program's files are, from the folder above its `bin`.
const INSTALLED: &str = "lib/sietch";

/// The kernel that `SIETCH_KERNEL` names, or the one built beside this program.
pub fn find() -> Result<PathBuf, Failure> {
    let path = match env::var_os("SIETCH_KERNEL") {
        Some(path) => PathBuf::from(path),
        None => built_or_installed(IN_TARGET),
    };
    if path.is_file() {
        Ok(path)
    } else {
        Err(Failure::NoKernel { path })
    }
}

/// Whether the kernel at `path` is ours, an ELF file: Linux, for comparison, is none.
pub fn is_ours(path: &Path) -> bool {
    let mut magic = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == *b"\x7fELF"
}

/// A file of the project's, by its place in cargo's target folder: there, if this program lies there too, and else where the
/// Debian package has it, in `lib/sietch` beside the program's `bin`.
pub fn built_or_installed(in_target: &str) -> PathBuf {
    let program = env::current_exe().unwrap_or_default();
    // `target` is two folders above `target/release/sietch`; test programs lie one deeper.
    let mut above = program.ancestors();
    if let Some(target) = above.find(|folder| folder.ends_with("target")) {
        return target.join(in_target);
    }
    let name = Path::new(in_target).file_name().unwrap_or_default();
    let prefix = program.ancestors().nth(2).unwrap_or(Path::new("/usr"));
    prefix.join(INSTALLED).join(name)
}
