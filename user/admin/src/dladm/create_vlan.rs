//! `create-vlan`

use clap::Args;
use link::vlan::VlanId;
use linkctl::{Answer, Request};

use super::parse_vid;
use crate::keep::{Keeping, Record};
use crate::{World, ask};

#[derive(Args)]
pub struct Flags {
    /// Over this card
    #[arg(short = 'l', long = "link", value_name = "LINK")]
    over: String,
    /// In this VLAN: 1 to 4094
    #[arg(short = 'v', long = "vlan-id", value_name = "VID", value_parser = parse_vid)]
    vid: VlanId,
    /// Create it on a card that cannot do VLANs too; all of ours can
    #[arg(short = 'f', long = "force")]
    is_forced: bool,
    #[command(flatten)]
    keeping: Keeping,
    /// Its name; DRIVER<1000*VID+UNIT> if there is none
    name: Option<String>,
}

pub fn run(flags: &Flags, world: &mut World<'_>) -> Result<(), String> {
    let request = Request::CreateVlan {
        name: flags.name.clone(),
        over: flags.over.clone(),
        vid: flags.vid,
    };
    let made = ask::ask(world.kernel, &request);
    let made = made.map_err(|why| format!("the VLAN is not created: {why}"))?;
    let Answer::Created { name, .. } = made else {
        return Err(ask::nonsense());
    };
    let (over, vid) = (flags.over.clone(), flags.vid.get().to_string());
    flags
        .keeping
        .change(|records| records.push(Record::Vlan { name, over, vid }))
}
