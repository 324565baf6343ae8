//! The allocators, as libraries to preload.

use std::path::Path;
use std::process::Command;

/// Ours, and Debian's by package.
const OURS: &str = "target/release/libumem.so";
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
            library: OURS.into(),
        });
        Ok(all)
    }
}
