//! Which crate may use which: `layers.toml` against `cargo metadata`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::finding::Finding;
use crate::metadata::Package;

/// What `layers.toml` says.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// Folders of the crates in which `unsafe` may be written.
    pub islands: Vec<PathBuf>,
    groups: BTreeMap<String, Vec<String>>,
    uses: BTreeMap<String, Vec<String>>,
}

impl Rules {
    /// Reads the rules from a file.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(path)
            .map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
        Self::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    fn allows(&self, user: &[String], used: &str) -> bool {
        user.iter().any(|allowed| match allowed.strip_prefix('@') {
            Some(group) => self
                .groups
                .get(group)
                .is_some_and(|crates| crates.iter().any(|name| name == used)),
            None => allowed == used,
        })
    }
}

/// An edge that the rules do not name, or a crate without a row.
pub fn check(rules: &Rules, packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        let manifest = package.folder.join("Cargo.toml");
        let Some(allowed) = rules.uses.get(&package.name) else {
            let name = &package.name;
            let sentence = format!("`{name}` has no row in layers.toml: say there what it may use");
            findings.push(Finding::at(manifest, 0, sentence));
            continue;
        };
        for used in package
            .uses
            .iter()
            .filter(|used| !rules.allows(allowed, used))
        {
            let name = &package.name;
            let sentence = format!(
                "`{name}` must not use `{used}`: pass what it needs as an argument, or argue for the edge in layers.toml and ARCHITECTURE.md"
            );
            findings.push(Finding::at(&manifest, 0, sentence));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = "islands = []\n[groups]\nlow = ['base', 'hal']\n[uses]\nbase = []\ninet = ['@low']\nkernel = ['inet', '@low']\n";

    fn package(name: &str, uses: &[&str]) -> Package {
        Package {
            name: name.into(),
            folder: name.into(),
            uses: uses.iter().map(ToString::to_string).collect(),
            roots: vec![],
        }
    }

    fn sentences(packages: &[Package]) -> Vec<String> {
        let rules = Rules::parse(RULES).expect("the fixture is valid");
        check(&rules, packages)
            .iter()
            .map(Finding::to_string)
            .collect()
    }

    #[test]
    fn edges_in_the_table_are_fine() {
        let packages = [
            package("base", &[]),
            package("inet", &["hal"]),
            package("kernel", &["inet", "base"]),
        ];
        assert_eq!(sentences(&packages), Vec::<String>::new());
    }

    #[test]
    fn an_edge_upwards_is_found() {
        let found = sentences(&[package("inet", &["kernel"])]);
        assert_eq!(found.len(), 1);
        assert!(
            found[0].starts_with("inet/Cargo.toml:1: `inet` must not use `kernel`"),
            "{}",
            found[0]
        );
    }

    #[test]
    fn a_crate_without_a_row_is_found() {
        let found = sentences(&[package("mystery", &[])]);
        assert!(
            found[0].contains("has no row in layers.toml"),
            "{}",
            found[0]
        );
    }
}
