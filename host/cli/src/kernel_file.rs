//! Where the kernel is.

use std::env;
use std::path::PathBuf;

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

/// `target`, two folders above `target/release/sietch`; test programs lie one deeper.
fn target_folder() -> PathBuf {
    let program = env::current_exe().unwrap_or_default();
    let target = program
        .ancestors()
        .find(|folder| folder.ends_with("target"));
    target.map_or_else(|| PathBuf::from("target"), PathBuf::from)
}
