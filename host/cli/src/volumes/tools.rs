//! e2fsprogs: the programs that make and check file systems.

use std::path::PathBuf;
use std::process::Command;

use crate::failure::Failure;
use crate::host_programs::find;

/// What is needed of them.
const NEEDS: [&str; 3] = ["mke2fs", "e2fsck", "debugfs"];

/// Those that are missing on this host.
pub fn missing() -> Vec<&'static str> {
    let is_missing = |need: &&str| find(need).is_none();
    NEEDS.into_iter().filter(is_missing).collect()
}

/// Where a program of theirs is.
pub(crate) fn path(name: &str) -> Result<PathBuf, Failure> {
    find(name).ok_or_else(|| Failure::NoFileSystemTools { name: name.into() })
}

/// A program of theirs.
pub(super) fn command(name: &str) -> Result<Command, Failure> {
    let mut command = Command::new(path(name)?);
    command.env("LC_ALL", "C");
    Ok(command)
}

/// Their last words, without their own name.
pub(super) fn last_words(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let last = said.lines().rev().find(|line| !line.trim().is_empty());
    last.unwrap_or("it says nothing")
        .trim()
        .trim_end_matches('.')
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_missing_is_named_with_its_package() {
        let error = command("mke9fs").expect_err("there is none").to_string();
        assert!(error.starts_with("mke9fs is missing"), "{error}");
        assert!(error.contains("install e2fsprogs"), "{error}");
    }

    #[test]
    fn of_what_a_program_says_the_last_line_counts() {
        assert_eq!(last_words(b"a: b\nno room.\n\n"), "no room");
        assert_eq!(last_words(b"\n"), "it says nothing");
    }
}
