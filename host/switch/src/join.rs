//! A machine's side: it finds the switch, or starts it, and is a member as long as its process lives.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::network::Lease;
use crate::protocol::{Answer, Description, Join, Request};

/// How long a switch may take to start.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a machine that had the name or the address before may take to leave.
const LEAVING: Duration = Duration::from_secs(5);
/// Between two starts: a switch that finds another one ends.
const BETWEEN_STARTS: Duration = Duration::from_millis(500);
const POLL: Duration = Duration::from_millis(10);

/// What makes a member's process start a switch.
pub type Start = dyn Fn() -> io::Result<()> + Send;

/// Why a machine is no member.
#[derive(Debug)]
pub enum JoinError {
    /// The switch says no; a sentence.
    Refused(String),
    /// There is no switch, and none starts.
    Io(io::Error),
}

/// A member's place in a network.
#[derive(Debug)]
pub struct Membership {
    /// What it has.
    pub lease: Lease,
    /// Its end is the member's.
    control: UnixStream,
}

impl Membership {
    /// Joins by the switch at `socket`, which `start` starts if there is none.
    pub fn join(socket: &Path, join: &Join, start: &Start) -> Result<Self, JoinError> {
        let begin = Instant::now();
        let mut last_start: Option<Instant> = None;
        loop {
            let (failure, patience) = match ask(socket, &Request::Join(join.clone())) {
                Ok((Answer::Joined(lease), control)) => return Ok(Self { lease, control }),
                Ok((Answer::Refused(sentence), _)) => return Err(JoinError::Refused(sentence)),
                Ok((Answer::Taken(sentence), _)) => (JoinError::Refused(sentence), LEAVING),
                Ok((Answer::Described(_), _)) => {
                    return Err(JoinError::Io(io::ErrorKind::InvalidData.into()));
                }
                Err(error) => {
                    if last_start.is_none_or(|last| last.elapsed() > BETWEEN_STARTS) {
                        last_start = Some(Instant::now());
                        start().map_err(JoinError::Io)?;
                    }
                    (JoinError::Io(error), PATIENCE)
                }
            };
            if begin.elapsed() > patience {
                return Err(failure);
            }
            thread::sleep(POLL);
        }
    }

    /// Stays a member in the background, by another switch if this one ends, with the same address.
    pub fn keep(self, socket: &Path, join: Join, start: Box<Start>) {
        let socket = socket.to_path_buf();
        let join = Join {
            wish: Some(self.lease.address),
            ..join
        };
        thread::spawn(move || {
            let mut member = Some(self);
            loop {
                if let Some(mut member) = member.take() {
                    // It says nothing; what ends the read is the switch's end.
                    let _ = member.control.read(&mut [0; 1]);
                }
                match Self::join(&socket, &join, &*start) {
                    Ok(again) => member = Some(again),
                    Err(_) => thread::sleep(BETWEEN_STARTS),
                }
            }
        });
    }
}

/// Who is there; `None` if no switch runs.
pub fn describe(socket: &Path) -> Option<Description> {
    match ask(socket, &Request::Describe) {
        Ok((Answer::Described(description), _)) => Some(description),
        _ => None,
    }
}

fn ask(socket: &Path, request: &Request) -> io::Result<(Answer, UnixStream)> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut answer = String::new();
    // It says one line, so nothing that is read too early is lost.
    BufReader::new(&mut stream).read_line(&mut answer)?;
    let answer = serde_json::from_str(&answer)?;
    stream.set_read_timeout(None)?;
    Ok((answer, stream))
}
