//! `dladm`: links, VNICs, VLANs, etherstubs and the properties of links.

mod create_etherstub;
mod create_vlan;
mod create_vnic;
mod delete;
mod delete_filter;
mod reset_linkprop;
mod restore;
mod set_linkprop;
mod show_doorbell;
mod show_etherstub;
mod show_filter;
mod show_link;
mod show_linkprop;
mod show_phys;
mod show_vlan;
mod show_vnic;

use clap::{Parser, Subcommand};
use link::links::Class;
use link::vlan::VlanId;

use crate::World;

/// Administers links
#[derive(Parser)]
#[command(name = "dladm", disable_help_subcommand = true)]
struct Dladm {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show links, or what they have carried
    ShowLink(show_link::Flags),
    /// Show cards, their addresses or their rings
    ShowPhys(show_phys::Flags),
    /// Create a VNIC: a station of its own on a card or an etherstub
    CreateVnic(create_vnic::Flags),
    /// Delete a VNIC
    DeleteVnic(delete::Flags),
    /// Show VNICs
    ShowVnic(show_vnic::Flags),
    /// Create a VLAN: a card's own station in a VLAN
    CreateVlan(create_vlan::Flags),
    /// Delete a VLAN
    DeleteVlan(delete::Flags),
    /// Show VLANs
    ShowVlan(show_vlan::Flags),
    /// Create an etherstub: a switch without a card
    CreateEtherstub(create_etherstub::Flags),
    /// Delete an etherstub
    DeleteEtherstub(delete::Flags),
    /// Show etherstubs
    ShowEtherstub(show_etherstub::Flags),
    /// Set properties of a link
    SetLinkprop(set_linkprop::Flags),
    /// Set properties of a link back to their defaults
    ResetLinkprop(reset_linkprop::Flags),
    /// Show properties of links
    ShowLinkprop(show_linkprop::Flags),
    /// Show filters: the parts of links that programs may have without rights
    ShowFilter(show_filter::Flags),
    /// Take a filter from whoever holds it
    DeleteFilter(delete_filter::Flags),
    /// Show the programs that have links' frames, and how full their rings are
    ShowDoorbell(show_doorbell::Flags),
    /// Make all links and flows that outlast a restart
    Restore(restore::Flags),
}

/// Runs `dladm`; returns its exit code.
pub fn run(arguments: &[String], world: &mut World<'_>) -> u8 {
    crate::run(arguments, world, |dladm: Dladm, world| {
        match dladm.command {
            Command::ShowLink(flags) => show_link::run(&flags, world),
            Command::ShowPhys(flags) => show_phys::run(&flags, world),
            Command::CreateVnic(flags) => create_vnic::run(&flags, world),
            Command::DeleteVnic(flags) => delete::run(&flags, Class::Vnic, world),
            Command::ShowVnic(flags) => show_vnic::run(&flags, world),
            Command::CreateVlan(flags) => create_vlan::run(&flags, world),
            Command::DeleteVlan(flags) => delete::run(&flags, Class::Vlan, world),
            Command::ShowVlan(flags) => show_vlan::run(&flags, world),
            Command::CreateEtherstub(flags) => create_etherstub::run(&flags, world),
            Command::DeleteEtherstub(flags) => delete::run(&flags, Class::Etherstub, world),
            Command::ShowEtherstub(flags) => show_etherstub::run(&flags, world),
            Command::SetLinkprop(flags) => set_linkprop::run(&flags, world),
            Command::ResetLinkprop(flags) => reset_linkprop::run(&flags, world),
            Command::ShowLinkprop(flags) => show_linkprop::run(flags, world),
            Command::ShowFilter(flags) => show_filter::run(&flags, world),
            Command::DeleteFilter(flags) => delete_filter::run(&flags, world),
            Command::ShowDoorbell(flags) => show_doorbell::run(&flags, world),
            Command::Restore(flags) => restore::run(&flags, world),
        }
    })
}

/// What is not there or not known.
const NONE: &str = "--";

/// The STATE column.
fn state(is_up: Option<bool>) -> &'static str {
    match is_up {
        Some(true) => "up",
        Some(false) => "down",
        None => "unknown",
    }
}

fn or_none(text: Option<&String>) -> String {
    text.map_or_else(|| NONE.into(), Clone::clone)
}

/// A VLAN's identifier as an argument.
fn parse_vid(text: &str) -> Result<VlanId, String> {
    let vid = text.parse().ok().and_then(VlanId::new);
    vid.ok_or_else(|| "identifiers go from 1 to 4094".into())
}
