//! `sietch wait`: waits until machines have ended, and prints their statuses.

use std::thread;
use std::time::Duration;

use crate::failure::Failure;
use crate::flags::MachinesFlags;
use crate::state::{Folder, Settings};

const POLL: Duration = Duration::from_millis(20);

/// Runs the command.
pub fn wait(flags: &MachinesFlags) -> Result<u8, Failure> {
    for name in &flags.names {
        println!("{}", wait_for(&Folder::of(name), name)?.status());
    }
    Ok(0)
}

/// The settings of a machine once it has ended.
fn wait_for(folder: &Folder, name: &str) -> Result<Settings, Failure> {
    loop {
        match folder.settings() {
            None => return Err(Failure::NoSuchMachine { name: name.into() }),
            // Its session still has to say how it ended.
            Some(settings) if settings.is_served() => thread::sleep(POLL),
            Some(settings) => return Ok(settings),
        }
    }
}
