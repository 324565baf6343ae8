//! `libsietch.so` in front of the program: for the card (`--bypass`), and for files on a log (`--log`).

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::kernel_file;
use crate::pack::{PackError, Packed, elf};

/// Names the library, where it is not in the target folder.
const VARIABLE: &str = "SIETCH_LIBRARY";
/// Where cargo puts it, from the target folder.
const IN_TARGET: &str = "release/libsietch.so";
const IN_MACHINE: &str = "/lib/libsietch.so";

/// Puts the library into the program's image.
pub fn add_to(packed: &mut Packed) -> Result<(), Failure> {
    if is_static(&packed.path)? {
        return Err(Failure::StaticProgram {
            path: packed.path.clone(),
        });
    }
    Ok(packed.add(&library()?, Path::new(IN_MACHINE))?)
}

/// What has it loaded.
pub fn variable() -> String {
    format!("LD_PRELOAD={IN_MACHINE}")
}

fn library() -> Result<PathBuf, Failure> {
    let path = match env::var_os(VARIABLE) {
        Some(path) => PathBuf::from(path),
        None => kernel_file::built_or_installed(IN_TARGET),
    };
    match path.is_file() {
        true => Ok(path),
        false => Err(Failure::NoLibrary { path }),
    }
}

/// A static program makes its system calls itself. Scripts have an interpreter, which is another
/// program.
fn is_static(path: &Path) -> Result<bool, PackError> {
    let bytes = fs::read(path).unwrap_or_default();
    Ok(elf::is_elf(&bytes) && elf::needs(path, &bytes)?.interpreter.is_none())
}
