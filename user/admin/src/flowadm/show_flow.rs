//! `show-flow`

use clap::Args;
use link::flow::Rule;
use linkctl::Request;

use crate::keep::{Record, Root};
use crate::table::{Column, Output};
use crate::watch::Watch;
use crate::{Kernel, World, ask, refusals};

#[derive(Args)]
pub struct Flags {
    /// Show what outlasts a restart instead of what is
    #[arg(short = 'P', long = "persistent", conflicts_with = "is_wanted")]
    is_persistent: bool,
    /// Flows of this link only
    #[arg(short = 'l', long = "link", value_name = "LINK")]
    link: Option<String>,
    #[command(flatten)]
    watch: Watch,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    root: Root,
    /// This flow only
    flow: Option<String>,
}

const COLUMNS: [Column; 7] = [
    Column("FLOW", 12),
    Column("LINK", 12),
    Column("IPADDR", 25),
    Column("PROTO", 7),
    Column("LPORT", 8),
    Column("RPORT", 8),
    Column("DSFLD", 10),
];

pub fn run(flags: &Flags, world: &mut World<'_>) -> Result<(), String> {
    let (link, flow) = (flags.link.as_deref(), flags.flow.as_deref());
    if flags.watch.is_wanted {
        let count = |kernel: &mut dyn Kernel| {
            let flows = ask::flows_named(kernel, link, flow)?;
            let each = flows.into_iter().map(|flow| {
                let request = Request::FlowStatistics {
                    flow: flow.name.clone(),
                };
                Ok((flow.name, ask::statistics(kernel, &request)?.to_vec()))
            });
            each.collect()
        };
        return flags.watch.run("FLOW", &[], &flags.output, world, count);
    }
    let rows = match flags.is_persistent {
        true => kept_rows(&flags.root.load()?, link, flow)?,
        false => {
            let flows = ask::flows_named(world.kernel, link, flow)?;
            let rows = flows
                .iter()
                .map(|flow| row(&flow.name, &flow.link, &flow.rule));
            rows.collect()
        }
    };
    world.console.print(&flags.output.table(&COLUMNS, &rows)?);
    Ok(())
}

fn row(name: &str, link: &str, rule: &Rule) -> Vec<String> {
    let names = [name, link].map(String::from);
    names.into_iter().chain(rule.columns()).collect()
}

fn kept_rows(
    records: &[Record],
    of: Option<&str>,
    named: Option<&str>,
) -> Result<Vec<Vec<String>>, String> {
    let mut rows = Vec::new();
    for record in records {
        let Record::Flow {
            name,
            link,
            attributes,
        } = record
        else {
            continue;
        };
        if of.is_some_and(|of| link != of) || named.is_some_and(|named| name != named) {
            continue;
        }
        let rule = Rule::parse(attributes);
        let rule =
            rule.map_err(|_| format!("{name} is kept with {attributes}, which is no rule"))?;
        rows.push(row(name, link, &rule));
    }
    match (named, rows.is_empty()) {
        (Some(named), true) => Err(refusals::no_such_flow(named)),
        _ => Ok(rows),
    }
}
