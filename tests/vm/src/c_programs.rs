//! The small C programs of `tests/programs`: one machine runs them all in turn.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::build::{self, Link};
use crate::guest::Setup;
use crate::monkey;
use crate::storm;
use crate::stretch;
use crate::tally::Tally;
use crate::{Cpus, runs};

/// Chooses all of them on the command line.
pub const SENTENCE: &str = "C programs do on Sietch what they do on Linux";

const SOURCES: &str = "tests/programs";
const SEQUENCE: &str = "tests/harness/sequence.c";
const PATIENCE: Duration = Duration::from_secs(450);
/// Discard (RFC 863), which nobody serves.
const NO_PORT: u16 = 9;
/// Some programs start a shell, and scripts that name it.
const SHELL: &str = "/bin/busybox:/bin/sh";

/// Programs that take long, and that the short form runs in one machine only.
const ONCE: [(&str, Cpus); 2] = [("fail_nth", Cpus::One), ("large_tables", Cpus::Several)];

/// Builds and runs all programs; each of their tests is counted. A program that ends
/// the machine is left behind, and the next machine goes on after it.
pub fn run(setup: &Setup, tally: &mut Tally) {
    let mut programs = match build_all(setup) {
        Ok(programs) => programs,
        Err(why) => return tally.fail(&format!("{SENTENCE}: {why}")),
    };
    while !programs.is_empty() {
        let (console, end) = match run_in_one_machine(setup, &programs) {
            Ok(ended) => ended,
            Err(why) => return tally.fail(&format!("{SENTENCE}: {why}")),
        };
        let started = count(&console, tally);
        if console.contains("# end of sequence") {
            return;
        }
        let last = programs
            .get(started.saturating_sub(1))
            .map(|path| guest_path(path));
        tally.fail(&format!(
            "{}: it ended the machine: {end}",
            last.unwrap_or_default()
        ));
        programs.drain(..started.max(1));
    }
}

fn build_all(setup: &Setup) -> Result<Vec<PathBuf>, String> {
    let listing = fs::read_dir(SOURCES).map_err(|error| format!("{SOURCES}: {error}"))?;
    let mut sources: Vec<PathBuf> = listing.flatten().map(|entry| entry.path()).collect();
    sources.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
    sources.retain(|path| {
        [monkey::SOURCE, storm::SOURCE, stretch::SOURCE]
            .iter()
            .all(|own| path != Path::new(own))
    });
    sources.retain(|path| {
        let known = ONCE
            .iter()
            .find(|(name, _)| path.ends_with(format!("{name}.c")));
        known.is_none_or(|(_, cpus)| runs(setup, *cpus))
    });
    sources.sort();
    sources.iter().map(|source| build::c(source)).collect()
}

/// What the programs wrote, and how the command ended.
fn run_in_one_machine(setup: &Setup, programs: &[PathBuf]) -> Result<(String, String), String> {
    let sequence = build::c_linked(Path::new(SEQUENCE), Link::StaticMusl)?;
    let sequence = sequence.to_string_lossy().into_owned();
    let guests: Vec<String> = programs.iter().map(|path| guest_path(path)).collect();
    let additions: Vec<String> = programs
        .iter()
        .zip(&guests)
        .flat_map(|(host, guest)| ["--add".to_string(), format!("{}:{guest}", host.display())])
        .collect();
    let mut args: Vec<&str> = vec!["--add", SHELL];
    args.extend(additions.iter().map(String::as_str));
    args.push(&sequence);
    args.extend(guests.iter().map(String::as_str));
    // No port is reached from outside; but the network is the one with all its queues.
    let (mut guest, _) = setup.serve(NO_PORT, &args)?;
    match guest.wait_until_end(PATIENCE) {
        Some(status) => Ok((
            guest.console(),
            format!("status {status}: {}", guest.explain("ended")),
        )),
        None => Ok((
            guest.console(),
            format!("it took over {} s", PATIENCE.as_secs()),
        )),
    }
}

fn guest_path(program: &Path) -> String {
    format!(
        "/tests/{}",
        program.file_name().unwrap_or_default().display()
    )
}

/// Counts the lines that report a test, under the name of their program. Returns how
/// many programs were started.
fn count(console: &str, tally: &mut Tally) -> usize {
    let mut program = "";
    let mut started = 0;
    for line in console.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("# ") {
            program = name;
            started += 1;
        } else if let Some(test) = line.strip_prefix("not ok ") {
            tally.fail(&format!("{program}: {}", test.replace('_', " ")));
        } else if let Some(test) = line.strip_prefix("ok ") {
            tally.pass(&format!("{program}: {}", test.replace('_', " ")));
        } else if line.starts_with("took ") {
            println!("     {program} {line}");
        }
    }
    started
}
