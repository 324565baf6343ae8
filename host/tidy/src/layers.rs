//! Which crate may use which: `layers.toml` against `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet};
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

/// The rules' file, from the repository's root.
const RULES: &str = "layers.toml";

/// An edge that the rules do not name, a crate without a row, or a row without a crate.
pub fn check(rules: &Rules, packages: &[Package]) -> Vec<Finding> {
    let mut findings = unknown_crates(rules, packages);
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

/// What the rules name and the workspace has not.
fn unknown_crates(rules: &Rules, packages: &[Package]) -> Vec<Finding> {
    let is_crate = |name: &str| packages.iter().any(|package| package.name == name);
    let is_group = |name: &str| {
        let group = name.strip_prefix('@');
        group.is_some_and(|group| rules.groups.contains_key(group))
    };
    let rows = rules
        .uses
        .iter()
        .flat_map(|(name, used)| used.iter().chain([name]));
    let members = rules.groups.values().flatten();
    let names: BTreeSet<&String> = rows.chain(members).collect();
    let unknown = names
        .into_iter()
        .filter(|name| !is_crate(name) && !is_group(name));
    let crates = unknown.map(|name| format!("there is no crate `{name}`: take it out"));
    let is_folder = |island: &&PathBuf| packages.iter().any(|package| package.folder == **island);
    let islands = rules.islands.iter().filter(|island| !is_folder(island));
    let folders = islands.map(|folder| format!("no crate is in {}: take it out", folder.display()));
    let sentences = crates.chain(folders);
    sentences
        .map(|sentence| Finding::at(RULES, 0, sentence))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "islands = []\n[groups]\nlow = ['base', 'hal']\n[uses]\nbase = []\nhal = []\ninet = ['@low']\nkernel = ['inet', '@low']\n";

    fn package(name: &str, uses: &[&str]) -> Package {
        Package {
            name: name.into(),
            folder: name.into(),
            uses: uses.iter().map(ToString::to_string).collect(),
            roots: vec![],
        }
    }

    /// What is found where these crates stand beside those that use nothing.
    fn sentences(packages: Vec<Package>) -> Vec<String> {
        let rules = Rules::parse(TABLE).expect("the fixture is valid");
        let is_given = |name: &str| packages.iter().any(|package| package.name == name);
        let others = ["base", "hal", "inet", "kernel"];
        let others = others.into_iter().filter(|name| !is_given(name));
        let others: Vec<Package> = others.map(|name| package(name, &[])).collect();
        let packages = [packages, others].concat();
        check(&rules, &packages)
            .iter()
            .map(Finding::to_string)
            .collect()
    }

    #[test]
    fn edges_in_the_table_are_fine() {
        let packages = vec![
            package("inet", &["hal"]),
            package("kernel", &["inet", "base"]),
        ];
        assert_eq!(sentences(packages), Vec::<String>::new());
    }

    #[test]
    fn an_edge_upwards_is_found() {
        let found = sentences(vec![package("inet", &["kernel"])]);
        assert_eq!(found.len(), 1);
        assert!(
            found[0].starts_with("inet/Cargo.toml:1: `inet` must not use `kernel`"),
            "{}",
            found[0]
        );
    }

    #[test]
    fn a_crate_without_a_row_is_found() {
        let found = sentences(vec![package("mystery", &[])]);
        assert!(
            found[0].contains("has no row in layers.toml"),
            "{}",
            found[0]
        );
    }

    #[test]
    fn what_the_table_names_exists() {
        let table = TABLE.replace("islands = []", "islands = ['core/gone']");
        let table = table.replace("'@low']", "'@low', 'lost', '@none']");
        let rules = Rules::parse(&table).expect("the fixture is valid");
        let names = ["base", "hal", "inet", "kernel"];
        let packages = names.map(|name| package(name, &[]));
        let found = check(&rules, &packages);
        let found: Vec<String> = found.iter().map(Finding::to_string).collect();
        assert_eq!(
            found,
            [
                "layers.toml:1: there is no crate `@none`: take it out",
                "layers.toml:1: there is no crate `lost`: take it out",
                "layers.toml:1: no crate is in core/gone: take it out",
            ]
        );
    }
}
