//! The checks of the link layer, over a simulated card. Each is a sentence; `docs/link.md`
//! says which section and number it answers.
#![forbid(unsafe_code)]

mod direct;
mod flows;
mod mac;
mod opens;
mod order;
mod protection;
mod requests;
mod siege;
mod vlans;

use link::group::RingsWanted;
use link::links::{MacSource, VnicSpec};
use link::vlan::VlanId;
use link::{LinkId, StreamId};
use sim::lan::frames::{Flow, TCP};
use sim::lan::{Lan, station};
use wire::MacAddr;

/// A VNIC over the port with a stack on it.
fn vnic(lan: &mut Lan, last: u8, vid: Option<u16>) -> (LinkId, StreamId) {
    let name = format!("vnic{last}");
    let spec = VnicSpec {
        name: &name,
        over: lan.port,
        mac: MacSource::Given(station(last)),
        vid: vid.and_then(VlanId::new),
        rings: RingsWanted::Any,
    };
    let link = lan.links.create_vnic(&spec).expect("a VNIC");
    let stream = lan.stack_on(link).expect("a stack");
    (link, stream)
}

/// A TCP flow between stations whose hosts and ports end like them.
fn flow(dst: MacAddr, src: MacAddr) -> Flow {
    let host = |mac: MacAddr| [10, 0, 0, mac.0[5]].into();
    Flow {
        dst,
        src,
        from: (host(src), 1000),
        to: (host(dst), 80),
        protocol: TCP,
    }
}
