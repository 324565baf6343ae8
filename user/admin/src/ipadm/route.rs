//! `create-route` and `delete-route`

use std::net::IpAddr;

use clap::Args;
use link::prefix::IpPrefix;
use linkctl::{NO_ROUTER, Request, RouteOf};

use super::parse_prefix;
use crate::keep::{Keeping, Record};
use crate::{World, ask};

#[derive(Args)]
pub struct Flags {
    /// Where to; 0.0.0.0/0 and ::/0 are everywhere
    #[arg(short = 'd', long = "destination", value_name = "ADDRESS/BITS", value_parser = parse_prefix)]
    destination: IpPrefix,
    /// By this router; without one the destinations are neighbours
    #[arg(short = 'g', long = "gateway", value_name = "ADDRESS")]
    router: Option<IpAddr>,
    #[command(flatten)]
    keeping: Keeping,
    /// By this link
    link: String,
}

impl Flags {
    fn wanted(&self) -> (RouteOf, Record) {
        let asked = RouteOf {
            link: self.link.clone(),
            destination: self.destination,
            router: self.router,
        };
        let record = Record::Route {
            link: self.link.clone(),
            destination: self.destination.to_string(),
            router: self
                .router
                .map_or(NO_ROUTER.into(), |router| router.to_string()),
        };
        (asked, record)
    }
}

pub fn create(flags: &Flags, world: &mut World<'_>) -> Result<(), String> {
    let (asked, record) = flags.wanted();
    ask::order(world.kernel, &Request::AddRoute(asked))?;
    flags.keeping.change(|records| records.push(record))
}

pub fn delete(flags: &Flags, world: &mut World<'_>) -> Result<(), String> {
    let (asked, record) = flags.wanted();
    ask::order(world.kernel, &Request::RemoveRoute(asked))?;
    let keeping = &flags.keeping;
    keeping.change(|records| records.retain(|kept| *kept != record))
}
