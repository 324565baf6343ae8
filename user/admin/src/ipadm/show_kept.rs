//! `show-kept`

use clap::Args;

use crate::World;
use crate::keep::{Record, Root};
use crate::table::{Column, Output};

#[derive(Args)]
pub struct Flags {
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    root: Root,
    /// Of this link only
    link: Option<String>,
}

const COLUMNS: [Column; 4] = [
    Column("LINK", 13),
    Column("KIND", 8),
    Column("ADDRESS", 40),
    Column("ROUTER", 40),
];

pub fn run(flags: &Flags, world: &mut World<'_>) -> Result<(), String> {
    let records = flags.root.load()?;
    let is_asked = |record: &&Record| {
        let link = flags.link.as_deref();
        link.is_none_or(|link| record.is_of_link(link))
    };
    let rows: Vec<_> = records.iter().filter(is_asked).filter_map(row).collect();
    world.console.print(&flags.output.table(&COLUMNS, &rows)?);
    Ok(())
}

fn row(record: &Record) -> Option<Vec<String>> {
    let fields = match record {
        Record::Address { link, address } => [link, "address", address, "-"],
        Record::Route {
            link,
            destination,
            router,
        } => [link, "route", destination, router],
        _ => return None,
    };
    Some(fields.map(String::from).to_vec())
}
