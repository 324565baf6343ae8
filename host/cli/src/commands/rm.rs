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
    if folder.is_abandoned() {
        return folder.remove();
    }
    let Some(settings) = folder.settings() else {
        return Err(Failure::NoSuchMachine { name: name.into() });
    };
    if settings.is_served() {
        if !force {
            return Err(Failure::StillRuns { name: name.into() });
        }
        // Its folder, and the wish in it, go before this process.
        let _wish = folder.note_wish_to_stop()?;
        folder.kill_and_wait_for_session();
    }
    folder.remove()
}
