//! `show-vlan`

use clap::Args;
use link::links::Class;
use link::vlan::VlanId;
use linkctl::LinkRow;

use super::or_none;
use crate::table::{Column, Output};
use crate::{World, ask, refusals};

#[derive(Args)]
pub struct Flags {
    #[command(flatten)]
    output: Output,
    /// This VLAN only
    vlan: Option<String>,
}

const COLUMNS: [Column; 4] = [
    Column("LINK", 16),
    Column("VID", 9),
    Column("OVER", 13),
    Column("FLAGS", 7),
];

pub fn run(flags: &Flags, world: &mut World<'_>) -> Result<(), String> {
    let mut vlans = ask::links_named(world.kernel, flags.vlan.as_deref())?;
    vlans.retain(|link| link.class == Class::Vlan);
    if let (Some(name), true) = (&flags.vlan, vlans.is_empty()) {
        return Err(refusals::not_of_class(name, Class::Vlan));
    }
    let rows: Vec<_> = vlans.iter().map(row).collect();
    world.console.print(&flags.output.table(&COLUMNS, &rows)?);
    Ok(())
}

/// None of our VLANs is forced or implicit.
fn row(vlan: &LinkRow) -> Vec<String> {
    vec![
        vlan.name.clone(),
        vlan.vid.map_or(0, VlanId::get).to_string(),
        or_none(vlan.over.as_ref()),
        "-----".into(),
    ]
}
