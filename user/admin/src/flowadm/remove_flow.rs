//! `remove-flow`

use clap::Args;
use linkctl::Request;

use crate::keep::{self, Keeping};
use crate::{World, ask};

#[derive(Args)]
pub struct Flags {
    /// All flows of this link
    #[arg(
        short = 'l',
        long = "link",
        value_name = "LINK",
        conflicts_with = "flow",
        required_unless_present = "flow"
    )]
    link: Option<String>,
    #[command(flatten)]
    keeping: Keeping,
    /// This flow
    flow: Option<String>,
}

pub fn run(flags: &Flags, world: &mut World<'_>) -> Result<(), String> {
    if let Some(link) = flags.link.clone() {
        ask::order(world.kernel, &Request::RemoveFlows { link: link.clone() })?;
        flags
            .keeping
            .change(|records| keep::remove_flows(records, &link))?;
    }
    if let Some(flow) = flags.flow.clone() {
        let gone = ask::order(world.kernel, &Request::RemoveFlow { flow: flow.clone() });
        gone.map_err(|why| format!("{flow} is not removed: {why}"))?;
        flags
            .keeping
            .change(|records| keep::remove_flow(records, &flow))?;
    }
    Ok(())
}
