//! Packs a program from this host into an image that Sietch can boot.
//!
//! A program needs more than its file: the interpreter that its ELF header or its
//! `#!` line names, the shared libraries that it and they ask for, the libraries that
//! glibc opens by itself, and some files in `/etc`. We collect these at the very
//! paths where they are on the host, symbolic links included, so that every path
//! which the program or its loader knows leads to the same file.
//!
//! What no header tells (Python's modules, nginx' configuration) stands in the table
//! of `profiles`, or the user says it with `--add`.
//!
//! A program that runs commands by system(3) or popen(3), or names `/bin/sh`, has that shell, too (`shell`); one that
//! does not has none.
//!
//! Invariant: an image never holds a path below a symbolic link; `image` resolves the
//! links first.

pub mod closure;
pub mod elf;
pub mod error;
pub mod etc;
pub mod image;
pub mod ld_cache;
pub mod profiles;
pub mod program;
pub mod run_file;
mod shell;

pub use error::PackError;
pub use image::Image;
pub use program::Packed;
pub use run_file::RunFile;
