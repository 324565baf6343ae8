//! The wish that a machine ends, and is not started again by its policy: the file `stop` in its folder.
//!
//! Whoever has it first says so, or the machine might be started again between its end and that word; then they ask it to end.
//! They may be killed between the two. Then nobody has asked, the machine runs on, and its policy is to hold as before. So a
//! wish names the process that has it, and counts as long as that is there; once the machine was asked it is settled, and counts
//! whatever becomes of the process. Each is a line, which is added with one write: no wish undoes another one.
//!
//! Who has no room left ends machines to have some, so a wish needs none: where a line cannot be written, an empty file says that
//! somebody has one, and it is settled at once.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::Path;

use crate::failure::Failure;
use crate::processes;

const FILE: &str = "stop";
const FILE_WITHOUT_ROOM: &str = "stop.settled";
/// The line of a wish that is settled. No process is called so.
const SETTLED: &str = "settled";

/// That of this process. Where the folder goes, or the next machine of that name has its own, it is nobody's.
#[must_use = "it ends with this process unless it is settled"]
#[derive(Debug)]
pub struct Wish(Option<File>);

impl Wish {
    /// Says that this process has it, as to the machine in `folder`.
    pub fn note(folder: &Path) -> Result<Self, Failure> {
        let path = folder.join(FILE);
        let told = processes::told(std::process::id());
        let mut options = OpenOptions::new();
        let file = options.create(true).append(true).open(&path);
        let noted = file.and_then(|file| add(&file, &told).map(|()| Self(Some(file))));
        noted
            .or_else(|error| match error.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                    fs::write(folder.join(FILE_WITHOUT_ROOM), "").map(|()| Self(None))
                }
                _ => Err(error),
            })
            .map_err(Failure::file(path))
    }

    /// The machine was asked to end, or ended: from now on the wish needs no process.
    pub fn settle(self) -> Result<(), Failure> {
        let added = self.0.map_or(Ok(()), |file| add(&file, SETTLED));
        added.map_err(Failure::Lost)
    }
}

fn add(mut file: &File, line: &str) -> std::io::Result<()> {
    file.write_all(format!("{line}\n").as_bytes())
}

/// Whether somebody has it.
pub fn is_there(folder: &Path) -> bool {
    let lines = fs::read_to_string(folder.join(FILE)).unwrap_or_default();
    let mut lines = lines.lines();
    let is_told = lines.any(|line| line == SETTLED || processes::is_there(line));
    is_told || folder.join(FILE_WITHOUT_ROOM).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_lasts_as_long_as_who_has_it_unless_it_is_settled() {
        let name = format!("sietch-wish-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("room");
        assert!(!is_there(&folder));
        // Of those that were killed: before their line, in the middle of it, and behind it.
        for left in ["", "4194", "4194999 gone\n"] {
            fs::write(folder.join(FILE), left).expect("room");
            assert!(!is_there(&folder), "{left:?}");
        }
        let wish = Wish::note(&folder).expect("room");
        assert!(is_there(&folder));
        wish.settle().expect("room");
        let settled = fs::read_to_string(folder.join(FILE)).expect("text");
        let own = processes::told(std::process::id());
        let without_us = settled.replace(&own, "4194999 gone");
        fs::write(folder.join(FILE), without_us).expect("room");
        assert!(is_there(&folder));
        // Another one that is killed leaves it.
        drop(Wish::note(&folder).expect("room"));
        assert!(is_there(&folder));
        fs::remove_dir_all(folder).expect("ours");
    }
}
