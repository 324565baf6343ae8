//! `show-vnic`

use clap::Args;
use link::links::Class;
use link::vlan::VlanId;
use linkctl::LinkRow;

use super::{NONE, or_none};
use crate::keep::{Record, Root};
use crate::table::{Column, Output};
use crate::{World, ask, refusals};

#[derive(Args)]
pub struct Flags {
    /// Show what outlasts a restart instead of what is
    #[arg(short = 'P', long = "persistent")]
    is_persistent: bool,
    /// VNICs over this link only
    #[arg(short = 'l', long = "link", value_name = "LINK")]
    over: Option<String>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    root: Root,
    /// This VNIC only
    vnic: Option<String>,
}

const COLUMNS: [Column; 6] = [
    Column("LINK", 13),
    Column("OVER", 11),
    Column("SPEED", 6),
    Column("MACADDRESS", 18),
    Column("MACADDRTYPE", 12),
    Column("VID", 5),
];

pub fn run(flags: &Flags, world: &mut World<'_>) -> Result<(), String> {
    let mut rows: Vec<Vec<String>> = match flags.is_persistent {
        true => flags.root.load()?.iter().filter_map(kept_row).collect(),
        false => {
            let links = ask::links_named(world.kernel, flags.vnic.as_deref())?;
            let vnics = links.iter().filter(|link| link.class == Class::Vnic);
            vnics.map(row).collect()
        }
    };
    if let Some(over) = &flags.over {
        ask::links_named(world.kernel, Some(over))?;
        rows.retain(|row| row[1] == *over);
    }
    if let Some(name) = &flags.vnic {
        rows.retain(|row| row[0] == *name);
        if rows.is_empty() {
            return Err(refusals::not_of_class(name, Class::Vnic));
        }
    }
    world.console.print(&flags.output.table(&COLUMNS, &rows)?);
    Ok(())
}

fn row(vnic: &LinkRow) -> Vec<String> {
    vec![
        vnic.name.clone(),
        or_none(vnic.over.as_ref()),
        vnic.speed_mbps.to_string(),
        vnic.mac.to_string(),
        vnic.mac_origin.name().into(),
        vnic.vid.map_or(0, VlanId::get).to_string(),
    ]
}

fn kept_row(record: &Record) -> Option<Vec<String>> {
    let Record::Vnic {
        name,
        over,
        mac,
        vid,
    } = record
    else {
        return None;
    };
    let fields = [name.as_str(), over, NONE, mac, NONE, vid];
    Some(fields.map(String::from).to_vec())
}
