//! The last frames that a port's rings dropped. Anybody may look, so only the ends of a frame
//! are told and nothing of what is in it.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::SocketAddr;

use link::lane::DropEvent;
use link::{Header, LinkId, Links, Packet};

use super::{Shell, find};
use crate::answer::{Answer, DropRow, Refusal};

pub fn of_ring(name: &str, ring: u16, shell: &mut impl Shell) -> Result<Answer, Refusal> {
    let port = shell.with_links(|links| find(links, name))?;
    let (mut events, mut rings) = (Vec::<DropEvent>::new(), 0);
    shell.each_lane(port, |lane| {
        if rings == ring {
            events.extend(lane.dropped());
        }
        rings += 1;
    });
    let rows = shell.with_links(|links| {
        let rows = events.iter().map(|event| row(links, event));
        rows.collect()
    });
    let next = ring.checked_add(1).filter(|next| *next < rings);
    Ok(Answer::Drops { rows, next })
}

fn row(links: &Links, event: &DropEvent) -> DropRow {
    let name = |id: LinkId| links.info(id).map(|info| info.name);
    let head = event.head();
    let header = Header::parse(head);
    let len = event.len as usize;
    let packet = header
        .as_ref()
        .and_then(|header| Packet::parse(header, head, len));
    let (from, to) = ends(header.as_ref(), packet.as_ref());
    DropRow {
        serial: event.serial,
        time_ns: event.at.as_nanos(),
        link: event.link.and_then(name),
        reason: event.reason.name().into(),
        frames: event.frames,
        len: event.len,
        from,
        to,
        protocol: packet.map(|packet| packet.protocol),
        ether_type: header.map_or(0, |header| header.ether_type),
    }
}

fn ends(header: Option<&Header>, packet: Option<&Packet>) -> (String, String) {
    match (packet, header) {
        (Some(packet), _) => match packet.ports {
            Some((from, to)) => (
                SocketAddr::new(packet.src, from).to_string(),
                SocketAddr::new(packet.dst, to).to_string(),
            ),
            None => (packet.src.to_string(), packet.dst.to_string()),
        },
        (None, Some(header)) => (format!("{}", header.src), format!("{}", header.dst)),
        (None, None) => (String::new(), String::new()),
    }
}
