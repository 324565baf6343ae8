//! A command in a machine whose output is kept, and which may take only so long.

use std::time::{Duration, Instant};

use agent::{Decoder, Message, Request, Strings, block};

use super::client::{CHANNEL, Client};
use super::next_frame;
use crate::signals;

/// Bytes of output that are kept.
const OUTPUT_MAX: usize = 4096;
/// The status of a command that took too long, or did not start: unhealthy.
const STATUS_FAILED: u8 = 1;
/// How long the machine may take to say that a killed command has ended.
const PATIENCE: Duration = Duration::from_secs(10);

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its status.
    pub status: u8,
    /// What it wrote, to both outputs.
    pub output: String,
}

/// As long a command may take, however long it is to.
const TIMEOUT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Runs `command` in the machine `name` for `timeout` at the most; `None` if the machine has ended.
pub fn ask(name: &str, command: &[String], timeout: Duration) -> Option<Answer> {
    let arguments = block(command.iter().map(String::as_bytes))?;
    let request = Request {
        arguments: Strings::of_block(&arguments)?,
        ..Request::default()
    };
    ask_for(name, &request, timeout)
}

/// Like [`ask`], for anything without input.
pub fn ask_for(name: &str, request: &Request<'_>, timeout: Duration) -> Option<Answer> {
    let (client, mut stream) = Client::connect(name).ok()?;
    client.ask(&request.encode()?).ok()?;
    let mut deadline = Instant::now() + timeout.min(TIMEOUT_MAX);
    let (mut output, mut is_late) = (Vec::new(), false);
    let mut decoder = Decoder::default();
    loop {
        // However much it writes.
        if Instant::now() >= deadline {
            if is_late {
                return Some(late(timeout));
            }
            is_late = true;
            deadline = Instant::now() + PATIENCE;
            let _ = client.say(CHANNEL, Message::Signal(signals::KILL));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let left = left.max(Duration::from_millis(1));
        stream.set_read_timeout(Some(left)).ok()?;
        let frame = match next_frame(&mut stream, &mut decoder) {
            Ok(frame) => frame?,
            Err(error) if is_timeout(&error) => continue,
            Err(_) => return None,
        };
        match frame.message {
            Message::Exit(_) if is_late => return Some(late(timeout)),
            Message::Exit(status) => {
                let output = String::from_utf8_lossy(&output).into_owned();
                return Some(Answer { status, output });
            }
            Message::Refused(reason) => {
                return Some(Answer {
                    status: reason.status(),
                    output: format!("The command did not start: {reason:?}."),
                });
            }
            Message::Stdout(bytes) | Message::Stderr(bytes) => {
                let room = OUTPUT_MAX - output.len();
                output.extend(bytes.iter().take(room));
                let _ = client.say(CHANNEL, Message::Credit(bytes.len() as u32));
            }
            _ => {}
        }
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{TimedOut, WouldBlock};
    matches!(error.kind(), TimedOut | WouldBlock)
}

fn late(timeout: Duration) -> Answer {
    Answer {
        status: STATUS_FAILED,
        output: format!("The command took longer than {timeout:?}."),
    }
}
