//! `sietch stop`: asks programs to end, and ends machines that do not.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use qemu::TERMINATE;

use crate::failure::Failure;
use crate::flags::StopFlags;
use crate::state::{Folder, kill};

const POLL: Duration = Duration::from_millis(20);

/// Runs the command.
pub fn stop(flags: &StopFlags) -> Result<u8, Failure> {
    for name in &flags.names {
        stop_one(name, Duration::from_secs(flags.seconds))?;
        println!("{name}");
    }
    Ok(0)
}

/// Asks one to end; after `patience` it is ended.
pub(super) fn stop_one(name: &str, patience: Duration) -> Result<(), Failure> {
    let folder = Folder::of(name);
    let settings = folder
        .running()
        .ok_or_else(|| Failure::NoSuchMachine { name: name.into() })?;
    let asked = UnixStream::connect(folder.path().join("control.sock"))
        .and_then(|mut socket| socket.write_all(&[TERMINATE]));
    let deadline = Instant::now()
        + if asked.is_ok() {
            patience
        } else {
            Duration::ZERO
        };
    while folder
        .settings()
        .is_some_and(|settings| settings.is_served())
    {
        if Instant::now() >= deadline {
            kill(&settings);
        }
        thread::sleep(POLL);
    }
    Ok(())
}
