//! `kstat`: the kernel's statistics by module, instance, name and statistic (illumos' kstat(1M)).
//!
//! A statistic has four names; operands choose by patterns for each, `tcp:::*Opens` or
//! `:::/Opens$/`. Protocols' statistics and the card's come from `/proc/net`, CPUs' from
//! `/proc/stat`, links' from the link layer.
//!
//! Not here: `-C` and `-T`, times of creation and of the reading.

mod pattern;
mod show;
mod source;

use clap::Parser;

use crate::World;
use pattern::Choice;

/// Shows the kernel's statistics
#[derive(Parser)]
#[command(name = "kstat", disable_help_subcommand = true)]
struct Flags {
    /// A line for each statistic: its names between colons, a tab, its value
    #[arg(short = 'p', conflicts_with_all = ["is_list", "is_json", "is_quiet"])]
    is_parsable: bool,
    /// The names only
    #[arg(short = 'l', conflicts_with_all = ["is_json", "is_quiet"])]
    is_list: bool,
    /// As JSON
    #[arg(short = 'j', conflicts_with = "is_quiet")]
    is_json: bool,
    /// Nothing; the exit code says whether there is any such statistic
    #[arg(short = 'q')]
    is_quiet: bool,
    /// Statistics of this class only
    #[arg(short = 'c', value_name = "CLASS")]
    class: Option<String>,
    /// Patterns MODULE:INSTANCE:NAME:STATISTIC, then seconds between reports and their count
    operands: Vec<String>,
}

/// Runs `kstat`; returns its exit code.
pub fn run(arguments: &[String], world: &mut World<'_>) -> u8 {
    crate::run(arguments, world, |flags: Flags, world| watch(&flags, world))
}

/// Seconds between reports, and how many.
fn rhythm(operands: &mut Vec<String>) -> Result<(Option<u32>, Option<u32>), String> {
    let is_number = |word: &&String| word.bytes().all(|byte| byte.is_ascii_digit());
    let count = operands.iter().rev().take_while(is_number).count();
    let numbers = operands.split_off(operands.len() - count);
    let numbers = numbers.iter().map(|word| match word.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("{word} is no interval and no count")),
    });
    let numbers: Vec<u32> = numbers.collect::<Result<_, String>>()?;
    match numbers[..] {
        [] => Ok((None, Some(1))),
        [interval] => Ok((Some(interval), None)),
        [interval, count] => Ok((Some(interval), Some(count))),
        _ => Err("there is one interval and one count".into()),
    }
}

fn watch(flags: &Flags, world: &mut World<'_>) -> Result<(), String> {
    let mut operands = flags.operands.clone();
    let (interval, count) = rhythm(&mut operands)?;
    let choice = Choice::new(&operands, flags.class.as_deref())?;
    let mut reports = 0;
    loop {
        let mut statistics = source::read(world)?;
        statistics.retain(|one| choice.has(one));
        if statistics.is_empty() {
            return Err("there is no such statistic".into());
        }
        let goes_on = flags.is_quiet || world.console.print(&show::text(flags, &statistics));
        reports += 1;
        let Some(seconds) = interval.filter(|_| goes_on && count != Some(reports)) else {
            return Ok(());
        };
        if !world.console.wait(seconds) {
            return Ok(());
        }
    }
}
