//! Shell scripts within tests: `! command` is no check. `set -e` does not end a script whose
//! negated command succeeds (POSIX, 2.15 "set"), so the test that says so cannot fail.

use std::path::Path;

use crate::finding::Finding;

/// Whether the file has scripts that machines run.
pub fn has_scripts(path: &Path) -> bool {
    path.starts_with("tests/vm")
}

/// Findings in the text of one file.
pub fn check(path: &Path, text: &str) -> Vec<Finding> {
    let lines = text.lines().enumerate();
    let negated = lines.filter(|(_, line)| line.split("; ").any(is_negated));
    let report = |(index, _)| {
        Finding::at(
            path,
            index,
            "`set -e` does not hear of a negated command: write `fails command`, or `test ! -e ...`",
        )
    };
    negated.map(report).collect()
}

fn is_negated(command: &str) -> bool {
    let rest = command.trim_start().strip_prefix("! ");
    rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> usize {
        check(Path::new("tests/vm/src/disks.rs"), text).len()
    }

    #[test]
    fn a_negated_command_is_found_wherever_it_stands() {
        assert_eq!(findings("set -e\n! touch a\ntrue; ! test -e b\n"), 2);
    }

    #[test]
    fn a_command_that_must_fail_is_none() {
        assert_eq!(findings("fails touch a; test ! -e b\nif ! grep c; then"), 0);
    }
}
