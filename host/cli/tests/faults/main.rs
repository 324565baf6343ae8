//! Faults, as a user meets them: a registry that breaks off, a full disk, a store that the disk has damaged, a command that
//! is killed, a host that was started again. After each the next command works, or says in one sentence what to do; nothing that
//! is half made is used, and nothing is left for ever.
//!
//! Each test has a short form, which `make test` runs, and where more is to be had one that looks at every byte or step:
//! `cargo test -p cli --test faults -- --ignored`.

mod another_boot;
mod damaged;
mod full;
mod image;
mod killed;
mod killed_machines;
mod outlived;
mod pulled;
mod registry;
#[path = "../scene/mod.rs"]
mod scene;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// What a command of ours exits with that fails by itself, or finds no such program or image.
const FAILURES: [i32; 2] = [125, 127];

/// Runs it; it ends well, or fails with one sentence, which is returned.
fn outcome(command: &mut Command) -> Result<String, String> {
    let output = command.output().expect("sietch starts");
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.code() {
        Some(0) => Ok(said(&output.stdout)),
        Some(status) if FAILURES.contains(&status) => Err(sentence(&output)),
        _ => panic!("{command:?}: {output:?}"),
    }
}

/// Fails unless that is all that it says.
fn sentence(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let mut lines = text.lines();
    let line = lines.next_back().unwrap_or_default();
    let sentence = line.strip_prefix("sietch: ").unwrap_or_default();
    assert!(sentence.ends_with('.'), "no sentence: {text}");
    // The machine's kernel and the like may be hinted at before.
    let others = lines.filter(|line| !line.starts_with("sietch: "));
    assert_eq!(others.count(), 0, "more than sentences: {text}");
    assert!(!text.contains("panicked"), "{text}");
    sentence.into()
}

/// Runs it, which ends well.
fn succeed(command: &mut Command) -> String {
    outcome(command).unwrap_or_else(|sentence| panic!("{command:?}: {sentence}"))
}

/// What is below a folder that somebody began and did not finish.
fn drafts_below(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        match entry.path().is_dir() {
            _ if name.starts_with(".new") || name.starts_with(".old") => found.push(name),
            true => found.extend(drafts_below(&entry.path())),
            false => {}
        }
    }
    found
}
