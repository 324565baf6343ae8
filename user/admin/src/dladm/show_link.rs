//! `show-link`

use clap::Args;
use linkctl::{LinkRow, Request};

use super::{NONE, or_none, state};
use crate::keep::{Record, Root};
use crate::table::{Column, Output};
use crate::watch::Watch;
use crate::{Kernel, World, ask, refusals};

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

/// What protection dropped, by reason: shown with `-s` where they are asked for.
const PROTECTION: [Column; 5] = [
    Column("MACSPOOFED", 11),
    Column("RESTRICTED", 11),
    Column("IPSPOOFED", 10),
    Column("DHCPSPOOFED", 12),
    Column("DHCPDROPPED", 12),
];
/// Where the kernel counts them.
const PROTECTION_AT: &str = "mac_misc_stat";

pub fn run(flags: &Flags, world: &mut World<'_>) -> Result<(), String> {
    let name = flags.link.as_deref();
    if flags.watch.is_wanted {
        let count = |kernel: &mut dyn Kernel| {
            let links = ask::links_named(kernel, name)?;
            let each = links.into_iter().map(|link| counts(kernel, link.name));
            each.collect()
        };
        return flags
            .watch
            .run("LINK", &PROTECTION, &flags.output, world, count);
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

/// What a link carried, and what protection dropped.
fn counts(kernel: &mut dyn Kernel, link: String) -> Result<(String, Vec<u64>), String> {
    let request = Request::Statistics { link: link.clone() };
    let carried = ask::statistics(kernel, &request)?;
    let blocks = ask::kstats(kernel, &link)?;
    let rows = blocks
        .iter()
        .filter(|block| block.name == PROTECTION_AT)
        .flat_map(|block| &block.rows);
    let dropped = PROTECTION.map(|Column(name, _)| {
        let row = rows.clone().find(|row| row.name.eq_ignore_ascii_case(name));
        row.map_or(0, |row| row.value)
    });
    Ok((link, carried.into_iter().chain(dropped).collect()))
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
            return Err(refusals::no_such_link(name));
        }
    }
    Ok(rows)
}
