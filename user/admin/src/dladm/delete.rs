//! `delete-vnic`, `delete-vlan` and `delete-etherstub`

use clap::Args;
use link::links::Class;
use linkctl::Request;

use crate::keep::{self, Keeping};
use crate::{World, ask};

#[derive(Args)]
pub struct Flags {
    #[command(flatten)]
    keeping: Keeping,
    /// Which one
    name: String,
}

pub fn run(flags: &Flags, class: Class, world: &mut World<'_>) -> Result<(), String> {
    let link = flags.name.clone();
    let gone = ask::order(world.kernel, &Request::Delete { link, class });
    gone.map_err(|why| format!("{} is not deleted: {why}", flags.name))?;
    flags
        .keeping
        .change(|records| keep::remove_link(records, &flags.name))
}
