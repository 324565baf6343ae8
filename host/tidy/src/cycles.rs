//! Import cycles between the modules of a crate.
//!
//! Crates cannot form a cycle, the modules of one crate can, and then none of them can be
//! read, tested or lifted out by itself. The modules right below a crate's root are nodes;
//! `crate::other` in the code of one, outside of its tests, is an edge, and so are `super::other`
//! where that is the root, and `crate::Name` where the root only passes on another one's `Name`.
//! The figure is the size of the largest set in which each module reaches each other one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::imports;
use crate::source::Source;

/// Cycles of this many modules need no row in the list.
pub const SMALL: usize = 3;

/// Of each crate folder: what its modules import.
#[derive(Default)]
pub struct Imports(BTreeMap<PathBuf, Crate>);

#[derive(Default)]
struct Crate {
    /// Of each module, the names that it takes from the root.
    modules: BTreeMap<String, BTreeSet<String>>,
    /// Names that the root passes on, with the modules that have them.
    passed_on: BTreeMap<String, String>,
}

type Modules = BTreeMap<String, BTreeSet<String>>;

impl Imports {
    /// Notes what the file at `path` (from the repository's root) imports of its own crate.
    pub fn read(&mut self, path: &Path, source: &Source) {
        let Some(place) = Place::of(path) else { return };
        let code = source.lines.iter().filter(|line| !line.in_test);
        let code: String = code.flat_map(|line| [&line.code, "\n"]).collect();
        let its_crate = self.0.entry(place.folder).or_default();
        match place.module {
            Some(module) => {
                let names = its_crate.modules.entry(module).or_default();
                names.extend(imports::of_root(&code, place.depth));
            }
            None => its_crate.passed_on.extend(imports::passed_on(&code)),
        }
    }

    /// For each crate, the modules of its largest cycle.
    pub fn largest_cycles(&self) -> BTreeMap<PathBuf, BTreeSet<String>> {
        let largest = |modules: &Modules| {
            let cycles = modules.keys().map(|start| cycle_of(modules, start));
            cycles.max_by_key(BTreeSet::len).unwrap_or_default()
        };
        let crates = self.0.iter();
        crates
            .map(|(folder, its_crate)| (folder.clone(), largest(&its_crate.edges())))
            .collect()
    }
}

impl Crate {
    /// Of each module, the modules that it imports.
    fn edges(&self) -> Modules {
        let module_of = |name: &String| match self.modules.contains_key(name) {
            true => name.clone(),
            false => self.passed_on.get(name).cloned().unwrap_or_default(),
        };
        let modules = self.modules.iter();
        modules
            .map(|(module, names)| (module.clone(), names.iter().map(module_of).collect()))
            .collect()
    }
}

/// Where a file stands in its crate.
struct Place {
    folder: PathBuf,
    /// The module right below the root that it belongs to; `None` for the root itself.
    module: Option<String>,
    /// How many `super` lead from it to the root.
    depth: usize,
}

impl Place {
    fn of(path: &Path) -> Option<Self> {
        let text = path.to_str()?;
        let (folder, file) = text.split_once("/src/")?;
        let file = file.trim_end_matches(".rs").trim_end_matches("/mod");
        let module = file.split('/').next()?;
        let is_root = matches!(module, "lib" | "main" | "bin");
        Some(Self {
            folder: PathBuf::from(folder),
            module: (!is_root).then(|| module.to_string()),
            depth: file.split('/').count(),
        })
    }
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
            ("core/x/src/b.rs", "// crate::a\nuse self::a;"),
            ("core/x/src/lib.rs", "use crate::a::A;"),
        ];
        assert_eq!(largest(&files), Vec::<String>::new());
    }

    #[test]
    fn what_the_root_passes_on_is_its_modules() {
        let files = [
            (
                "core/x/src/lib.rs",
                "pub use a::{A, f as g};\npub use b::B;",
            ),
            ("core/x/src/a.rs", "use crate::B;"),
            ("core/x/src/b.rs", "fn f() { crate::g() }"),
            ("core/x/src/c.rs", "use crate::{A, B};"),
        ];
        assert_eq!(largest(&files), ["a", "b"]);
    }

    #[test]
    fn the_module_above_may_be_the_root() {
        let files = [
            ("core/x/src/a.rs", "use super::b::B;"),
            ("core/x/src/b/mod.rs", "mod c;"),
            ("core/x/src/b/c.rs", "use super::super::{a::A, d};"),
            ("core/x/src/d.rs", "use super::Other;"),
            ("core/x/src/e/mod.rs", "use super::a;"),
            ("core/x/src/e/f.rs", "use super::g;"),
        ];
        assert_eq!(largest(&files), ["a", "b"]);
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
