//! `create-addr` and `delete-addr`

use clap::Args;
use link::prefix::IpPrefix;
use linkctl::{AddressOf, Request};

use super::parse_prefix;
use crate::keep::{Keeping, Record};
use crate::{World, ask};

#[derive(Args)]
pub struct Flags {
    /// The address, with the bits of its network
    #[arg(short = 'a', long = "address", value_name = "ADDRESS/BITS", value_parser = parse_prefix)]
    address: IpPrefix,
    #[command(flatten)]
    keeping: Keeping,
    /// Of this link
    link: String,
}

impl Flags {
    fn wanted(&self) -> (AddressOf, Record) {
        let asked = AddressOf {
            link: self.link.clone(),
            address: self.address,
        };
        let record = Record::Address {
            link: self.link.clone(),
            address: self.address.to_string(),
        };
        (asked, record)
    }
}

pub fn create(flags: &Flags, world: &mut World<'_>) -> Result<(), String> {
    let (asked, record) = flags.wanted();
    ask::order(world.kernel, &Request::AddAddress(asked))?;
    flags.keeping.change(|records| records.push(record))
}

pub fn delete(flags: &Flags, world: &mut World<'_>) -> Result<(), String> {
    let (asked, record) = flags.wanted();
    ask::order(world.kernel, &Request::RemoveAddress(asked))?;
    let keeping = &flags.keeping;
    keeping.change(|records| records.retain(|kept| *kept != record))
}
