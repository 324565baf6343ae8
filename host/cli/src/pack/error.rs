//! Why a program cannot be packed: each a sentence with the way out.

use std::io;
use std::path::PathBuf;

/// What keeps a program from being packed.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// Nothing of that name on the search path.
    #[error(
        "{name} is neither a program of this host nor an image that `sietch images` lists: install or pull it, or give its path."
    )]
    ProgramNotFound {
        /// The name as typed.
        name: String,
    },
    /// Neither an ELF file nor a script.
    #[error(
        "{} is not an ELF file and has no #! line: give a Linux program or a script.",
        path.display()
    )]
    NotAProgram {
        /// The file.
        path: PathBuf,
    },
    /// An ELF file for something else than 64-bit x86.
    #[error("{} is made for {found}, not for x86-64: give an x86-64 build of it.", path.display())]
    WrongArchitecture {
        /// The file.
        path: PathBuf,
        /// What it is made for.
        found: String,
    },
    /// The ELF file contradicts itself.
    #[error("{} is a damaged ELF file ({reason}): install it again.", path.display())]
    DamagedElf {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A shared library that is nowhere.
    #[error(
        "The library {library} is not found, and {} wants it: install it, or add it with --add.",
        wanted_by.display()
    )]
    LibraryNotFound {
        /// The library's name.
        library: String,
        /// The file that names it.
        wanted_by: PathBuf,
    },
    /// The interpreter of a script or the loader of a program is not there.
    #[error(
        "The interpreter {interpreter} is not found, and {} wants it: install it.",
        wanted_by.display()
    )]
    InterpreterNotFound {
        /// The interpreter as named.
        interpreter: String,
        /// The file that names it.
        wanted_by: PathBuf,
    },
    /// Symbolic links that lead nowhere.
    #[error("{} leads through too many symbolic links: repair the links.", path.display())]
    LinkLoop {
        /// Where we started.
        path: PathBuf,
    },
    /// A file that cannot be read.
    #[error("{} cannot be read: {source}.", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file of 4 GiB or more.
    #[error("{} is too large for an image: mount its folder with -v instead.", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
}

impl PackError {
    /// Wraps an I/O error with the path that it befell.
    pub fn unreadable(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Unreadable { path, source }
    }
}
