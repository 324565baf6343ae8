//! `sietch wait`: waits until machines have ended, and prints their statuses.

use std::thread;
use std::time::Duration;

use serde::Serialize;

use crate::failure::Failure;
use crate::flags::MachinesFlags;
use crate::state::{Folder, Settings};

const POLL: Duration = Duration::from_millis(20);

/// The fields are those of `--output json`.
#[derive(Serialize)]
struct Ended {
    name: String,
    status: u8,
}

/// Runs the command.
pub fn wait(flags: &MachinesFlags) -> Result<u8, Failure> {
    let mut ended = Vec::new();
    for name in &flags.names {
        let status = wait_for(&Folder::of(name), name)?.status();
        if flags.output.is_table() {
            println!("{status}");
        }
        let name = name.clone();
        ended.push(Ended { name, status });
    }
    flags.output.list(&ended, |_| ())?;
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
