//! The allocators, as libraries to preload.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Ours, beside this program, where cargo has put both; and Debian's by package.
const OURS: &str = "libumem.so";
const OTHERS: [(&str, &str, &str); 3] = [
    ("jemalloc", "libjemalloc.so.2", "libjemalloc2"),
    ("mimalloc", "libmimalloc.so.2", "libmimalloc2.0"),
    (
        "tcmalloc",
        "libtcmalloc_minimal.so.4",
        "libtcmalloc-minimal4",
    ),
];
const FOLDER: &str = "/usr/lib/x86_64-linux-gnu";

/// One allocator.
pub struct Allocator {
    /// As in the tables.
    pub name: &'static str,
    /// What to preload; nothing for glibc's own.
    pub library: String,
}

impl Allocator {
    /// All of them, ours last; an error says what to install.
    pub fn installed() -> Result<Vec<Self>, String> {
        let built = Command::new("cargo")
            .args(["build", "-q", "--release", "-p", "umem"])
            .status();
        if !built.is_ok_and(|status| status.success()) {
            return Err("libumem.so does not build: see above.".into());
        }
        let mut all = vec![Self {
            name: "glibc",
            library: String::new(),
        }];
        for (name, file, package) in OTHERS {
            let library = format!("{FOLDER}/{file}");
            if !Path::new(&library).exists() {
                return Err(format!("{library} is missing: install {package}."));
            }
            all.push(Self { name, library });
        }
        all.push(Self {
            name: "**umem**",
            library: beside_this_program()?,
        });
        all.iter().try_for_each(Self::check)?;
        Ok(all)
    }

    /// Whether a program really runs with this allocator: the dynamic linker goes on without
    /// a library that it does not find.
    fn check(&self) -> Result<(), String> {
        let maps = Command::new("cat")
            .arg("/proc/self/maps")
            .env("LD_PRELOAD", &self.library)
            .output()
            .map_err(|error| format!("cat: {error}"))?;
        let maps = String::from_utf8_lossy(&maps.stdout).into_owned();
        let is_there = |library: &str| maps.lines().any(|line| line.ends_with(library));
        let is_as_named = match self.library.as_str() {
            // Nothing else may come from elsewhere, such as /etc/ld.so.preload.
            "" => !OTHERS.iter().any(|(_, file, _)| is_there(file)) && !is_there(OURS),
            // The table shows the file itself, not a link to it.
            library => {
                fs::canonicalize(library).is_ok_and(|file| is_there(&file.to_string_lossy()))
            }
        };
        match is_as_named {
            true => Ok(()),
            false => Err(format!(
                "{} is not what programs run with when {:?} is preloaded: its figures would be another's.",
                self.name, self.library
            )),
        }
    }
}

/// The library that cargo builds for the release.
fn beside_this_program() -> Result<String, String> {
    let program = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let folder = program
        .parent()
        .and_then(Path::parent)
        .unwrap_or(Path::new("."));
    Ok(folder.join("release").join(OURS).display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allocator_that_is_not_there_is_not_measured_under_its_name() {
        let absent = Allocator {
            name: "absent",
            library: "/nowhere/liballocator.so".into(),
        };
        assert!(absent.check().is_err());
        let glibc = Allocator {
            name: "glibc",
            library: String::new(),
        };
        assert_eq!(glibc.check(), Ok(()));
    }
}
