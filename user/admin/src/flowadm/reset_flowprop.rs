//! `reset-flowprop`

use clap::Args;
use linkctl::Request;

use super::show_flowprop::PROPERTIES;
use crate::keep::{Keeping, Record};
use crate::{World, ask, settings};

#[derive(Args)]
pub struct Flags {
    /// These properties; all if none is named
    #[arg(short = 'p', long = "prop", value_name = "PROP,...")]
    props: Option<String>,
    #[command(flatten)]
    keeping: Keeping,
    /// Of this flow
    flow: String,
}

pub fn run(flags: &Flags, world: &mut World<'_>) -> Result<(), String> {
    let names = settings::names(flags.props.as_deref());
    for name in names.unwrap_or_else(|| PROPERTIES.to_vec()) {
        let request = Request::ResetFlowProp {
            flow: flags.flow.clone(),
            name: name.into(),
        };
        let done = ask::order(world.kernel, &request);
        done.map_err(|why| format!("{} is not changed: {why}", flags.flow))?;
        let is_it = |record: &Record| {
            matches!(record, Record::FlowProp { flow, name: of, .. }
                if *flow == flags.flow && of == name)
        };
        flags
            .keeping
            .change(|records| records.retain(|record| !is_it(record)))?;
    }
    Ok(())
}
