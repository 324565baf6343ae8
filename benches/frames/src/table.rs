//! The figures, and the page made of them.

use std::io;
use std::process::Command;

use crate::work::WORKS;

const COLUMNS: usize = 3;

/// Nanoseconds of each round, by row and column.
#[derive(Default)]
pub struct Table([[Vec<f64>; COLUMNS]; WORKS.len()]);

impl Table {
    /// Adds one round's figure.
    pub fn add(&mut self, row: usize, column: usize, nanos: f64) {
        self.0[row][column].push(nanos);
    }

    /// The table in Markdown.
    pub fn to_markdown(&self) -> String {
        let mut text = String::from(
            "| ns per pair, median (min–max) | with caches | free lists alone | crate | crate / with caches | goal |\n\
             |---|---|---|---|---|---|\n",
        );
        for (work, row) in WORKS.iter().zip(&self.0) {
            let cells = row.each_ref().map(|rounds| cell(rounds));
            let ratio = median(&row[2]) / median(&row[0]);
            let mark = if ratio >= work.goal() { "**" } else { "" };
            text += &format!(
                "| {} | {} | {mark}{ratio:.1}{mark} | {} |\n",
                work.name(),
                cells.join(" | "),
                work.goal()
            );
        }
        text
    }
}

fn sorted(rounds: &[f64]) -> Vec<f64> {
    let mut rounds = rounds.to_vec();
    rounds.sort_by(f64::total_cmp);
    rounds
}

fn median(rounds: &[f64]) -> f64 {
    sorted(rounds)[rounds.len() / 2]
}

fn cell(rounds: &[f64]) -> String {
    let sorted = sorted(rounds);
    let shown = |nanos: f64| match nanos {
        ..100.0 => format!("{nanos:.1}"),
        _ => format!("{nanos:.0}"),
    };
    format!(
        "{} ({}–{})",
        shown(median(rounds)),
        shown(sorted[0]),
        shown(sorted[sorted.len() - 1])
    )
}

/// Writes `docs/bench-frames.md`.
pub fn write_page(table: &str, rounds: usize) -> io::Result<()> {
    let text = format!(
        "# Frames, measured\n\n\
         `cargo run --release -p bench-frames` wrote this page on {} in {rounds} alternating\n\
         rounds. Times are processor time, so that a busy machine disturbs little. Each\n\
         allocator has 1 GiB of free frames and stands behind the same spin lock: `core/frames`\n\
         with its caches for each CPU, its free lists alone, and the crate\n\
         `buddy_system_allocator` 0.13. A bold ratio reaches its goal.\n\n\
         {table}\n\
         That no frame is lost, doubled or falsely known to be zero, and that all large blocks\n\
         come back, is tested by random operations against bitmaps, a million of them in\n\
         `cargo test`, and as many as one likes by\n\n    \
         FRAMES_OPS=1000000000 SEED=7 cargo test --release -p frames --test oracle -- --nocapture\n",
        today()
    );
    std::fs::write("docs/bench-frames.md", text)
}

fn today() -> String {
    let date = Command::new("date").args(["-u", "+%F"]).output();
    date.map_or_else(
        |_| "an unknown day".into(),
        |out| String::from_utf8_lossy(&out.stdout).trim().into(),
    )
}
