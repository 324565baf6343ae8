//! `use`: utilisation, saturation and errors of CPU, memory, network, volumes and disks on one screen.
//!
//! The USE method (Brendan Gregg, 2012) asks three questions of each resource: how much of it
//! is used, does work queue for it, and does it fail? Whatever answers yes is looked at first.
//! All figures are counters of /proc; two readings are subtracted, and the first report
//! is about the time since the boot.

mod figures;
mod rows;

use clap::Parser;

use crate::World;
use crate::table::{Column, Output};
use figures::Figures;

/// Shows utilisation, saturation and errors of all resources
#[derive(Parser)]
#[command(name = "use", disable_help_subcommand = true)]
struct Flags {
    /// Seconds between reports
    #[arg(default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    interval: u32,
    /// End after so many reports
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    count: Option<u32>,
    #[command(flatten)]
    output: Output,
}

const COLUMNS: [Column; 4] = [
    Column("RESOURCE", 9),
    Column("UTILISATION", 26),
    Column("SATURATION", 29),
    Column("ERRORS", 40),
];

/// Brings a screen's cursor home and clears what follows.
const CLEAR: &str = "\x1b[H\x1b[J";

/// Runs `use`; returns its exit code.
pub fn run(arguments: &[String], world: &mut World<'_>) -> u8 {
    crate::run(arguments, world, |flags: Flags, world| watch(&flags, world))
}

fn watch(flags: &Flags, world: &mut World<'_>) -> Result<(), String> {
    let clear = if world.console.is_terminal() {
        CLEAR
    } else {
        ""
    };
    let mut before = Figures::default();
    let mut reports = 0;
    loop {
        let now = Figures::read(world.files)?;
        let rows = rows::rows(&before, &now);
        let text = format!("{clear}{}", flags.output.table(&COLUMNS, &rows)?);
        reports += 1;
        let goes_on = world.console.print(&text) && flags.count != Some(reports);
        if !goes_on || !world.console.wait(flags.interval) {
            return Ok(());
        }
        before = now;
    }
}
