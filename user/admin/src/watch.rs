//! Statistics, once or again and again.

use clap::Args;

use crate::table::{Column, Output};
use crate::{Kernel, World};

/// Whether and how often.
#[derive(Args, Clone, Debug)]
pub struct Watch {
    /// Show what was carried
    #[arg(short = 's', long = "statistics")]
    pub is_wanted: bool,
    /// Go on with what was carried in every so many seconds
    #[arg(short = 'i', long = "interval", value_name = "SECONDS", requires = "is_wanted",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub interval: Option<u32>,
}

/// What things carried and dropped, by name.
type Counts = Vec<(String, Vec<u64>)>;

/// The columns that are always shown, under what the first one is called.
const fn columns(head: &'static str) -> [Column; 7] {
    [
        Column(head, 15),
        Column("IPACKETS", 10),
        Column("RBYTES", 8),
        Column("IERRORS", 10),
        Column("OPACKETS", 12),
        Column("OBYTES", 12),
        Column("OERRORS", 8),
    ]
}

impl Watch {
    /// Shows what `count` counts since the start, then what it grows by. `more` are columns
    /// that are shown where they are asked for.
    pub fn run(
        &self,
        head: &'static str,
        more: &[Column],
        output: &Output,
        world: &mut World<'_>,
        mut count: impl FnMut(&mut dyn Kernel) -> Result<Counts, String>,
    ) -> Result<(), String> {
        let always = columns(head);
        let names = always.map(|Column(name, _)| name).join(",");
        let output = output.or_fields(&names);
        let columns = [&always, more].concat();
        let mut last = count(world.kernel)?;
        let text = output.table(&columns, &rows(&last, &Vec::new()))?;
        let mut goes_on = world.console.print(&text);
        while let Some(seconds) = self.interval
            && goes_on
            && world.console.wait(seconds)
        {
            let now = count(world.kernel)?;
            let text = output.rows(&columns, &rows(&now, &last))?;
            goes_on = world.console.print(&text);
            last = now;
        }
        Ok(())
    }
}

/// What is in `now` and was not in `before`; something new has all of it.
fn rows(now: &Counts, before: &Counts) -> Vec<Vec<String>> {
    let row = |(name, counts): &(String, Vec<u64>)| {
        let old = before.iter().find(|(other, _)| other == name);
        let old = old.map_or(&[][..], |(_, counts)| counts);
        let old = old.iter().copied().chain(std::iter::repeat(0));
        let grown = counts.iter().zip(old);
        let grown = grown.map(|(new, old)| new.saturating_sub(old).to_string());
        [name.clone()].into_iter().chain(grown).collect()
    };
    now.iter().map(row).collect()
}
