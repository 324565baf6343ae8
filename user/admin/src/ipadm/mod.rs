//! `ipadm`: addresses and routes that outlast a restart.
//!
//! They are of links' interfaces in the first network stack, and kept in the file of the links, behind
//! those that they need. What holds until the next restart only is `ip`'s.

mod address;
mod route;
mod show_kept;

use clap::{Parser, Subcommand};
use link::prefix::IpPrefix;

use crate::World;

/// Administers addresses and routes that are there after a restart
#[derive(Parser)]
#[command(name = "ipadm", disable_help_subcommand = true)]
struct Ipadm {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Give a link an address
    CreateAddr(address::Flags),
    /// Take an address away
    DeleteAddr(address::Flags),
    /// Add a route
    CreateRoute(route::Flags),
    /// Take a route away
    DeleteRoute(route::Flags),
    /// Show addresses and routes that are kept
    ShowKept(show_kept::Flags),
}

/// Runs `ipadm`; returns its exit code.
pub fn run(arguments: &[String], world: &mut World<'_>) -> u8 {
    crate::run(arguments, world, |ipadm: Ipadm, world| {
        match ipadm.command {
            Command::CreateAddr(flags) => address::create(&flags, world),
            Command::DeleteAddr(flags) => address::delete(&flags, world),
            Command::CreateRoute(flags) => route::create(&flags, world),
            Command::DeleteRoute(flags) => route::delete(&flags, world),
            Command::ShowKept(flags) => show_kept::run(&flags, world),
        }
    })
}

fn parse_prefix(text: &str) -> Result<IpPrefix, String> {
    let parsed = IpPrefix::parse(text);
    parsed.ok_or_else(|| "that is no ADDRESS or ADDRESS/BITS".into())
}
