//! `restore`

use clap::Args;
use link::props::parse_mac;
use linkctl::{NewMac, NewVnic, Request, Setting};

use super::parse_vid;
use crate::keep::{Record, Root};
use crate::{World, ask};

#[derive(Args)]
pub struct Flags {
    #[command(flatten)]
    root: Root,
}

/// Does what it can; what fails is complained about, and the rest goes on.
pub fn run(flags: &Flags, world: &mut World<'_>) -> Result<(), String> {
    let mut failed = 0;
    for record in flags.root.load()? {
        let done = request(&record);
        let done = done.and_then(|request| ask::ask(world.kernel, &request));
        if let Err(why) = done {
            world
                .console
                .complain(&format!("dladm: {record:?}: {why}\n"));
            failed += 1;
        }
    }
    match failed {
        0 => Ok(()),
        failed => Err(format!("{failed} records could not be restored")),
    }
}

/// What a record asks for.
fn request(record: &Record) -> Result<Request, String> {
    let setting = |name: &str, value: &str| Setting {
        name: name.into(),
        value: value.into(),
    };
    Ok(match record.clone() {
        Record::Etherstub { name } => Request::CreateEtherstub { name },
        Record::Vnic {
            name,
            over,
            mac,
            vid,
        } => {
            let vid = match vid.as_str() {
                "0" => None,
                vid => Some(parse_vid(vid)?),
            };
            let mac = parse_mac(&mac).ok_or_else(|| format!("{mac} is no station's address"))?;
            Request::CreateVnic(NewVnic {
                name,
                over,
                mac: NewMac::Given(mac),
                vid,
                settings: Vec::new(),
            })
        }
        Record::Vlan { name, over, vid } => Request::CreateVlan {
            name: Some(name),
            over,
            vid: parse_vid(&vid)?,
        },
        Record::LinkProp { link, name, value } => Request::SetProp {
            link,
            setting: setting(&name, &value),
        },
        Record::Flow {
            name,
            link,
            attributes,
        } => Request::AddFlow {
            name,
            link,
            attributes,
            settings: Vec::new(),
        },
        Record::FlowProp { flow, name, value } => Request::SetFlowProp {
            flow,
            setting: setting(&name, &value),
        },
    })
}
