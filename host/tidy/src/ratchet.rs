//! Figures that may only shrink: what is not yet as it should be, crate by crate.
//!
//! The list says how much there is of a thing today. More than that is a finding, so that
//! nothing is added; less is one as well, so that the row follows and what was won is kept.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::cycles::{self, Imports};
use crate::finding::Finding;
use crate::source::Source;
use crate::{functions, lines};

/// The list, from the repository's root.
pub const LIST: &str = "ratchets.toml";

/// Where a panic ends the machine, but for the machine's own crates, which may end it;
/// `kernel/linux` has none (`lines`).
const WATCHED_FOR_PANICS: [&str; 2] = ["kernel", "drivers"];
const NOT_WATCHED: [&str; 5] = [
    "kernel/arch",
    "kernel/image",
    "kernel/linux",
    "kernel/mach",
    "kernel/vdso",
];

/// Where a crate that nobody can read as a whole is to be split.
const WATCHED_FOR_LINES: &str = "kernel";
const CRATE_LINES_MAX: usize = 12_000;
/// Lines by which a crate may be shorter than its row says before the row must follow.
const LINES_SLACK: usize = 1000;

type Counts = BTreeMap<PathBuf, usize>;

/// What the list says.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Ratchets {
    modules_in_a_cycle: Counts,
    long_functions: Counts,
    places_that_may_panic: Counts,
    lines_of_a_crate: Counts,
}

/// What there is.
#[derive(Default)]
pub struct Tally {
    imports: Imports,
    long_functions: Counts,
    panics: Counts,
    lines: Counts,
}

impl Tally {
    /// Counts what is in one file; `path` is from the repository's root.
    pub fn add(&mut self, path: &Path, source: &Source) {
        let Some(folder) = crate_of(path) else {
            return;
        };
        self.imports.read(path, source);
        if path.starts_with(WATCHED_FOR_LINES) {
            *self.lines.entry(folder.clone()).or_default() += source.lines.len();
        }
        *self.long_functions.entry(folder.clone()).or_default() += functions::long(source).len();
        let is_in = |parts: &[&str]| parts.iter().any(|part| path.starts_with(part));
        if is_in(&WATCHED_FOR_PANICS) && !is_in(&NOT_WATCHED) {
            *self.panics.entry(folder).or_default() += lines::panics(path, source);
        }
    }
}

/// The folder above `src`.
fn crate_of(path: &Path) -> Option<PathBuf> {
    let (folder, _) = path.to_str()?.split_once("/src/")?;
    Some(PathBuf::from(folder))
}

impl Ratchets {
    /// Reads the list.
    pub fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| format!("{LIST}: {error}"))
    }

    /// Findings: rows that what there is does not agree with.
    pub fn check(&self, tally: &Tally) -> Vec<Finding> {
        let mut cycles = Counts::new();
        for (folder, modules) in tally.imports.largest_cycles() {
            if modules.len() > cycles::SMALL {
                cycles.insert(folder, modules.len());
            }
        }
        [
            compare("modules-in-a-cycle", &self.modules_in_a_cycle, &cycles),
            compare(
                "long-functions",
                &self.long_functions,
                &tally.long_functions,
            ),
            compare(
                "places-that-may-panic",
                &self.places_that_may_panic,
                &tally.panics,
            ),
            self.too_long(tally),
        ]
        .concat()
    }

    /// Crates with more lines than all may have, or than their row says. A row is in
    /// thousands, so that it need not follow each line that is written.
    fn too_long(&self, tally: &Tally) -> Vec<Finding> {
        let allowed = &self.lines_of_a_crate;
        let folders: BTreeSet<_> = allowed.keys().chain(tally.lines.keys()).collect();
        let sentence = |folder: &PathBuf| {
            let found = tally.lines.get(folder).copied().unwrap_or(0);
            let row = allowed.get(folder).copied();
            let name = folder.display();
            let thousands = found.div_ceil(LINES_SLACK) * LINES_SLACK;
            match row {
                _ if found > row.unwrap_or(0).max(CRATE_LINES_MAX) => Some(format!(
                    "{name} has {found} lines: give a part of it a crate of its own"
                )),
                Some(_) if found <= CRATE_LINES_MAX => Some(format!(
                    "[lines-of-a-crate] has a row for {name}, which needs none: take it out"
                )),
                Some(row) if thousands < row => Some(format!(
                    "[lines-of-a-crate] says {row} of {name}: write {thousands} there"
                )),
                _ => None,
            }
        };
        let sentences = folders.into_iter().filter_map(sentence);
        sentences
            .map(|sentence| Finding::at(LIST, 0, sentence))
            .collect()
    }
}

