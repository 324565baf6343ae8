//! `sietch logs`: shows what a machine's program wrote.

use std::fs::File;
use std::io::{self, Write};
use std::thread;
use std::time::Duration;

use crate::failure::Failure;
use crate::flags::LogsFlags;
use crate::state::Folder;

const POLL: Duration = Duration::from_millis(100);

/// Runs the command.
pub fn logs(flags: &LogsFlags) -> Result<u8, Failure> {
    let folder = Folder::of(&flags.name);
    let path = folder.console_log();
    let mut log = File::open(&path).map_err(|_| Failure::NoSuchMachine {
        name: flags.name.clone(),
    })?;
    let mut stdout = io::stdout();
    loop {
        // Looked at before the copy, so that the last words are copied too.
        let is_running = folder.running().is_some();
        let copied = io::copy(&mut log, &mut stdout).and_then(|_| stdout.flush());
        if copied.is_err() || !flags.follow || !is_running {
            return Ok(0);
        }
        thread::sleep(POLL);
    }
}
