//! `show-filter`

use clap::Args;
use linkctl::{Answer, FilterRow, Request};

use super::{NONE, or_none};
use crate::table::{Column, Output};
use crate::{World, ask};

#[derive(Args)]
pub struct Flags {
    #[command(flatten)]
    output: Output,
    /// Filters of this link only
    link: Option<String>,
}

const COLUMNS: [Column; 9] = [
    Column("ID", 5),
    Column("LINK", 12),
    Column("QUEUE", 6),
    Column("PID", 8),
    Column("UID", 8),
    Column("HITS", 11),
    Column("TXDROP", 8),
    Column("RX", 26),
    Column("TX", 26),
];

pub fn run(flags: &Flags, world: &mut World<'_>) -> Result<(), String> {
    let mut rows = Vec::new();
    for link in ask::links_named(world.kernel, flags.link.as_deref())? {
        let asked = Request::Filters {
            link: link.name.clone(),
        };
        let Answer::Filters(filters) = ask::ask(world.kernel, &asked)? else {
            return Err(ask::nonsense());
        };
        rows.extend(filters.iter().map(|filter| row(&link.name, filter)));
    }
    world.console.print(&flags.output.table(&COLUMNS, &rows)?);
    Ok(())
}

fn row(link: &str, filter: &FilterRow) -> Vec<String> {
    let number = |number: Option<u32>| or_none(number.map(|it| it.to_string()).as_ref());
    vec![
        filter.id.to_string(),
        link.into(),
        filter
            .queue
            .map_or_else(|| NONE.into(), |it| it.to_string()),
        number(filter.process),
        number(filter.user),
        filter.hits.to_string(),
        filter.refused.to_string(),
        filter.receives.clone(),
        filter.sends.clone(),
    ]
}
