//! Where the kernel is.

use std::env;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Where cargo puts the kernel, from the target folder.
const IN_TARGET: &str = "x86_64-unknown-none/release/sietch-kernel";

/// The kernel that `SIETCH_KERNEL` names, or the one built beside this program.
pub fn find() -> Result<PathBuf, Failure> {
    let path = match env::var_os("SIETCH_KERNEL") {
        Some(path) => PathBuf::from(path),
        None => target_folder().join(IN_TARGET),
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

/// `target`, two folders above `target/release/sietch`; test programs lie one deeper.
pub fn target_folder() -> PathBuf {
    let program = env::current_exe().unwrap_or_default();
    let target = program
        .ancestors()
        .find(|folder| folder.ends_with("target"));
    target.map_or_else(|| PathBuf::from("target"), PathBuf::from)
}
