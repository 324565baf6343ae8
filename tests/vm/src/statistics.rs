//! Debian's tools that read statistics out of /proc (package procps).

use crate::Test;
use crate::guest::{BOOT_PATIENCE, Setup};
use crate::status::expect_status;

/// The tests.
pub const TESTS: &[Test] = &[
    ("free tells the machine's memory", free),
    ("vmstat tells what the CPUs do and what happened", vmstat),
    ("slabtop tells the sizes of the kernel's heap", slabtop),
];

/// What a tool says, when it ends well.
fn ask(setup: &Setup, tool: &[&str]) -> Result<String, String> {
    let args: Vec<&str> = ["--net", "none"].iter().chain(tool).copied().collect();
    let end = setup.start(&args)?.wait(BOOT_PATIENCE)?;
    expect_status(&end, 0)?;
    Ok(end.console)
}

fn has(said: &str, words: &[&str]) -> Result<(), String> {
    match words.iter().find(|word| !said.contains(**word)) {
        None => Ok(()),
        Some(word) => Err(format!("no {word:?} in: {said}")),
    }
}

/// The numbers of the line that starts with `name`.
fn numbers(said: &str, name: &str) -> Vec<u64> {
    let line = said.lines().find(|line| line.trim().starts_with(name));
    let words = line.unwrap_or_default().split_whitespace();
    words.filter_map(|word| word.parse().ok()).collect()
}

fn free(setup: &Setup) -> Result<(), String> {
    let said = ask(setup, &["free"])?;
    match numbers(&said, "Mem:").as_slice() {
        [total, used, free, ..] if *total > 0 && used + free <= *total => Ok(()),
        _ => Err(said),
    }
}

fn vmstat(setup: &Setup) -> Result<(), String> {
    let said = ask(setup, &["vmstat", "1", "2"])?;
    let last = said.lines().rfind(|line| !line.trim().is_empty());
    let columns = last.unwrap_or_default().split_whitespace().count();
    if columns < 17 {
        return Err(said);
    }
    let said = ask(setup, &["vmstat", "-s"])?;
    has(
        &said,
        &["K total memory", "system cpu ticks", "CPU context switches"],
    )
}

fn slabtop(setup: &Setup) -> Result<(), String> {
    let said = ask(setup, &["slabtop", "-o"])?;
    has(&said, &["Active / Total Objects", "kmalloc-64"])
}
