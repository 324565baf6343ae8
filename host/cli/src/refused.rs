//! Why the agent of a machine did not start a command, as a sentence.

use agent::{CHANNELS_MAX, Refusal};

/// Why a command does not start: a sentence.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.sentence())]
pub struct ExecRefused {
    /// The machine's name.
    pub machine: String,
    /// The command's first word.
    pub program: String,
    /// The folder that was asked for; empty if none was.
    pub directory: String,
    /// What the machine says.
    pub reason: Refusal,
}

impl ExecRefused {
    /// The exit status, as docker has it.
    pub fn status(&self) -> u8 {
        self.reason.status()
    }

    fn sentence(&self) -> String {
        let Self {
            machine,
            program,
            directory,
            ..
        } = self;
        match self.reason {
            Refusal::NoProgram => format!(
                "The machine {machine} has no program {program}: a packed image has only what its program needs, so start it with `sietch run --add HOST:GUEST`."
            ),
            Refusal::NotExecutable => {
                format!("{program} cannot be executed in the machine {machine}.")
            }
            Refusal::NoDirectory => {
                format!(
                    "The machine {machine} has no folder {directory}: correct the path after -w."
                )
            }
            Refusal::OutOfMemory => format!(
                "The machine {machine} has not enough memory to start {program}: start it with a larger -m."
            ),
            Refusal::TooMany => format!(
                "The machine {machine} runs as many commands as it can ({} at once): wait until one has ended.",
                CHANNELS_MAX
            ),
            Refusal::ArgumentsTooLong => {
                format!("The arguments of {program} are too long.")
            }
            Refusal::BadRequest | Refusal::Other => {
                format!("The machine {machine} did not start {program}.")
            }
        }
    }
}
