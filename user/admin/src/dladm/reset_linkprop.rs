//! `reset-linkprop`

use clap::Args;
use linkctl::Request;

use crate::keep::{Keeping, Record};
use crate::{World, ask, settings};

#[derive(Args)]
pub struct Flags {
    /// These properties; all if none is named
    #[arg(short = 'p', long = "prop", value_name = "PROP,...")]
    props: Option<String>,
    #[command(flatten)]
    keeping: Keeping,
    /// Of this link
    link: String,
}

pub fn run(flags: &Flags, world: &mut World<'_>) -> Result<(), String> {
    for name in flags.names(world)? {
        let link = flags.link.clone();
        let request = Request::ResetProp {
            link,
            name: name.clone(),
        };
        let done = ask::order(world.kernel, &request);
        done.map_err(|why| format!("{} is not changed: {why}", flags.link))?;
        let is_it = |record: &Record| {
            matches!(record, Record::LinkProp { link, name: of, .. }
                if *link == flags.link && *of == name)
        };
        flags
            .keeping
            .change(|records| records.retain(|record| !is_it(record)))?;
    }
    Ok(())
}

impl Flags {
    /// All that are set, if none is named: a link need not be able to change the others.
    fn names(&self, world: &mut World<'_>) -> Result<Vec<String>, String> {
        if let Some(names) = settings::names(self.props.as_deref()) {
            return Ok(names.into_iter().map(String::from).collect());
        }
        let mut props = ask::props(world.kernel, &self.link)?;
        props.retain(|prop| !prop.is_read_only && prop.value != prop.default);
        Ok(props.into_iter().map(|prop| prop.name).collect())
    }
}
