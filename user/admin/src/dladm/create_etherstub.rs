//! `create-etherstub`

use clap::Args;
use linkctl::Request;

use crate::keep::{Keeping, Record};
use crate::{World, ask};

#[derive(Args)]
pub struct Flags {
    #[command(flatten)]
    keeping: Keeping,
    /// Its name
    name: String,
}

pub fn run(flags: &Flags, world: &mut World<'_>) -> Result<(), String> {
    let name = flags.name.clone();
    let made = ask::ask(world.kernel, &Request::CreateEtherstub { name });
    made.map_err(|why| format!("{} is not created: {why}", flags.name))?;
    let name = flags.name.clone();
    flags
        .keeping
        .change(|records| records.push(Record::Etherstub { name }))
}
