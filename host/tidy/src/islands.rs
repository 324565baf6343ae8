//! `unsafe` stays on its islands: every other crate forbids it at its root.

use std::fs;

use crate::finding::Finding;
use crate::layers::Rules;
use crate::metadata::Package;
use crate::source::Source;

/// Crate roots outside the islands that do not forbid `unsafe`.
pub fn check(rules: &Rules, packages: &[Package]) -> Result<Vec<Finding>, String> {
    let mut findings = Vec::new();
    let mainland = packages
        .iter()
        .filter(|package| !rules.islands.contains(&package.folder));
    for root in mainland.flat_map(|package| &package.roots) {
        let text = fs::read_to_string(root)
            .map_err(|error| format!("{} cannot be read: {error}", root.display()))?;
        if !forbids_unsafe(&Source::parse(&text)) {
            findings.push(Finding::at(
                root,
                0,
                "add #![forbid(unsafe_code)]: only the islands in layers.toml may go without",
            ));
        }
    }
    Ok(findings)
}

fn forbids_unsafe(root: &Source) -> bool {
    root.lines
        .iter()
        .any(|line| line.code.contains("#![forbid(unsafe_code)]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_attribute_counts_only_as_code() {
        assert!(forbids_unsafe(&Source::parse(
            "#![no_std]\n#![forbid(unsafe_code)]\n"
        )));
        assert!(!forbids_unsafe(&Source::parse(
            "// #![forbid(unsafe_code)]\n"
        )));
    }
}
