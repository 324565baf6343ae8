//! `sietch rm`: removes what is kept of machines that have ended.

use crate::events;
use crate::failure::Failure;
use crate::flags::RmFlags;
use crate::state::Folder;

/// Runs the command.
pub fn rm(flags: &RmFlags) -> Result<u8, Failure> {
    for name in &flags.names {
        rm_one(name, flags.force)?;
        events::note(name, "destroy", None);
        println!("{name}");
    }
    Ok(0)
}

pub(super) fn rm_one(name: &str, force: bool) -> Result<(), Failure> {
    let folder = Folder::of(name);
    folder.wait_for_start();
    if folder.is_abandoned() && folder.remove_if(Folder::is_abandoned)? {
        return Ok(());
    }
    let Some(settings) = folder.settings() else {
        return Err(Failure::NoSuchMachine { name: name.into() });
    };
    let still_runs = || Failure::StillRuns { name: name.into() };
    if settings.is_served() {
        if !force {
            return Err(still_runs());
        }
        // Its folder, and the wish in it, go before this process.
        let _wish = folder.note_wish_to_stop();
        folder.kill_and_wait_for_session(&settings);
    }
    let is_meant = |folder: &Folder| match folder.settings() {
        Some(now) => now.is_of_session_of(&settings) || !now.is_served(),
        None => !folder.is_in_use(),
    };
    match folder.remove_if(is_meant)? {
        true => Ok(()),
        // By now that is the next one of its name.
        false => Err(still_runs()),
    }
}