fn compare(table: &str, allowed: &Counts, found: &Counts) -> Vec<Finding> {
    let folders: BTreeSet<_> = allowed.keys().chain(found.keys()).collect();
    let of = |counts: &Counts, folder: &Path| counts.get(folder).copied().unwrap_or(0);
    let differs = |folder: &&PathBuf| of(allowed, folder) != of(found, folder);
    let sentence = |folder: &PathBuf| {
        let (allowed, found) = (of(allowed, folder), of(found, folder));
        let way_out = if found > allowed {
            "take back what was added"
        } else {
            "write the lower number there"
        };
        format!(
            "[{table}] says {allowed} of {}, there are {found}: {way_out}",
            folder.display()
        )
    };
    let folders = folders.into_iter().filter(differs);
    folders
        .map(|folder| Finding::at(LIST, 0, sentence(folder)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST_OF_TWO: &str = "[modules-in-a-cycle]\n[long-functions]\n'core/a' = 1\n[places-that-may-panic]\n'drivers/b' = 2\n[lines-of-a-crate]\n'kernel/long' = 14000\n";

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let list = Ratchets::parse(LIST_OF_TWO).expect("the list is good");
        let mut tally = Tally::default();
        for (path, text) in files {
            tally.add(Path::new(path), &Source::parse(text));
        }
        list.check(&tally).iter().map(Finding::to_string).collect()
    }

    /// As many lines as the list's row allows.
    fn long_crate() -> String {
        "\n".repeat(13_999)
    }

    fn long_function() -> String {
        format!("fn f() {{\n{}}}\n", "    g();\n".repeat(80))
    }

    #[test]
    fn what_agrees_with_its_row_is_fine() {
        let panics = "fn f() { a.unwrap(); }\nfn g() { b[i] }\n";
        let files = [
            ("core/a/src/x.rs", &*long_function()),
            ("drivers/b/src/y.rs", panics),
            ("kernel/long/src/z.rs", &*long_crate()),
        ];
        assert_eq!(findings(&files), Vec::<String>::new());
    }

    #[test]
    fn more_and_less_are_both_found() {
        let files = [
            ("core/a/src/x.rs", &*long_function().repeat(2)),
            ("drivers/b/src/y.rs", "a[i];"),
            ("kernel/long/src/z.rs", &*long_crate()),
        ];
        let found = findings(&files);
        assert!(found[0].contains("there are 2: take back"), "{}", found[0]);
        assert!(
            found[1].contains("there are 1: write the lower"),
            "{}",
            found[1]
        );
    }
    #[test]
    fn a_long_crate_of_the_kernel_is_split_and_its_row_follows() {
        let agreed = [
            ("core/a/src/x.rs", &*long_function()),
            ("drivers/b/src/y.rs", "a[i];\nb[i];\n"),
        ];
        let of = |name: &str, lines: usize| {
            let path = format!("kernel/{name}/src/z.rs");
            let text = "\n".repeat(lines);
            let [a, b] = agreed;
            findings(&[a, b, (&path, &text)])
        };
        assert!(of("long", 14_500)[0].contains("give a part of it a crate"));
        assert!(of("long", 12_500)[0].contains("says 14000 of kernel/long: write 13000"));
        assert!(of("long", 100)[0].contains("needs none: take it out"));
        assert!(of("new", 12_500)[1].contains("kernel/new has 12500 lines"));
    }
}
