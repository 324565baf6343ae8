//! Runs the scripts of `tests/packets/scripts`, each a test of its own.
//!
//!     cargo test -p packets -- [WORD...]       those whose names have one of the words
//!
//! A script must say in its head which paragraphs it tests.

#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use packets::{Script, run};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let (mut passed, mut failed) = (0, 0);
    for path in scripts() {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        if !words.is_empty() && !words.iter().any(|word| name.contains(word.as_str())) {
            continue;
        }
        match check(&path) {
            Ok(()) => passed += 1,
            Err(why) => {
                failed += 1;
                println!("FAIL {name}: {why}");
            }
        }
    }
    println!("scripts of packets: {passed} passed; {failed} failed");
    match failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn scripts() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
    let entries = fs::read_dir(&folder)
        .expect("the folder of scripts")
        .flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn check(path: &Path) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let script = Script::parse(&text)?;
    if !script.head.contains("RFC ") {
        return Err("its head names no RFC".into());
    }
    run(&script)
}
