//! `show-linkprop`

use clap::Args;
use linkctl::PropRow;

use super::NONE;
use crate::keep::{Record, Root};
use crate::table::{Column, Output, PropOutput};
use crate::{World, ask, settings};

#[derive(Args)]
pub struct Flags {
    /// Show values that outlast a restart instead of those that hold
    #[arg(short = 'P', long = "persistent")]
    is_persistent: bool,
    /// These properties only
    #[arg(short = 'p', long = "prop", value_name = "PROP,...")]
    props: Option<String>,
    #[command(flatten)]
    output: PropOutput,
    #[command(flatten)]
    root: Root,
    /// Of this link only
    link: Option<String>,
}

const COLUMNS: [Column; 6] = [
    Column("LINK", 13),
    Column("PROPERTY", 16),
    Column("PERM", 5),
    Column("VALUE", 15),
    Column("DEFAULT", 15),
    Column("POSSIBLE", 20),
];

pub fn run(flags: Flags, world: &mut World<'_>) -> Result<(), String> {
    let kept = match flags.is_persistent {
        true => Some(flags.root.load()?),
        false => None,
    };
    let wanted = settings::names(flags.props.as_deref());
    let mut rows = Vec::new();
    for link in ask::links_named(world.kernel, flags.link.as_deref())? {
        let mut props = ask::props(world.kernel, &link.name)?;
        if let Some(wanted) = &wanted {
            props = choose(props, wanted)?;
        }
        if let Some(kept) = &kept {
            props
                .iter_mut()
                .for_each(|prop| prop.value = kept_value(kept, &link.name, &prop.name));
        }
        rows.extend(props.into_iter().map(|prop| row(&link.name, prop)));
    }
    let text = Output::from(flags.output).table(&COLUMNS, &rows)?;
    world.console.print(&text);
    Ok(())
}

fn choose(props: Vec<PropRow>, wanted: &[&str]) -> Result<Vec<PropRow>, String> {
    let named = |name: &&str| {
        let found = props.iter().find(|prop| prop.name == *name);
        found
            .cloned()
            .ok_or_else(|| format!("there is no property {name}"))
    };
    wanted.iter().map(named).collect()
}

fn kept_value(records: &[Record], of: &str, prop: &str) -> String {
    let value = records.iter().find_map(|record| match record {
        Record::LinkProp { link, name, value } if link == of && name == prop => Some(value.clone()),
        _ => None,
    });
    value.unwrap_or_else(|| NONE.into())
}

fn row(link: &str, prop: PropRow) -> Vec<String> {
    let perm = if prop.is_read_only { "r-" } else { "rw" };
    vec![
        link.into(),
        prop.name,
        perm.into(),
        prop.value,
        prop.default,
        prop.possible,
    ]
}
