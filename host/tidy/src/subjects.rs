//! What commits say of themselves: a subject that fits a listing, and a body that says why.
//!
//! Only the commits after [`SINCE`] are looked at, and none where git knows it not (an archive
//! without its history, a shallow clone).

use std::path::Path;
use std::process::Command;

use crate::finding::Finding;

/// From the commit after this one on the rule holds.
const SINCE: &str = "5a376da005b42c69a5cae8dcf36dbb98c1956a50";
const SUBJECT_CHARS_MAX: usize = 72;

/// Findings among the commits of the repository at `root`.
pub fn check(root: &Path) -> Vec<Finding> {
    let range = format!("{SINCE}..HEAD");
    let log = Command::new("git")
        .args(["log", "--no-merges", "--format=%h%x00%s%x00%b%x01", &range])
        .current_dir(root)
        .output();
    match log {
        Ok(log) if log.status.success() => findings(&String::from_utf8_lossy(&log.stdout)),
        _ => Vec::new(),
    }
}

fn findings(log: &str) -> Vec<Finding> {
    let commits = log.split('\u{1}').filter_map(|commit| {
        let mut parts = commit.trim_start().split('\0');
        Some((parts.next()?, parts.next()?, parts.next()?))
    });
    let complaint = |(hash, subject, body): (&str, &str, &str)| {
        let sentence = if subject.chars().count() > SUBJECT_CHARS_MAX {
            format!("`{subject}` has over {SUBJECT_CHARS_MAX} characters: shorten it")
        } else if body.trim().is_empty() {
            format!("`{subject}` has no body: say there why")
        } else {
            return None;
        };
        Some(Finding::at(format!("commit {hash}"), 0, sentence))
    };
    commits.filter_map(complaint).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_has_a_short_subject_and_a_body() {
        let long = "x".repeat(73);
        let log = format!("1\0Good\0Why.\n\u{1}\n2\0No reason\0\n\u{1}\n3\0{long}\0Why.\n\u{1}\n");
        let found: Vec<String> = findings(&log).iter().map(Finding::to_string).collect();
        assert_eq!(found.len(), 2);
        assert!(found[0].starts_with("commit 2:1: `No reason` has no body"));
        assert!(found[1].starts_with("commit 3:1: `xxx"));
    }
}
