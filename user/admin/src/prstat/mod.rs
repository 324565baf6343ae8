//! `prstat -m`: where the time of each thread or process goes (illumos' prstat(1M)).
//!
//! Two snapshots of `/proc/microstates` are subtracted; the first report is about the whole
//! life of each thread. Eight columns of a line are shares of its time and add up to a
//! hundred, four are counts.

mod format;
mod report;
mod snapshot;

use clap::Parser;

use crate::World;
pub(crate) use format::count;
use report::Report;
pub(crate) use report::grown;
pub(crate) use snapshot::Snapshot;

/// Shows where the time of threads goes
#[derive(Parser)]
#[command(name = "prstat", disable_help_subcommand = true)]
struct Flags {
    /// Show microstates; there is nothing else to show
    #[arg(short = 'm')]
    _has_microstates: bool,
    /// Show a line for each thread, not for each process
    #[arg(short = 'L')]
    is_by_thread: bool,
    /// Print new reports below the former ones
    #[arg(short = 'c')]
    is_scrolling: bool,
    /// Show so many lines
    #[arg(short = 'n', value_name = "LINES", default_value_t = 15)]
    lines: usize,
    /// Show these processes only
    #[arg(short = 'p', value_name = "PID,...", value_delimiter = ',')]
    pids: Vec<u32>,
    /// Seconds between reports
    #[arg(default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    interval: u32,
    /// End after so many reports
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    count: Option<u32>,
}

/// Brings a screen's cursor home and clears what follows.
const CLEAR: &str = "\x1b[H\x1b[J";

/// Runs `prstat`; returns its exit code.
pub fn run(arguments: &[String], world: &mut World<'_>) -> u8 {
    crate::run(arguments, world, |flags: Flags, world| watch(&flags, world))
}

fn watch(flags: &Flags, world: &mut World<'_>) -> Result<(), String> {
    let users = world.files.read("/etc/passwd").unwrap_or_default();
    let is_redrawn = !flags.is_scrolling && world.console.is_terminal();
    let mut before = Snapshot::default();
    let mut reports = 0;
    loop {
        let now = Snapshot::read(world.files)?;
        let report = Report::between(&before, &now, flags.is_by_thread, &flags.pids);
        let clear = if is_redrawn { CLEAR } else { "" };
        let text = format!("{clear}{}", report.text(flags.lines, &users));
        reports += 1;
        let goes_on = world.console.print(&text) && flags.count != Some(reports);
        if !goes_on || !world.console.wait(flags.interval) {
            return Ok(());
        }
        before = now;
    }
}
