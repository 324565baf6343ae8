//! `show-link`

use clap::Args;
use linkctl::{LinkRow, Request};

use super::{NONE, or_none, state};
use crate::keep::{Record, Root};
use crate::table::{Column, Output};
use crate::watch::Watch;
use crate::{Kernel, World, ask, sentence};

#[derive(Args)]
pub struct Flags {
    /// Show what outlasts a restart instead of what is
    #[arg(short = 'P', long = "persistent", conflicts_with = "is_wanted")]
    is_persistent: bool,
    #[command(flatten)]
    watch: Watch,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    root: Root,
    /// This link only
    link: Option<String>,
}

const COLUMNS: [Column; 6] = [
    Column("LINK", 12),
    Column("CLASS", 10),
    Column("MTU", 7),
    Column("STATE", 9),
    Column("BRIDGE", 11),
    Column("OVER", 30),
];

pub fn run(flags: &Flags, world: &mut World<'_>) -> Result<(), String> {
    let name = flags.link.as_deref();
    if flags.watch.is_wanted {
        let count = |kernel: &mut dyn Kernel| {
            let links = ask::links_named(kernel, name)?;
            let each = links.into_iter().map(|link| {
                let request = Request::Statistics {
                    link: link.name.clone(),
                };
                Ok((link.name, ask::statistics(kernel, &request)?))
            });
            each.collect()
        };
        return flags.watch.run("LINK", &flags.output, world, count);
    }
    let rows: Vec<_> = match flags.is_persistent {
        true => kept_rows(&flags.root.load()?, name)?,
        false => {
            let links = ask::links_named(world.kernel, name)?;
            links.iter().map(row).collect()
        }
    };
    world.console.print(&flags.output.table(&COLUMNS, &rows)?);
    Ok(())
}

fn row(link: &LinkRow) -> Vec<String> {
    vec![
        link.name.clone(),
        link.class.name().into(),
        link.mtu.to_string(),
        state(link.is_up).into(),
        NONE.into(),
        or_none(link.over.as_ref()),
    ]
}

/// Of what outlasts a restart only the name, the class and the port are known.
fn kept_rows(records: &[Record], name: Option<&str>) -> Result<Vec<Vec<String>>, String> {
    let row = |name: &str, class: &str, over: &str| {
        let fields = [name, class, NONE, NONE, NONE, over];
        fields.map(String::from).to_vec()
    };
    let rows = records.iter().filter_map(|record| match record {
        Record::Etherstub { name } => Some(row(name, "etherstub", NONE)),
        Record::Vnic { name, over, .. } => Some(row(name, "vnic", over)),
        Record::Vlan { name, over, .. } => Some(row(name, "vlan", over)),
        _ => None,
    });
    let mut rows: Vec<_> = rows.collect();
    if let Some(name) = name {
        rows.retain(|row| row[0] == name);
        if rows.is_empty() {
            return Err(sentence::no_such_link(name));
        }
    }
    Ok(rows)
}
