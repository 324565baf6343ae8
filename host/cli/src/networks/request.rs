//! What a machine's session is asked of its networks while it runs: a line of JSON each way, at a socket in the machine's folder.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// The longest line.
pub(super) const LINE_BYTES_MAX: u64 = 1 << 14;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Wish {
    /// To be on one more network, in the words of `--network`.
    Connect(String),
    /// To be on one network less.
    Disconnect {
        /// Its name.
        network: String,
        /// Also if the machine does not give its link back.
        by_force: bool,
    },
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reply {
    /// It is so.
    Done,
    /// It is not; a sentence.
    Refused(String),
}

/// Where the session of the machine in `folder` listens.
pub(super) fn socket(folder: &Path) -> PathBuf {
    folder.join("links.sock")
}

/// Asks the session of the machine in `folder`, which goes on if this process ends; false if there is none that could.
///
/// Errors: what the session says; `Lost` if it ends.
pub(crate) fn ask(folder: &Path, wish: &Wish) -> Result<bool, Failure> {
    let Ok(stream) = UnixStream::connect(socket(folder)) else {
        return Ok(false);
    };
    match exchange(stream, wish).map_err(Failure::Lost)? {
        Reply::Done => Ok(true),
        Reply::Refused(sentence) => Err(Failure::OfSession(sentence)),
    }
}

fn exchange(mut stream: UnixStream, wish: &Wish) -> io::Result<Reply> {
    let mut line = serde_json::to_vec(wish)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut answer = String::new();
    // Each step of the session's has an end.
    BufReader::new(stream).read_line(&mut answer)?;
    match answer.is_empty() {
        true => Err(io::ErrorKind::UnexpectedEof.into()),
        false => Ok(serde_json::from_str(&answer)?),
    }
}
