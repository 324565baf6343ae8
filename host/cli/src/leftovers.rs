//! What commands leave that were killed: folders in the making, or on their way out, beside their places.
//!
//! A folder is made as `.new-PID-NAME` and renamed into its place; one that goes is renamed to `.old-PID-NAME` first. So what
//! has a name is whole, and what was left is known by the number of a process that is no `sietch` any more.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::processes;

const DRAFT: &str = ".new-";
const OLD: &str = ".old-";

/// Where this process makes `folder`.
pub fn draft_of(folder: &Path) -> PathBuf {
    beside(folder, DRAFT)
}

/// Where this process puts `folder` to remove it.
pub fn old_of(folder: &Path) -> PathBuf {
    beside(folder, OLD)
}

fn beside(folder: &Path, what: &str) -> PathBuf {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    folder.with_file_name(format!("{what}{}-{name}", std::process::id()))
}

/// The process that made what is called so.
fn maker(name: &str) -> Option<u32> {
    let rest = name.strip_prefix(DRAFT).or(name.strip_prefix(OLD))?;
    rest.split_once('-')?.0.parse().ok()
}

/// Removes what is left in `base`. Who calls it has nothing there yet: what has its number is of another before it.
pub fn sweep(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let maker = entry.file_name().to_str().and_then(maker);
        if maker.is_some_and(|pid| pid == std::process::id() || !processes::is_sietch(pid)) {
            // Another one may be doing it.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Takes a folder from its place, so that it can be removed afterwards: at one moment it has its name, at the next not.
pub fn put_aside(folder: &Path) -> io::Result<PathBuf> {
    let old = old_of(folder);
    fs::rename(folder, &old)?;
    Ok(old)
}

/// Takes a folder from its place and removes it.
pub fn remove(folder: &Path) -> io::Result<()> {
    put_aside(folder).and_then(fs::remove_dir_all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_is_swept_and_nothing_else() {
        let base = std::env::temp_dir().join(format!("sietch-leftovers-{}", std::process::id()));
        // The first process is always there, and no `sietch`.
        let kept = ["db", ".lock", ".new-x-db"];
        let left = [".new-1-db", ".old-1-a-b", ".old-4194999-db"];
        for name in kept.iter().chain(&left) {
            fs::create_dir_all(base.join(name).join("deep")).unwrap();
        }
        fs::create_dir_all(draft_of(&base.join("db"))).unwrap();
        sweep(&base);
        remove(&base.join(".lock")).unwrap();
        let listing = fs::read_dir(&base).unwrap();
        let mut names: Vec<_> = listing.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        fs::remove_dir_all(base).unwrap();
        assert_eq!(names, [".new-x-db", "db"]);
    }
}
