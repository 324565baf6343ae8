//! Documents name files that exist.
//!
//! A path in backticks that starts with a top folder of the repository, such as
//! `core/inet/src/tcp/{send,ack}.rs` or `drivers/virtio-*`, must lead somewhere: a
//! newcomer finds the way by these names.

use std::fs;
use std::path::{Path, PathBuf};

use crate::finding::Finding;

/// Folders whose names start a path; other words with a slash are no paths of ours.
const TOP: [&str; 10] = [
    "core", "drivers", "kernel", "host", "user", "sim", "fuzz", "tests", "benches", "tools",
];

/// The documents of the repository, relative to `root`.
pub fn files(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for folder in ["", "docs", "docs/decisions"] {
        let entries = fs::read_dir(root.join(folder)).map_err(|why| format!("{folder}: {why}"))?;
        let names = entries.flatten().map(|entry| entry.file_name());
        let is_document = |path: &PathBuf| path.extension().is_some_and(|end| end == "md");
        found.extend(
            names
                .map(|name| Path::new(folder).join(name))
                .filter(is_document),
        );
    }
    found.sort();
    Ok(found)
}

/// Paths in the document `text` that lead nowhere below `root`.
pub fn check(root: &Path, document: &Path, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        // Every other piece between backticks is code.
        let code = line.split('`').skip(1).step_by(2);
        let lost = code
            .filter(|word| is_path(word))
            .flat_map(expand)
            .filter(|path| !leads_somewhere(root, path));
        findings.extend(lost.map(|path| {
            let sentence = format!("{path} does not exist: name the file that took its place.");
            Finding::at(document, index, sentence)
        }));
    }
    findings
}

fn is_path(word: &str) -> bool {
    let top = word.split('/').next().unwrap_or_default();
    word.contains('/') && TOP.contains(&top) && !word.contains([' ', '…'])
}

/// `a/{b,c}.rs` as `a/b.rs` and `a/c.rs`.
fn expand(word: &str) -> Vec<String> {
    let Some((before, rest)) = word.split_once('{') else {
        return vec![word.to_string()];
    };
    let (choices, after) = rest.split_once('}').unwrap_or((rest, ""));
    choices
        .split(',')
        .map(|choice| format!("{before}{choice}{after}"))
        .collect()
}

fn leads_somewhere(root: &Path, path: &str) -> bool {
    let Some((before, _)) = path.split_once('*') else {
        return root.join(path).exists();
    };
    let (folder, start) = before.rsplit_once('/').unwrap_or(("", before));
    let entries = fs::read_dir(root.join(folder)).into_iter().flatten();
    entries
        .flatten()
        .any(|entry| entry.file_name().to_string_lossy().starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_name_several_files() {
        assert_eq!(expand("core/{a,b}.rs"), ["core/a.rs", "core/b.rs"]);
        assert_eq!(expand("core/a.rs"), ["core/a.rs"]);
    }

    #[test]
    fn only_words_that_start_with_a_top_folder_are_paths() {
        assert!(is_path("core/inet"));
        assert!(!is_path("net/http"));
        assert!(!is_path("tests"));
    }

    #[test]
    fn a_name_that_leads_nowhere_is_found_with_its_line() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let text = "See\n`host/tidy/src/{main,nowhere}.rs` and `core/*`.";
        let found = check(&root, Path::new("a.md"), text);
        assert_eq!(found.len(), 1);
        assert!(
            found[0]
                .to_string()
                .starts_with("a.md:2: host/tidy/src/nowhere.rs")
        );
    }
}
