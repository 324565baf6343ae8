//! `delete-filter`

use clap::Args;
use linkctl::Request;

use crate::{World, ask};

#[derive(Args)]
pub struct Flags {
    /// Its link
    link: String,
    /// Its number, as show-filter has it
    id: u32,
}

pub fn run(flags: &Flags, world: &mut World<'_>) -> Result<(), String> {
    let (link, id) = (flags.link.clone(), flags.id);
    let gone = ask::order(world.kernel, &Request::DeleteFilter { link, id });
    gone.map_err(|why| format!("filter {id} is not deleted: {why}"))
}
