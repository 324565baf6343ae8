//! `show-doorbell`

use clap::Args;
use linkctl::{Answer, DoorbellRow, Request};

use super::or_none;
use crate::table::{Column, Output};
use crate::{World, ask};

#[derive(Args)]
pub struct Flags {
    #[command(flatten)]
    output: Output,
    /// Queues of this link only
    link: Option<String>,
}

const COLUMNS: [Column; 9] = [
    Column("LINK", 12),
    Column("QUEUE", 6),
    Column("PID", 8),
    Column("STATE", 8),
    Column("WAKES", 11),
    Column("RX", 6),
    Column("FILL", 6),
    Column("TX", 6),
    Column("COMPL", 6),
];

pub fn run(flags: &Flags, world: &mut World<'_>) -> Result<(), String> {
    let mut rows = Vec::new();
    for link in ask::links_named(world.kernel, flags.link.as_deref())? {
        let asked = Request::Doorbells {
            link: link.name.clone(),
        };
        let Answer::Doorbells(doorbells) = ask::ask(world.kernel, &asked)? else {
            return Err(ask::nonsense());
        };
        rows.extend(doorbells.iter().map(|doorbell| row(&link.name, doorbell)));
    }
    world.console.print(&flags.output.table(&COLUMNS, &rows)?);
    Ok(())
}

fn row(link: &str, doorbell: &DoorbellRow) -> Vec<String> {
    let filled = |entries: Option<u32>| or_none(entries.map(|it| it.to_string()).as_ref());
    let state = match doorbell.is_armed {
        true => "armed",
        false => "polling",
    };
    vec![
        link.into(),
        doorbell.queue.to_string(),
        doorbell.process.to_string(),
        state.into(),
        doorbell.wakes.to_string(),
        filled(doorbell.rx),
        filled(doorbell.fill),
        filled(doorbell.tx),
        filled(doorbell.completion),
    ]
}
