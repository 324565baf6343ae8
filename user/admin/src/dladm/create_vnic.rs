//! `create-vnic`

use clap::Args;
use link::props::parse_mac;
use link::vlan::VlanId;
use linkctl::{Answer, NewMac, NewVnic, Request, Setting};

use super::parse_vid;
use crate::keep::{Keeping, Record};
use crate::{World, ask, settings};

#[derive(Args)]
pub struct Flags {
    /// Over this card or etherstub
    #[arg(short = 'l', long = "link", value_name = "LINK")]
    over: String,
    /// Its address: one given, "random", "factory" (one that the card has to spare), or
    /// "auto" (factory, or else random)
    #[arg(
        short = 'm',
        long = "mac-address",
        value_name = "ADDRESS",
        default_value = "auto"
    )]
    mac: String,
    /// Which of the card's spare addresses
    #[arg(short = 'n', long = "slot")]
    slot: Option<u16>,
    /// The first three bytes of a random address
    #[arg(short = 'r', long = "mac-prefix", value_name = "PREFIX", value_parser = parse_prefix)]
    prefix: Option<[u8; 3]>,
    /// In this VLAN: 1 to 4094
    #[arg(short = 'v', long = "vlan-id", value_name = "VID", value_parser = parse_vid)]
    vid: Option<VlanId>,
    /// With these properties
    #[arg(short = 'p', long = "prop", value_name = "PROP=VALUE,...")]
    props: Option<String>,
    #[command(flatten)]
    keeping: Keeping,
    /// Its name
    name: String,
}

pub fn run(flags: &Flags, world: &mut World<'_>) -> Result<(), String> {
    let settings = flags.props.as_deref().map(settings::parse).transpose()?;
    let vnic = NewVnic {
        name: flags.name.clone(),
        over: flags.over.clone(),
        mac: flags.new_mac()?,
        vid: flags.vid,
        settings: settings.unwrap_or_default(),
    };
    let made = ask::ask(world.kernel, &Request::CreateVnic(vnic.clone()));
    let made = made.map_err(|why| format!("{} is not created: {why}", flags.name))?;
    let Answer::Created { name, mac } = made else {
        return Err(ask::nonsense());
    };
    flags.keeping.change(|records| {
        records.push(Record::Vnic {
            name: name.clone(),
            over: vnic.over,
            mac: mac.to_string(),
            vid: vnic.vid.map_or(0, VlanId::get).to_string(),
        });
        let prop = |setting: Setting| Record::LinkProp {
            link: name.clone(),
            name: setting.name,
            value: setting.value,
        };
        records.extend(vnic.settings.into_iter().map(prop));
    })
}

impl Flags {
    /// No card of ours has addresses to spare.
    fn new_mac(&self) -> Result<NewMac, String> {
        let prefix = self.prefix;
        let is_made_up = matches!(self.mac.as_str(), "random" | "auto");
        if prefix.is_some() && !is_made_up {
            return Err("-r is for random addresses".into());
        }
        if self.mac == "factory" {
            return Err(format!(
                "{} has no addresses to spare: try -m random",
                self.over
            ));
        }
        if self.slot.is_some() {
            return Err("-n is for factory addresses".into());
        }
        if is_made_up {
            return Ok(NewMac::Random { prefix });
        }
        let mac = parse_mac(&self.mac);
        mac.map(NewMac::Given)
            .ok_or_else(|| format!("{} is no station's address", self.mac))
    }
}

fn parse_prefix(text: &str) -> Result<[u8; 3], String> {
    let byte = |part: &str| match part.len() {
        1 | 2 => u8::from_str_radix(part, 16).ok(),
        _ => None,
    };
    let bytes: Option<Vec<u8>> = text.split(':').map(byte).collect();
    let prefix = bytes.and_then(|bytes| <[u8; 3]>::try_from(bytes).ok());
    let prefix = prefix.filter(|[first, ..]| first & 1 == 0);
    prefix.ok_or_else(|| "a prefix is three hex numbers between colons, and not multicast".into())
}
