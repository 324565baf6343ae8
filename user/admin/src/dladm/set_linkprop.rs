//! `set-linkprop`

use clap::Args;
use linkctl::Request;

use crate::keep::{self, Keeping, Record};
use crate::{World, ask, settings};

#[derive(Args)]
pub struct Flags {
    /// These properties, in this order, up to the first that is refused
    #[arg(short = 'p', long = "prop", value_name = "PROP=VALUE,...")]
    props: String,
    #[command(flatten)]
    keeping: Keeping,
    /// Of this link
    link: String,
}

pub fn run(flags: &Flags, world: &mut World<'_>) -> Result<(), String> {
    for setting in settings::parse(&flags.props)? {
        let link = flags.link.clone();
        let request = Request::SetProp {
            link: link.clone(),
            setting: setting.clone(),
        };
        let done = ask::order(world.kernel, &request);
        done.map_err(|why| format!("{link} is not changed: {why}"))?;
        let record = Record::LinkProp {
            link,
            name: setting.name,
            value: setting.value,
        };
        flags.keeping.change(|records| keep::put(records, record))?;
    }
    Ok(())
}
