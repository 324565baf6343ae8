//! The small C programs of `tests/programs`: one machine runs them all in turn.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::build::{self, Link};
use crate::guest::Setup;
use crate::monkey;
use crate::tally::Tally;

/// Chooses all of them on the command line.
pub const SENTENCE: &str = "C programs do on Sietch what they do on Linux";

const SOURCES: &str = "tests/programs";
const SEQUENCE: &str = "tests/harness/sequence.c";
const PATIENCE: Duration = Duration::from_secs(600);

/// Builds and runs all programs; each of their tests is counted.
pub fn run(setup: &Setup, tally: &mut Tally) {
    let programs = match build_all() {
        Ok(programs) => programs,
        Err(why) => return tally.fail(&format!("{SENTENCE}: {why}")),
    };
    match run_in_one_machine(setup, &programs) {
        Ok(console) => count(&console, tally),
        Err(why) => tally.fail(&format!("{SENTENCE}: {why}")),
    }
}

fn build_all() -> Result<Vec<PathBuf>, String> {
    let listing = fs::read_dir(SOURCES).map_err(|error| format!("{SOURCES}: {error}"))?;
    let mut sources: Vec<PathBuf> = listing.flatten().map(|entry| entry.path()).collect();
    sources.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
    sources.retain(|path| path != Path::new(monkey::SOURCE));
    sources.sort();
    sources.iter().map(|source| build::c(source)).collect()
}

fn run_in_one_machine(setup: &Setup, programs: &[PathBuf]) -> Result<String, String> {
    let sequence = build::c_linked(Path::new(SEQUENCE), Link::StaticMusl)?;
    let sequence = sequence.to_string_lossy().into_owned();
    let guests: Vec<String> = programs.iter().map(|path| guest_path(path)).collect();
    let additions: Vec<String> = programs
        .iter()
        .zip(&guests)
        .flat_map(|(host, guest)| ["--add".to_string(), format!("{}:{guest}", host.display())])
        .collect();
    let mut args: Vec<&str> = vec!["--name", "c-programs"];
    args.extend(additions.iter().map(String::as_str));
    args.push(&sequence);
    args.extend(guests.iter().map(String::as_str));
    let end = setup.start(&args)?.wait(PATIENCE)?;
    match end.console.contains("# end of sequence") {
        true => Ok(end.console),
        // What was reported until then still counts.
        false => Ok(format!(
            "{}\nnot ok sequence: the machine ended early with status {}: {}",
            end.console,
            end.status,
            end.errors.trim()
        )),
    }
}

fn guest_path(program: &Path) -> String {
    format!(
        "/tests/{}",
        program.file_name().unwrap_or_default().display()
    )
}

/// Counts the lines that report a test, under the name of their program.
fn count(console: &str, tally: &mut Tally) {
    let mut program = "";
    for line in console.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("# ") {
            program = name;
        } else if let Some(test) = line.strip_prefix("not ok ") {
            tally.fail(&format!("{program}: {}", test.replace('_', " ")));
        } else if let Some(test) = line.strip_prefix("ok ") {
            tally.pass(&format!("{program}: {}", test.replace('_', " ")));
        }
    }
}
