//! `sietch restart`: ends machines and starts them again, as they were started, but for what was changed since
//! ([`crate::line`]), in the background.

use super::{background, stop};
use crate::failure::Failure;
use crate::flags::StopFlags;
use crate::state::Folder;

/// Runs the command.
pub fn restart(flags: &StopFlags) -> Result<u8, Failure> {
    for name in &flags.names {
        restart_one(name, flags.seconds)?;
        println!("{name}");
    }
    Ok(0)
}

fn restart_one(name: &str, seconds: Option<u64>) -> Result<(), Failure> {
    let folder = Folder::of(name);
    let settings = folder.settings();
    let mut settings = settings.ok_or_else(|| Failure::NoSuchMachine { name: name.into() })?;
    if settings.is_served() {
        stop::stop_one(name, seconds)?;
        folder.wait_for_session();
        // Its line may have been changed meanwhile; with --rm nothing is kept.
        settings = folder.settings().unwrap_or(settings);
    }
    let (name, folder) = Folder::take(Some(name), name)?;
    background::start(&name, &folder, &settings.arguments, &settings.directory)
}
