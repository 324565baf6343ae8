//! `sietch rename`: gives a machine that has ended another name.
//!
//! The name of one that runs is that of the folder with its sockets, and programs in it may know it.

use crate::events;
use crate::failure::Failure;
use crate::flags::RenameFlags;
use crate::line;
use crate::state::{Folder, Settings};

/// Runs the command.
pub fn rename(flags: &RenameFlags) -> Result<u8, Failure> {
    let (old, new) = (&flags.name, &flags.new_name);
    let folder = Folder::of(old);
    let no_such = || Failure::NoSuchMachine { name: old.clone() };
    folder.settings().ok_or_else(no_such)?;
    let places = folder.lock_places()?;
    // Somebody may change its line right now.
    let _lock = folder.lock()?;
    let settings = folder.settings().ok_or_else(no_such)?;
    if settings.is_served() {
        return Err(Failure::StillRuns { name: old.clone() });
    }
    if Folder::of(new).settings().is_some() || Folder::of(new).is_in_use() {
        return Err(Failure::NameTaken { name: new.clone() });
    }
    let arguments = line::with(&settings, "--name", Some(new));
    // Where it does not move, nothing of it has changed.
    folder.rename(new, &places)?;
    Folder::of(new).write_settings(&Settings {
        name: new.clone(),
        arguments,
        ..settings
    })?;
    // Others are not to wait for our output.
    drop(places);
    events::note(new, "rename", None);
    println!("{new}");
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::tests::machine;

    #[test]
    fn a_machine_that_is_started_again_has_its_new_name_and_the_program_its_words() {
        let told = |text: &str| {
            let settings = machine(text, "of the snapshot");
            line::with(&settings, "--name", Some("new")).join(" ")
        };
        assert_eq!(told("run -d a --name x"), "run --name=new -d a --name x");
        assert_eq!(told("run --name old -d a"), "run --name=new -d a");
        assert_eq!(told("run --name=old a b"), "run --name=new a b");
        assert_eq!(
            told("run --from warm -d --name old"),
            "run --name=new --from warm -d"
        );
    }
}
