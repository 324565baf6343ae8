//! Machines without a terminal: this command again, in the background.
//!
//! The environment variable [`DETACHED`] tells it so, and under which name; its folder is taken already.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::failure::Failure;
use crate::state::Folder;

/// Set for the process behind a detached machine, to the machine's name.
const DETACHED: &str = "SIETCH_DETACHED";
/// Beside it: who took the folder ([`Folder::owner`]).
const OWNER: &str = "SIETCH_OWNER";
const POLL: Duration = Duration::from_millis(20);

/// The name of the machine that this process serves in the background.
pub fn name() -> Option<String> {
    env::var(DETACHED).ok()
}

/// Makes the folder of the machine `name` that of this process, which serves it, and not of the one that started this one and
/// is about to leave.
///
/// Errors: `NameTaken` if that was killed, and somebody else took the folder.
pub fn take_over(name: &str) -> Result<(), Failure> {
    match env::var(OWNER) {
        Ok(owner) => Folder::of(name).take_over(name, &owner),
        Err(_) => Ok(()),
    }
}

/// Starts `sietch` with these arguments, in that directory, as the machine `name`, and waits until it is listed, or has
/// come and gone with `--rm`.
pub fn start(
    name: &str,
    folder: &Folder,
    arguments: &[impl AsRef<OsStr>],
    directory: &Path,
) -> Result<(), Failure> {
    let log = folder.console_log();
    let words = OpenOptions::new().create(true).append(true).open(&log);
    let words = words.map_err(Failure::file(&log))?;
    let this = env::current_exe().map_err(Failure::file("sietch"))?;
    let mut child = Command::new(this)
        .args(arguments)
        .current_dir(directory)
        .env(DETACHED, name)
        .env(OWNER, folder.owner().unwrap_or_default())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(words)
        .process_group(0)
        .spawn()
        .map_err(Failure::Lost)?;
    while folder.settings().is_none() && folder.path().exists() {
        if child.try_wait().map_err(Failure::Lost)?.is_some() && folder.path().exists() {
            let reason = fs::read_to_string(&log).unwrap_or_default();
            return Err(Failure::DidNotStart {
                name: name.into(),
                reason: reason.trim().into(),
            });
        }
        thread::sleep(POLL);
    }
    Ok(())
}
