//! `add-flow`

use clap::Args;
use linkctl::{Request, Setting};

use crate::keep::{Keeping, Record};
use crate::{World, ask, settings};

#[derive(Args)]
pub struct Flags {
    /// Of this link
    #[arg(short = 'l', long = "link", value_name = "LINK")]
    link: String,
    /// Traffic that matches: local_ip=ADDRESS[/BITS], remote_ip=ADDRESS[/BITS],
    /// transport=tcp|udp|sctp|icmp|icmpv6, transport=tcp|udp|sctp with local_port=PORT or
    /// remote_port=PORT, or dsfield=0xVALUE[:0xMASK]; all flows of a link look at the same
    #[arg(short = 'a', long = "attr", value_name = "ATTR=VALUE,...")]
    attributes: String,
    /// With these properties: maxbw, priority
    #[arg(short = 'p', long = "prop", value_name = "PROP=VALUE,...")]
    props: Option<String>,
    #[command(flatten)]
    keeping: Keeping,
    /// Its name
    name: String,
}

pub fn run(flags: &Flags, world: &mut World<'_>) -> Result<(), String> {
    let settings = flags.props.as_deref().map(settings::parse).transpose()?;
    let settings = settings.unwrap_or_default();
    let request = Request::AddFlow {
        name: flags.name.clone(),
        link: flags.link.clone(),
        attributes: flags.attributes.clone(),
        settings: settings.clone(),
    };
    let done = ask::order(world.kernel, &request);
    done.map_err(|why| format!("{} is not added: {why}", flags.name))?;
    flags.keeping.change(|records| {
        records.push(Record::Flow {
            name: flags.name.clone(),
            link: flags.link.clone(),
            attributes: flags.attributes.clone(),
        });
        let prop = |setting: Setting| Record::FlowProp {
            flow: flags.name.clone(),
            name: setting.name,
            value: setting.value,
        };
        records.extend(settings.into_iter().map(prop));
    })
}
