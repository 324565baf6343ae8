//! `show-etherstub`

use clap::Args;
use link::links::Class;

use crate::table::{Column, Output};
use crate::{World, ask, refusals};

#[derive(Args)]
pub struct Flags {
    #[command(flatten)]
    output: Output,
    /// This etherstub only
    etherstub: Option<String>,
}

const COLUMNS: [Column; 1] = [Column("LINK", 12)];

pub fn run(flags: &Flags, world: &mut World<'_>) -> Result<(), String> {
    let mut stubs = ask::links_named(world.kernel, flags.etherstub.as_deref())?;
    stubs.retain(|link| link.class == Class::Etherstub);
    if let (Some(name), true) = (&flags.etherstub, stubs.is_empty()) {
        return Err(refusals::not_of_class(name, Class::Etherstub));
    }
    let rows: Vec<_> = stubs.into_iter().map(|stub| vec![stub.name]).collect();
    world.console.print(&flags.output.table(&COLUMNS, &rows)?);
    Ok(())
}
