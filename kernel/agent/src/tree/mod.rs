//! Files that are copied into the machine or out of it (`sietch cp`), and what is to be known of them (`sietch top`).
//!
//! The problem: a machine that was made for one program has no `tar`, and bytes from a disk or from the host come when they
//! come, while the agent's thread must never wait.
//!
//! The idea: a copy is a process as a command is one, with pipes at its ends, only that it never leaves the kernel. So
//! it waits alone, what it holds is freed when it ends, and flow control is that of any command. It acts for root, as
//! whoever has the machine may do in it what he likes.
//!
//! What comes from the host is believed as little as elsewhere: no name leads out of the folder that was asked for, and no
//! symbolic link below it is followed. A file appears whole or not at all: it is written under another name, and renamed.
//!
//! What is held is bounded: a chunk, a path, and for each folder on the way down a batch of names.
//!
//! ```text
//! stream.rs   whole records from and to pipes
//! send.rs     files to records
//! receive.rs  records to files
//! ```

mod receive;
mod send;
mod stream;

use alloc::sync::Arc;
use alloc::vec::Vec;

use agent::tree::Trouble;
use agent::{Request, Task};
use mach::mem::fallible::{self, TryPush};
use sync::{Error, Result};
use task::ExitStatus;
use vfs::file::OpenFile;

use stream::{Input, Output};

/// The status of a copy that failed, or a part of it.
const STATUS_FAILED: u8 = 1;

/// A copy that is to be done.
pub(crate) enum Copy {
    /// Of these paths, to the host.
    Send(send::How, Vec<Vec<u8>>),
    /// Into this folder.
    Receive(Vec<u8>),
}

impl Copy {
    /// The one that `request` asks for; `None` if it asks for a command.
    ///
    /// Errors: `OutOfMemory`, and `Invalid` without a path.
    pub(crate) fn of(request: &Request<'_>) -> Result<Option<Self>> {
        match request.task {
            Task::Run | Task::AddLinks | Task::RemoveLinks => Ok(None),
            Task::Receive => {
                let folder = request.arguments.clone().next().ok_or(Error::Invalid)?;
                Ok(Some(Self::Receive(fallible::copied(folder)?)))
            }
            Task::Send { depth, follows } => {
                let mut paths = Vec::new();
                for path in request.arguments {
                    paths.try_push(fallible::copied(path)?)?;
                }
                Ok(Some(Self::Send(send::How { depth, follows }, paths)))
            }
        }
    }

    /// Does it. Who reads `output` may have gone; then nobody hears of the end.
    pub(crate) fn run(self, input: Option<Arc<OpenFile>>, output: Arc<OpenFile>) -> ExitStatus {
        let Ok(mut output) = Output::new(output) else {
            return ExitStatus::Exited(STATUS_FAILED);
        };
        let is_done = match (self, input) {
            (Self::Send(how, paths), _) => send::send(how, &paths, &mut output),
            (Self::Receive(folder), Some(input)) => {
                let received = Input::new(input)
                    .map_err(|error| (trouble_of(error), Vec::new()))
                    .and_then(|mut input| receive::receive(&folder, &mut input));
                match received {
                    Ok(()) => Ok(true),
                    Err((trouble, name)) => output.trouble(trouble, &name).map(|()| false),
                }
            }
            (Self::Receive(_), None) => Ok(false),
        };
        match is_done {
            Ok(true) => ExitStatus::Exited(0),
            _ => ExitStatus::Exited(STATUS_FAILED),
        }
    }
}

/// What the host is told of an error.
fn trouble_of(error: Error) -> Trouble {
    match error {
        Error::NotFound => Trouble::NotFound,
        Error::NotDirectory => Trouble::NotFolder,
        Error::IsDirectory => Trouble::IsFolder,
        Error::AccessDenied | Error::NotPermitted | Error::Busy => Trouble::Denied,
        Error::ReadOnly => Trouble::ReadOnly,
        Error::NoSpace | Error::OverQuota | Error::FileTooLarge => Trouble::NoSpace,
        Error::OutOfMemory => Trouble::NoMemory,
        Error::NameTooLong => Trouble::TooLong,
        Error::TooManySymlinks => Trouble::Links,
        Error::BrokenPipe | Error::Interrupted(_) => Trouble::Cut,
        _ => Trouble::Other,
    }
}
