//! What the kernel allocates without asking whether there is memory for it.
//!
//! Rust's collections grow or end the machine. In the parts of the kernel that hear programs,
//! what a program may choose the size of is asked for first (`mach::mem::fallible`); the
//! other places stand in a list, file by file, with what bounds them. A file may have no
//! more of them than its row says, so that a new one is noticed.
//!
//! Growth within a few lines of `make_room`, `fallible` or `try_reserve` was asked for. Single objects
//! (`Box::new`, `push`) are not looked at: the call that makes one is refused while memory is
//! short.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::finding::Finding;
use crate::source::{Line, Source};

/// The list, from the repository's root.
pub const LIST: &str = "kernel/growth.txt";

/// Where programs are heard: all of the kernel but the machine. Packets have a budget of their own.
const WATCHED: &str = "kernel";
const ELSEWHERE: [&str; 5] = [
    "kernel/arch",
    "kernel/image",
    "kernel/mach",
    "kernel/net",
    "kernel/vdso",
];

const GROWTH: [&str; 8] = [
    "with_capacity(",
    ".to_vec()",
    ".collect()",
    ".collect::<Vec",
    ".concat()",
    ".extend(",
    ".extend_from_slice(",
    ".resize(",
];
/// Who asks first.
const ASKED: [&str; 4] = ["make_room(", "fallible::", "try_push(", ".try_reserve"];
/// Lines above a growth in which it may have been asked for.
const ASKED_REACH_LINES: usize = 6;

/// The rows of the list: file, how many places, what bounds them.
pub struct Bounds(BTreeMap<PathBuf, usize>);

impl Bounds {
    /// Reads `FILE COUNT BOUND...`; lines that start with `#` are for people.
    pub fn parse(text: &str) -> Result<Self, String> {
        let rows = text.lines().filter(|line| !line.starts_with('#'));
        let row = |line: &str| {
            let mut words = line.split_whitespace();
            let path = PathBuf::from(words.next()?);
            let count = words.next()?.parse().ok()?;
            words.next().map(|_| (path, count))
        };
        rows.filter(|line| !line.trim().is_empty())
            .map(|line| row(line).ok_or_else(|| format!("{LIST}: no row: {line}")))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Findings in one file; `path` is from the repository's root.
    pub fn check(&self, path: &Path, source: &Source) -> Vec<Finding> {
        let is_elsewhere = ELSEWHERE.iter().any(|part| path.starts_with(part));
        if !path.starts_with(WATCHED) || is_elsewhere {
            return Vec::new();
        }
        let lines = &source.lines;
        let grows = |index: &usize| {
            let from = index.saturating_sub(ASKED_REACH_LINES);
            grows_unasked(&lines[from..*index], &lines[*index])
        };
        let places: Vec<usize> = (0..lines.len()).filter(grows).collect();
        let allowed = self.0.get(path).copied().unwrap_or(0);
        if places.len() <= allowed {
            return Vec::new();
        }
        let sentence = format!(
            "{} places grow without asking for memory, {LIST} says {allowed}: use `mach::mem::fallible`, or name the bound there",
            places.len()
        );
        vec![Finding::at(path, places[places.len() - 1], sentence)]
    }
}

fn grows_unasked(above: &[Line], line: &Line) -> bool {
    let is_asked = |line: &Line| ASKED.iter().any(|word| line.code.contains(word));
    let is_growth = GROWTH.iter().any(|word| line.code.contains(word)) || is_filled(&line.code);
    is_growth && !line.in_test && !is_asked(line) && !above.iter().any(is_asked)
}

/// Whether it is `vec![value; count]`.
fn is_filled(code: &str) -> bool {
    code.split("vec![").skip(1).any(|rest| {
        rest.split(']')
            .next()
            .is_some_and(|inside| inside.contains(';'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> usize {
        let bounds = Bounds::parse("# for people\nkernel/task/src/a.rs 1 one name of 255 bytes\n");
        let bounds = bounds.expect("the rows are good");
        bounds.check(Path::new(path), &Source::parse(text)).len()
    }

    #[test]
    fn growth_beyond_the_list_is_found() {
        let one = "let all = name.to_vec();\n";
        let two = "let all = name.to_vec();\nlet more = vec![0; count];\n";
        assert_eq!(findings("kernel/task/src/a.rs", one), 0);
        assert_eq!(findings("kernel/task/src/a.rs", two), 1);
        assert_eq!(findings("kernel/task/src/b.rs", one), 1);
        assert_eq!(findings("core/inet/src/b.rs", one), 0);
    }

    #[test]
    fn growth_that_was_asked_for_is_not() {
        let asked = "bytes.make_room(count)?;\nbytes.resize(count, 0);\n";
        assert_eq!(findings("kernel/linux/src/b.rs", asked), 0);
        let literal = "let two = vec![1, 2];\n";
        assert_eq!(findings("kernel/linux/src/b.rs", literal), 0);
    }

    #[test]
    fn a_row_without_a_bound_is_refused() {
        assert!(Bounds::parse("kernel/task/src/a.rs 3\n").is_err());
    }
}
