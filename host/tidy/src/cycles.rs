//! Import cycles between the modules of a crate.
//!
//! Crates cannot form a cycle, the modules of one crate can, and then none of them can be
//! read, tested or lifted out by itself. The modules right below a crate's root are nodes;
//! `crate::other` in the code of one, outside of its tests, is an edge. The figure is the
//! size of the largest set in which each module reaches each other one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::source::Source;

/// Cycles of this many modules need no row in the list.
pub const SMALL: usize = 3;

/// Of each crate folder: its modules and what they import.
#[derive(Default)]
pub struct Imports(BTreeMap<PathBuf, Modules>);

type Modules = BTreeMap<String, BTreeSet<String>>;

impl Imports {
    /// Notes what the file at `path` (from the repository's root) imports of its own crate.
    pub fn read(&mut self, path: &Path, source: &Source) {
        let Some((folder, module)) = place(path) else {
            return;
        };
        let code = source.lines.iter().filter(|line| !line.in_test);
        let code: String = code.flat_map(|line| [&line.code, "\n"]).collect();
        let modules = self.0.entry(folder).or_default();
        modules.entry(module).or_default().extend(imported(&code));
    }

    /// For each crate, the modules of its largest cycle.
    pub fn largest_cycles(&self) -> BTreeMap<PathBuf, BTreeSet<String>> {
        let largest = |modules: &Modules| {
            let cycles = modules.keys().map(|start| cycle_of(modules, start));
            cycles.max_by_key(BTreeSet::len).unwrap_or_default()
        };
        let crates = self.0.iter();
        crates
            .map(|(folder, modules)| (folder.clone(), largest(modules)))
            .collect()
    }
}

/// The crate's folder, and the module right below its root that the file belongs to.
fn place(path: &Path) -> Option<(PathBuf, String)> {
    let text = path.to_str()?;
    let (folder, file) = text.split_once("/src/")?;
    let module = file.split('/').next()?.trim_end_matches(".rs");
    let is_root = matches!(module, "lib" | "main" | "bin");
    (!is_root).then(|| (PathBuf::from(folder), module.to_string()))
}

/// The first names after `crate::`, also those of `use crate::{a::b, c}`.
fn imported(code: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            Some(list) => names.extend(heads_of_list(list)),
            None => names.extend(head(rest)),
        }
    }
    names
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

/// The modules that `start` reaches and that reach it; empty where there are no others.
fn cycle_of(modules: &Modules, start: &String) -> BTreeSet<String> {
    let ahead = reached(modules, start);
    let back = |module: &String| module == start || reached(modules, module).contains(start);
    let cycle: BTreeSet<String> = ahead.into_iter().filter(back).collect();
    if cycle.len() > 1 {
        cycle
    } else {
        BTreeSet::new()
    }
}

/// All that can be reached from `start`, itself included where a way leads back.
fn reached(modules: &Modules, start: &String) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let mut open = vec![start];
    while let Some(module) = open.pop() {
        for next in modules.get(module).into_iter().flatten() {
            if modules.contains_key(next) && seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn largest(files: &[(&str, &str)]) -> Vec<String> {
        let mut imports = Imports::default();
        for (path, text) in files {
            imports.read(Path::new(path), &Source::parse(text));
        }
        let cycles = imports.largest_cycles();
        cycles.into_values().flatten().collect()
    }

    #[test]
    fn modules_that_import_each_other_are_a_cycle() {
        let files = [
            ("core/x/src/a.rs", "use crate::{error::Error, b::{C, D}};"),
            ("core/x/src/b/mod.rs", "mod c;"),
            ("core/x/src/b/c.rs", "fn f() { crate::c::g() }"),
            ("core/x/src/c.rs", "use crate::a::A;"),
            ("core/x/src/error.rs", ""),
        ];
        assert_eq!(largest(&files), ["a", "b", "c"]);
    }

    #[test]
    fn imports_in_one_direction_are_none() {
        let files = [
            ("core/x/src/a.rs", "use crate::b::B;"),
            ("core/x/src/b.rs", "// crate::a\nuse super::a;"),
            ("core/x/src/lib.rs", "use crate::a::A;"),
        ];
        assert_eq!(largest(&files), Vec::<String>::new());
    }

    #[test]
    fn tests_may_import_what_they_like() {
        let test = "#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n";
        let files = [
            ("core/x/src/a.rs", "use crate::b::B;"),
            ("core/x/src/b.rs", test),
        ];
        assert_eq!(largest(&files), Vec::<String>::new());
    }
}
