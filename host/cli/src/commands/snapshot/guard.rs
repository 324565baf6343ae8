//! Who lets a machine go on if `sietch snapshot` is killed while it stands.
//!
//! A machine stands for as long as its snapshot is made, and only who makes it lets it go on. That process may be killed; then a
//! server would stand for ever, and `ps` would show it as one that runs. So before the machine stands there is a second process,
//! whose standard input is a pipe from the first one. A byte there says that all is done; its end without one, which comes
//! however the first process ends, that it is not.

use std::env;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::state::Folder;

/// How long the guard tries: QEMU hears one after the other.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(100);
const DONE: u8 = b'.';

/// The second process.
pub(super) struct Guard(Child);

impl Guard {
    /// For the machine `name`.
    pub(super) fn over(name: &str) -> Result<Self, Failure> {
        let this = env::current_exe().map_err(Failure::file("sietch"))?;
        let child = Command::new(this)
            .args(["snapshot", "--guard", name])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C is not for it.
            .process_group(0)
            .spawn();
        child.map(Self).map_err(Failure::Lost)
    }

    /// The machine goes on.
    pub(super) fn dismiss(mut self) {
        if let Some(mut input) = self.0.stdin.take() {
            // It may have been killed, too.
            let _ = input.write_all(&[DONE]);
        }
        let _ = self.0.wait();
    }
}

/// Is the second process of the machine `name`.
pub(super) fn guard(name: &str) -> Result<u8, Failure> {
    let is_done = io::stdin()
        .lock()
        .read(&mut [0])
        .is_ok_and(|count| count > 0);
    if is_done {
        return Ok(0);
    }
    let folder = Folder::of(name);
    let deadline = Instant::now() + PATIENCE;
    loop {
        let plan = folder.running().and_then(|_| folder.plan());
        // One that has ended stands no more.
        let Some((machine, _)) = plan else {
            return Ok(0);
        };
        match qemu::snapshot::give_up(&machine) {
            Err(_) if Instant::now() < deadline => thread::sleep(POLL),
            given_up => return Ok(given_up.map(|()| 0)?),
        }
    }
}
