//! `show-flowprop`

use clap::Args;
use link::flow::FlowProps;

use crate::keep::{Record, Root};
use crate::table::{Column, Output, PropOutput};
use crate::{World, ask, settings};

#[derive(Args)]
pub struct Flags {
    /// Show values that outlast a restart instead of those that hold
    #[arg(short = 'P', long = "persistent")]
    is_persistent: bool,
    /// Flows of this link only
    #[arg(short = 'l', long = "link", value_name = "LINK")]
    link: Option<String>,
    /// These properties only: maxbw, priority
    #[arg(short = 'p', long = "prop", value_name = "PROP,...")]
    props: Option<String>,
    #[command(flatten)]
    output: PropOutput,
    #[command(flatten)]
    root: Root,
    /// Of this flow only
    flow: Option<String>,
}

/// All properties of flows.
pub const PROPERTIES: [&str; 2] = ["maxbw", "priority"];
const NONE: &str = "--";

const COLUMNS: [Column; 5] = [
    Column("FLOW", 13),
    Column("PROPERTY", 16),
    Column("VALUE", 15),
    Column("DEFAULT", 15),
    Column("POSSIBLE", 21),
];

pub fn run(flags: Flags, world: &mut World<'_>) -> Result<(), String> {
    let kept = match flags.is_persistent {
        true => Some(flags.root.load()?),
        false => None,
    };
    let wanted = settings::names(flags.props.as_deref());
    let wanted = wanted.unwrap_or_else(|| PROPERTIES.to_vec());
    if let Some(unknown) = wanted.iter().find(|name| !PROPERTIES.contains(name)) {
        return Err(format!("there is no property {unknown}"));
    }
    let flows = ask::flows_named(world.kernel, flags.link.as_deref(), flags.flow.as_deref())?;
    let mut rows = Vec::new();
    for flow in &flows {
        for &prop in &wanted {
            let value = match &kept {
                Some(records) => kept_value(records, &flow.name, prop),
                None => show(&flow.props, prop),
            };
            let possible = match prop {
                "priority" => "low,medium,high",
                _ => NONE,
            };
            rows.push(vec![
                flow.name.clone(),
                prop.into(),
                value,
                show(&FlowProps::default(), prop),
                possible.into(),
            ]);
        }
    }
    let text = Output::from(flags.output).table(&COLUMNS, &rows)?;
    world.console.print(&text);
    Ok(())
}

/// The VALUE column.
fn show(props: &FlowProps, prop: &str) -> String {
    match prop {
        "priority" => props.priority.name().into(),
        _ => props
            .maxbw
            .map_or_else(|| NONE.into(), |limit| limit.to_string()),
    }
}

fn kept_value(records: &[Record], of: &str, prop: &str) -> String {
    let value = records.iter().find_map(|record| match record {
        Record::FlowProp { flow, name, value } if flow == of && name == prop => Some(value.clone()),
        _ => None,
    });
    value.unwrap_or_else(|| NONE.into())
}
