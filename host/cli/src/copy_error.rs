//! What may keep files from being copied (`copy`).

use agent::tree::Trouble;

/// A sentence each: what, why, the way out.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// Neither side is in a machine.
    #[error(
        "`sietch cp` copies between this host and a machine: give one side as NAME:PATH, and the other one as a path or -."
    )]
    NoMachine,
    /// Both sides are.
    #[error(
        "`sietch cp` does not copy from one machine to another: copy to this host first, or by `sietch cp NAME:PATH - | sietch cp - NAME:PATH`."
    )]
    TwoMachines,
    /// The source is not there.
    #[error("The machine {machine} has no {path}: `sietch cp` takes paths from its root.")]
    NotInMachine {
        /// Its name.
        machine: String,
        /// What was asked for.
        path: String,
    },
    /// A folder is to be copied over a file.
    #[error(
        "{0} is a file, and a folder cannot take its place: name a folder, or one that is not there yet."
    )]
    OverFile(String),
    /// The target's folder is not there.
    #[error("There is no folder {0} to copy into: make it first, or leave a slash at its end out.")]
    NoFolder(String),
    /// `-a` by one who may not give files away.
    #[error(
        "{0} cannot be given to its owner, which only root may do on this host: leave out -a, or copy as root."
    )]
    NotRoot(String),
    /// The request is too long.
    #[error("The path is too long.")]
    TooLong,
    /// A tar to a terminal.
    #[error("Standard output is a terminal, which shows no tar: redirect it, as in > FILE.")]
    Terminal,
    /// A name in a tar that leads elsewhere.
    #[error(
        "The tar has a name that leads out of the folder, {0}: nothing from there on was copied."
    )]
    NameInTar(String),
    /// A name from a machine that leads elsewhere.
    #[error(
        "The machine sent a name that leads out of the folder, {0}: nothing from there on was copied."
    )]
    NameFromMachine(String),
    /// Standard input is no tar.
    #[error("Standard input is no tar that can be read: {0}.")]
    NoTar(std::io::Error),
    /// A file that the machine does not take.
    #[error("The machine {machine} did not take {name}: {}.", why(*trouble))]
    NotTaken {
        /// The machine.
        machine: String,
        /// Which file.
        name: String,
        /// Why.
        trouble: Trouble,
    },
    /// The machine ended meanwhile.
    #[error("The machine {0} ended before all was copied; what is there is whole.")]
    Ended(String),
    /// Somebody interrupted.
    #[error("Interrupted before all was copied; what is there is whole.")]
    Interrupted,
    /// The machine cannot begin.
    #[error("The machine {machine} did not begin to copy: {reason}.")]
    Refused {
        /// The machine.
        machine: String,
        /// Why.
        reason: &'static str,
    },
}

/// Why a file is not copied, for the end of a sentence.
pub(crate) fn why(trouble: Trouble) -> &'static str {
    match trouble {
        Trouble::NotFound => "it, or the folder that it is in, is not there",
        Trouble::NotFolder => {
            "something on the way is no folder, or what is there is a file and no folder"
        }
        Trouble::IsFolder => "there is a folder of that name",
        Trouble::Denied => "it is not allowed",
        Trouble::ReadOnly => "what it is on can only be read",
        Trouble::NoSpace => "there is no room for it",
        Trouble::NoMemory => "the machine has too little memory, of which -m gives it more",
        Trouble::TooLong => "its path is too long",
        Trouble::Links => "a symbolic link is in the way",
        Trouble::BadRecord => "its name leads out of the folder",
        Trouble::Cut => "it ended too early",
        Trouble::Other => "it cannot be read or written",
    }
}
