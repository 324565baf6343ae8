//! The names that a file takes from the root of its crate.

use std::collections::{BTreeMap, BTreeSet};

const ABOVE: &str = "super::";

/// The first names after `crate::`, or after as many `super::` as lead to the root; also those of
/// `use crate::{a::b, c}`.
pub fn of_root(code: &str, depth: usize) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, root) in code.match_indices("crate::") {
        names.extend(heads(&code[at + root.len()..]));
    }
    let to_root = ABOVE.repeat(depth);
    for (at, root) in code.match_indices(&to_root) {
        let (before, behind) = (&code[..at], &code[at + root.len()..]);
        if !before.ends_with(ABOVE) && !behind.starts_with(ABOVE) {
            names.extend(heads(behind));
        }
    }
    names
}

/// The names that the root's code passes on, with the modules that have them.
pub fn passed_on(code: &str) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    for statement in code.split(';') {
        let Some((_, path)) = statement.rsplit_once("use ") else {
            continue;
        };
        let path = path
            .trim()
            .trim_start_matches("crate::")
            .trim_start_matches("self::");
        if let Some((module, rest)) = path.split_once("::") {
            let leaves = leaves(rest).into_iter();
            names.extend(leaves.map(|leaf| (leaf, module.to_string())));
        }
    }
    names
}

/// The last names of a path or a list of paths, as they are called afterwards.
fn leaves(path: &str) -> Vec<String> {
    let paths = path.split(['{', '}', ',']);
    let last = |path: &str| {
        let name = path.rsplit([':', ' ']).next()?.trim();
        (!name.is_empty()).then(|| name.to_string())
    };
    paths.map(str::trim).filter_map(last).collect()
}

/// The first name of the path with which `code` begins, or those of a list of paths.
fn heads(code: &str) -> BTreeSet<String> {
    match code.strip_prefix('{') {
        Some(list) => heads_of_list(list),
        None => head(code).into_iter().collect(),
    }
}

/// The heads of the paths up to the brace that closes the list.
fn heads_of_list(list: &str) -> BTreeSet<String> {
    let mut depth = 0;
    let mut paths = vec![String::new()];
    for character in list.chars() {
        match character {
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            '{' => depth += 1,
            ',' if depth == 0 => paths.push(String::new()),
            _ if depth == 0 => paths
                .last_mut()
                .unwrap_or(&mut String::new())
                .push(character),
            _ => {}
        }
    }
    paths.iter().filter_map(|path| head(path.trim())).collect()
}

fn head(path: &str) -> Option<String> {
    let is_word = |c: &char| c.is_alphanumeric() || *c == '_';
    let name: String = path.chars().take_while(is_word).collect();
    (!name.is_empty()).then_some(name)
}
