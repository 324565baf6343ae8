//! Why a command does not start.

/// The reason; the host makes the sentence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The machine has no such program.
    NoProgram,
    /// What it has of that name cannot be run.
    NotExecutable,
    /// The directory to start in is not there.
    NoDirectory,
    /// The machine has too little memory.
    OutOfMemory,
    /// The machine has as many processes, terminals or files as it can.
    TooMany,
    /// The arguments are too long.
    ArgumentsTooLong,
    /// The request is no request.
    BadRequest,
    /// Something else.
    Other,
}

impl Refusal {
    const ALL: [Self; 8] = [
        Self::NoProgram,
        Self::NotExecutable,
        Self::NoDirectory,
        Self::OutOfMemory,
        Self::TooMany,
        Self::ArgumentsTooLong,
        Self::BadRequest,
        Self::Other,
    ];

    pub(crate) fn of_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.code() == code)
    }

    pub(crate) fn code(self) -> u8 {
        self as u8
    }

    /// The status of a shell, or of docker, for it.
    pub fn status(self) -> u8 {
        match self {
            Self::NoProgram | Self::NoDirectory => 127,
            Self::NotExecutable => 126,
            _ => 125,
        }
    }
}
