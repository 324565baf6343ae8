//! Before the real program: the first process waits for a child that applies what the cloud says, and then becomes
//! the program.
//!
//! ```text
//! sietch-cloud-init start [--metadata] [--user UID:GID] PROGRAM ARGV...
//! sietch-cloud-init apply [--metadata]
//! ```

use std::env::{self, ArgsOs};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::system::uname;

use crate::apply;

/// For a child that reads and applies; the metadata service has a shorter one of its own.
pub const PATIENCE: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(2);
const METADATA: &str = "--metadata";
const USER: &str = "--user";
const FAILED: u8 = 127;

/// Does what the arguments say; returns only if the program cannot be started, or to the first process.
pub fn run(arguments: ArgsOs) -> ExitCode {
    let mut arguments = arguments.peekable();
    let this = arguments.next().unwrap_or_default();
    let verb = arguments.next().unwrap_or_default();
    let wants_metadata = arguments.next_if(|word| word == METADATA).is_some();
    if verb == "apply" {
        apply::all(wants_metadata);
        return ExitCode::SUCCESS;
    }
    let has_user = arguments.next_if(|word| word == USER).is_some();
    let user = has_user.then(|| arguments.next().unwrap_or_default());
    let program = arguments.next().unwrap_or_default();
    learn(&this, wants_metadata);
    let why = become_program(&program, arguments, user.as_deref());
    eprintln!("sietch: {} does not start: {why}", program.display());
    ExitCode::from(FAILED)
}

/// Waits for the child, and ends it when it takes too long.
fn learn(this: &OsStr, wants_metadata: bool) {
    let mut command = Command::new(this);
    command.arg("apply").stdin(Stdio::null());
    command.args(wants_metadata.then_some(METADATA));
    let waited = command.spawn().and_then(|child| wait(child, PATIENCE));
    if let Err(why) = waited {
        eprintln!("sietch: what the cloud says was not read to its end: {why}");
    }
}

fn wait(mut child: Child, patience: Duration) -> io::Result<()> {
    let deadline = Instant::now() + patience;
    loop {
        match child.try_wait()? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(io::Error::other(status.to_string())),
            None if Instant::now() > deadline => {
                child.kill()?;
                child.wait()?;
                return Err(io::ErrorKind::TimedOut.into());
            }
            None => thread::sleep(POLL),
        }
    }
}

/// Never comes back but with the reason.
fn become_program(
    program: &OsStr,
    mut argv: impl Iterator<Item = OsString>,
    user: Option<&OsStr>,
) -> io::Error {
    let mut command = Command::new(program);
    command.arg0(argv.next().unwrap_or(program.into()));
    command.args(argv);
    if env::var_os("HOSTNAME").is_some() {
        command.env("HOSTNAME", &*uname().nodename().to_string_lossy());
    }
    match user.map(numbers) {
        None => command.exec(),
        Some(Some((uid, gid))) => command.uid(uid).gid(gid).exec(),
        // Rather not at all than as root.
        Some(None) => io::ErrorKind::InvalidInput.into(),
    }
}

fn numbers(user: &OsStr) -> Option<(u32, u32)> {
    let (uid, gid) = user.to_str()?.split_once(':')?;
    Some((uid.parse().ok()?, gid.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(script: &str, patience: Duration) -> io::Result<()> {
        let child = Command::new("sh").args(["-c", script]).spawn()?;
        wait(child, patience)
    }

    #[test]
    fn a_child_that_fails_crashes_or_takes_too_long_is_an_error_and_gone() {
        ends("exit 0", PATIENCE).expect("it did well");
        assert!(ends("exit 1", PATIENCE).is_err());
        assert!(ends("kill -SEGV $$", PATIENCE).is_err());
        let late = ends("exec sleep 1000", Duration::from_millis(1)).expect_err("ended");
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn a_user_is_two_numbers() {
        assert_eq!(numbers(OsStr::new("7:8")), Some((7, 8)));
        assert_eq!(numbers(OsStr::new("7")), None);
    }
}
