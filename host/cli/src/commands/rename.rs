//! `sietch rename`: gives a machine that has ended another name.
//!
//! The name of one that runs is that of the folder with its sockets, and programs in it may know it.

use crate::events;
use crate::failure::Failure;
use crate::flags::RenameFlags;
use crate::state::{Folder, Settings};

/// Runs the command.
pub fn rename(flags: &RenameFlags) -> Result<u8, Failure> {
    let (old, new) = (&flags.name, &flags.new_name);
    let folder = Folder::of(old);
    let settings = folder.settings();
    let settings = settings.ok_or_else(|| Failure::NoSuchMachine { name: old.clone() })?;
    if settings.is_served() {
        return Err(Failure::StillRuns { name: old.clone() });
    }
    if Folder::of(new).settings().is_some() {
        return Err(Failure::NameTaken { name: new.clone() });
    }
    let arguments = renamed(&settings.arguments, settings.words_of_program(), new);
    // Where it does not move, nothing of it has changed.
    folder.rename(new)?;
    Folder::of(new).write_settings(&Settings {
        name: new.clone(),
        arguments,
        ..settings
    })?;
    events::note(new, "rename", None);
    println!("{new}");
    Ok(0)
}

/// The line of `sietch run` with another `--name`; its last `of_program` words are the program's.
fn renamed(arguments: &[String], of_program: usize, name: &str) -> Vec<String> {
    let (ours, theirs) = arguments.split_at(arguments.len().saturating_sub(of_program));
    let mut line: Vec<String> = Vec::new();
    let mut words = ours.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--name" => _ = words.next(),
            word if word.starts_with("--name=") => {}
            word => line.push(word.into()),
        }
    }
    // Behind the word `run`.
    line.insert(line.len().min(1), format!("--name={name}"));
    line.extend(theirs.iter().cloned());
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_is_started_again_has_its_new_name_and_the_program_its_words() {
        let line = |text: &str| text.split(' ').map(ToString::to_string).collect::<Vec<_>>();
        let told = |text: &str, of_program| renamed(&line(text), of_program, "new").join(" ");
        assert_eq!(told("run -d a --name x", 3), "run --name=new -d a --name x");
        assert_eq!(told("run --name old -d a", 1), "run --name=new -d a");
        assert_eq!(told("run --name=old a b", 2), "run --name=new a b");
        assert_eq!(
            told("run --from warm -d --name old", 0),
            "run --name=new --from warm -d"
        );
    }
}
