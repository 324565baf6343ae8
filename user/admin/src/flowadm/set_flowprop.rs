//! `set-flowprop`

use clap::Args;
use linkctl::Request;

use crate::keep::{self, Keeping, Record};
use crate::{World, ask, settings};

#[derive(Args)]
pub struct Flags {
    /// These properties, in this order, up to the first that is refused: maxbw, priority
    #[arg(short = 'p', long = "prop", value_name = "PROP=VALUE,...")]
    props: String,
    #[command(flatten)]
    keeping: Keeping,
    /// Of this flow
    flow: String,
}

pub fn run(flags: &Flags, world: &mut World<'_>) -> Result<(), String> {
    for setting in settings::parse(&flags.props)? {
        let flow = flags.flow.clone();
        let request = Request::SetFlowProp {
            flow: flow.clone(),
            setting: setting.clone(),
        };
        let done = ask::order(world.kernel, &request);
        done.map_err(|why| format!("{flow} is not changed: {why}"))?;
        let record = Record::FlowProp {
            flow,
            name: setting.name,
            value: setting.value,
        };
        flags.keeping.change(|records| keep::put(records, record))?;
    }
    Ok(())
}
