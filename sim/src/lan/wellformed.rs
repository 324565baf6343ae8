//! Frames that get past the first look, for a script to bend.

use wire::{ArpOperation, ArpRepr, DhcpMessage, DhcpRepr, EtherType, Ipv6Repr, MacAddr};

use super::frames::{Flow, TCP, UDP};
use super::station;
use crate::frame;

/// How many there are.
pub const KINDS: u8 = 8;

/// A frame from station `src` to `dst`.
pub fn frame(kind: u8, dst: MacAddr, src: MacAddr) -> Vec<u8> {
    let host = |mac: MacAddr| [10, 0, 0, mac.0[5]].into();
    let flow = |protocol| Flow {
        dst,
        src,
        from: (host(src), 1000),
        to: (host(dst), 80),
        protocol,
    };
    match kind % KINDS {
        0 => flow(TCP).frame(0),
        1 => flow(UDP).frame(0),
        2 => {
            let mut tagged = flow(TCP).frame(0);
            tagged.splice(12..12, [0x81, 0, 0, 1]);
            tagged
        }
        3 => {
            let mut fragment = flow(UDP).frame(0);
            fragment[20] = 0x20;
            fragment
        }
        4 => arp(dst, src),
        5 => neighbor_advert(dst, src),
        6 => dhcp(dst, src, false),
        _ => dhcp(dst, src, true),
    }
}

/// Makes an IPv4 header's sum right again.
pub fn mend(frame: &mut [u8]) {
    let Some(header) = frame.get_mut(14..34) else {
        return;
    };
    if header[0] == 0x45 {
        header[10..12].fill(0);
        let sum = wire::Sum::new().bytes(header).checksum();
        header[10..12].copy_from_slice(&sum.to_be_bytes());
    }
}

fn arp(dst: MacAddr, src: MacAddr) -> Vec<u8> {
    let mut body = [0; ArpRepr::BYTES];
    let packet = ArpRepr {
        operation: ArpOperation::Request,
        sender_mac: src,
        sender_ip: [10, 0, 0, src.0[5]].into(),
        target_mac: MacAddr::default(),
        target_ip: [10, 0, 0, dst.0[5]].into(),
    };
    packet.emit(&mut body);
    frame::ethernet(dst, src, EtherType::Arp, &body)
}

fn neighbor_advert(dst: MacAddr, src: MacAddr) -> Vec<u8> {
    let from = ::link::prefix::link_local(src);
    let mut body = vec![136, 0, 0, 0, 0x60, 0, 0, 0];
    body.extend_from_slice(&from.octets());
    body.extend_from_slice(&[2, 1]);
    body.extend_from_slice(&src.0);
    let header = Ipv6Repr {
        hop_limit: 255,
        ..frame::header_v6(from, ::link::prefix::link_local(dst), 58)
    };
    frame::ipv6(dst, src, header, &body)
}

/// A request, or the answer to it.
fn dhcp(dst: MacAddr, src: MacAddr, is_answer: bool) -> Vec<u8> {
    let client = if is_answer { dst } else { src };
    let mut body = vec![0; DhcpRepr::BYTES];
    let request = DhcpRepr {
        message: DhcpMessage::Request,
        transaction: 1,
        elapsed_secs: 0,
        mac: client,
        client_ip: [0; 4].into(),
        requested_ip: None,
        server: None,
        host_name: None,
    };
    request.emit(&mut body);
    let (mut from, mut to) = (68, 67);
    if is_answer {
        (from, to) = (67, 68);
        body[0] = 2;
        body[16..20].copy_from_slice(&[10, 0, 0, client.0[5]]);
        body.truncate(240);
        body.extend_from_slice(&[53, 1, 5, 51, 4, 0, 0, 0, 60, 255]);
    }
    let template = Flow {
        dst,
        src,
        from: ([10, 0, 0, 0].into(), from),
        to: ([255; 4].into(), to),
        protocol: UDP,
    };
    let mut frame = template.frame(((body.len() as u32) + 8) << 16);
    frame.extend(body);
    let total = (frame.len() - 14) as u16;
    frame[16..18].copy_from_slice(&total.to_be_bytes());
    mend(&mut frame);
    frame
}

/// One of eight stations.
pub fn some_station(byte: u8) -> MacAddr {
    station(byte % 8)
}

#[cfg(test)]
mod tests {
    use ::link::{Header, Packet};
    use mbuf::HeapPool;

    use super::*;

    #[test]
    fn every_kind_that_carries_ip_is_parsed_as_such() {
        let pool = HeapPool::new(1);
        for kind in (0..KINDS).filter(|kind| *kind != 4) {
            let bytes = frame(kind, station(1), station(2));
            let chain = super::super::frames::chain(&pool, &bytes).expect("a buffer");
            let header = Header::of(&chain).expect("a header");
            let is_broken = kind == 3;
            assert_eq!(Packet::of(&header, &chain).is_none(), is_broken, "{kind}");
            let mut mended = bytes.clone();
            mend(&mut mended);
            drop(chain);
            let chain = super::super::frames::chain(&pool, &mended).expect("a buffer");
            assert!(Packet::of(&header, &chain).is_some(), "{kind}");
        }
    }
}
