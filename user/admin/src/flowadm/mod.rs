//! `flowadm`: flows and their properties.

mod add_flow;
mod remove_flow;
mod reset_flowprop;
mod set_flowprop;
mod show_flow;
mod show_flowprop;

use clap::{Parser, Subcommand};

use crate::World;

/// Administers flows: traffic of a link with a limit and a priority of its own
#[derive(Parser)]
#[command(name = "flowadm", disable_help_subcommand = true)]
struct Flowadm {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Add a flow to a link
    AddFlow(add_flow::Flags),
    /// Remove a flow, or all flows of a link
    RemoveFlow(remove_flow::Flags),
    /// Show flows, or what they have carried
    ShowFlow(show_flow::Flags),
    /// Set properties of a flow
    SetFlowprop(set_flowprop::Flags),
    /// Set properties of a flow back to their defaults
    ResetFlowprop(reset_flowprop::Flags),
    /// Show properties of flows
    ShowFlowprop(show_flowprop::Flags),
}

/// Runs `flowadm`; returns its exit code.
pub fn run(arguments: &[String], world: &mut World<'_>) -> u8 {
    crate::run(arguments, world, |flowadm: Flowadm, world| {
        match flowadm.command {
            Command::AddFlow(flags) => add_flow::run(&flags, world),
            Command::RemoveFlow(flags) => remove_flow::run(&flags, world),
            Command::ShowFlow(flags) => show_flow::run(&flags, world),
            Command::SetFlowprop(flags) => set_flowprop::run(&flags, world),
            Command::ResetFlowprop(flags) => reset_flowprop::run(&flags, world),
            Command::ShowFlowprop(flags) => show_flowprop::run(flags, world),
        }
    })
}
