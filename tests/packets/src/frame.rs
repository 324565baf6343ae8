//! Frames of the peer, and what the stack's frames say.
//!
//! The stack is 10.0.0.1, the peer 10.0.0.2. The stack's server has port 80, and so has
//! the peer's; the port on the other side is the peer's 50000 or the stack's choice.

use wire::{
    ArpOperation, ArpRepr, ETHERNET_HEADER_BYTES, EtherType, EthernetRepr, ICMP_HEADER_BYTES,
    IPV4_HEADER_BYTES, Ipv4Repr, Ipv4View, MacAddr, Protocol, SackBlock, Seq, Sum, TcpFlags,
    TcpOptions, TcpRepr, TcpView, Timestamps,
};

use crate::notation::{Segment, TcpOption};
use crate::pattern;
use crate::script::Packet;

const PEER_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
/// Close before the wrap.
const PEER_ISN: Seq = Seq(u32::MAX - 700);
const URGENT_AT: usize = 18;
const ECHO_REPLY: u8 = 0;
const UNREACHABLE: u8 = 3;
const ECHO_REQUEST: u8 = 8;

/// A connection's ports, and where its streams begin.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// The stack's port.
    pub local_port: u16,
    /// The peer's port.
    pub peer_port: u16,
    /// The stack's first sequence number; zero until it has sent a SYN.
    pub isn: Seq,
    /// The stack's clock as it was last seen.
    pub clock: u32,
}

fn absolute(base: Seq, relative: i64) -> Seq {
    Seq(base.0.wrapping_add(relative as u32))
}

/// The smallest distance, so that what lies before the base is negative.
fn relative(base: Seq, seq: Seq) -> i64 {
    i64::from(seq.0.wrapping_sub(base.0) as i32)
}

/// The frame of a packet that the peer sends.
pub fn of_peer(packet: &Packet, names: &Names) -> Vec<u8> {
    match packet {
        Packet::Tcp(segment) => tcp(segment, names),
        Packet::Unreachable { code, mtu, seq } => {
            let quoted = quoted_segment(names, absolute(names.isn, *seq));
            icmp([UNREACHABLE, *code], u32::from(*mtu), &quoted)
        }
        Packet::Echo { is_request, len } => {
            let kind = if *is_request {
                ECHO_REQUEST
            } else {
                ECHO_REPLY
            };
            icmp(
                [kind, 0],
                0x0001_0001,
                &(0..*len).map(pattern).collect::<Vec<_>>(),
            )
        }
        Packet::Udp { port, len } => udp(*port, *len),
    }
}

fn tcp(segment: &Segment, names: &Names) -> Vec<u8> {
    let repr = TcpRepr {
        src_port: names.peer_port,
        dst_port: names.local_port,
        seq: absolute(PEER_ISN, segment.start),
        ack: segment.ack.map_or(Seq(0), |ack| absolute(names.isn, ack)),
        flags: segment.flags,
        window: segment.window.unwrap_or(u16::MAX),
        options: encode_options(segment.options.as_deref().unwrap_or_default(), names),
    };
    let mut bytes = vec![0; repr.header_len()];
    repr.emit(&mut bytes);
    bytes[URGENT_AT..URGENT_AT + 2].copy_from_slice(&segment.urgent.unwrap_or(0).to_be_bytes());
    // The first byte of a stream follows the SYN.
    bytes.extend((0..segment.len).map(|at| pattern((segment.start + i64::from(at) - 1) as u32)));
    let len = bytes.len() as u32;
    let pseudo = Sum::pseudo_v4(
        sim::Host::address(2),
        sim::Host::address(1),
        Protocol::Tcp,
        len,
    );
    TcpRepr::set_checksum(&mut bytes, 0);
    let checksum = pseudo.bytes(&bytes).checksum();
    TcpRepr::set_checksum(&mut bytes, checksum);
    ip(Protocol::Tcp, &bytes)
}

fn encode_options(options: &[TcpOption], names: &Names) -> TcpOptions {
    let mut encoded = TcpOptions::default();
    for option in options {
        match option {
            TcpOption::Mss(size) => encoded.mss = size.map(|size| size as u16),
            TcpOption::WindowScale(shift) => encoded.window_scale = shift.map(|shift| shift as u8),
            TcpOption::SackPermitted => encoded.sack_permitted = true,
            TcpOption::Timestamps(value, echo) => {
                encoded.timestamps = Some(Timestamps {
                    value: value.unwrap_or(0),
                    echo: echo.unwrap_or(names.clock),
                });
            }
            TcpOption::Sack(blocks) => blocks.iter().for_each(|(start, end)| {
                encoded.sack.push(SackBlock {
                    start: absolute(names.isn, *start),
                    end: absolute(names.isn, *end),
                });
            }),
        }
    }
    encoded
}

fn udp(port: u16, len: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    for field in [50_000, port, 8 + len as u16, 0] {
        bytes.extend(field.to_be_bytes());
    }
    bytes.extend((0..len).map(pattern));
    ip(Protocol::Udp, &bytes)
}

fn icmp(kind: [u8; 2], rest: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind[0], kind[1], 0, 0];
    bytes.extend(rest.to_be_bytes());
    bytes.extend(payload);
    let checksum = Sum::new().bytes(&bytes).checksum();
    bytes[2..4].copy_from_slice(&checksum.to_be_bytes());
    ip(Protocol::Icmp, &bytes)
}

/// The start of a packet of the stack's, as an error quotes it (RFC 792).
fn quoted_segment(names: &Names, seq: Seq) -> Vec<u8> {
    let mut bytes = vec![0; IPV4_HEADER_BYTES];
    let header = Ipv4Repr {
        src: sim::Host::address(1),
        dst: sim::Host::address(2),
        protocol: Protocol::Tcp,
        payload_len: 20,
        ttl: 64,
        tos: 0,
    };
    header.emit(&mut bytes);
    bytes.extend(names.local_port.to_be_bytes());
    bytes.extend(names.peer_port.to_be_bytes());
    bytes.extend(seq.0.to_be_bytes());
    bytes
}

fn ip(protocol: Protocol, payload: &[u8]) -> Vec<u8> {
    sim::frame::between(2, 1, protocol, payload)
}

/// The answer to a frame that is an ARP request for the peer.
pub fn arp_answer(frame: &[u8]) -> Option<Vec<u8>> {
    let is_arp = EthernetRepr::parse(frame).ok()?.ether_type == EtherType::Arp;
    let packet = frame.get(ETHERNET_HEADER_BYTES..).filter(|_| is_arp)?;
    let request = ArpRepr::parse(packet).ok()?;
    let mut answer = vec![0; ETHERNET_HEADER_BYTES + ArpRepr::BYTES];
    let ethernet = EthernetRepr {
        dst: request.sender_mac,
        src: PEER_MAC,
        ether_type: EtherType::Arp,
    };
    ethernet.emit(&mut answer);
    let reply = ArpRepr {
        operation: ArpOperation::Reply,
        sender_mac: PEER_MAC,
        sender_ip: request.target_ip,
        target_mac: request.sender_mac,
        target_ip: request.sender_ip,
    };
    reply.emit(&mut answer[ETHERNET_HEADER_BYTES..]);
    Some(answer)
}

/// What a frame of the stack says; learns names and clocks from it. An error says what is
/// malformed.
pub fn of_stack(frame: &[u8], names: &mut Names) -> Result<Packet, String> {
    let packet = frame.get(ETHERNET_HEADER_BYTES..).unwrap_or_default();
    let view = Ipv4View::parse(packet, packet.len()).map_err(|why| format!("IP: {why:?}"))?;
    let payload = &packet[view.header().len()..view.total_len()];
    match view.protocol() {
        Protocol::Tcp => {
            let (src, dst) = (view.src(), view.dst());
            let pseudo = Sum::pseudo_v4(src, dst, Protocol::Tcp, payload.len() as u32);
            match pseudo.bytes(payload).is_valid() {
                true => read_tcp(payload, names).map(Packet::Tcp),
                false => Err("TCP: a wrong checksum".into()),
            }
        }
        Protocol::Icmp if payload.len() >= ICMP_HEADER_BYTES => {
            if !Sum::new().bytes(payload).is_valid() {
                return Err("ICMP: a wrong checksum".into());
            }
            let len = (payload.len() - ICMP_HEADER_BYTES) as u32;
            Ok(match payload[0] {
                UNREACHABLE => Packet::Unreachable {
                    code: payload[1],
                    mtu: 0,
                    seq: 0,
                },
                kind => Packet::Echo {
                    is_request: kind == ECHO_REQUEST,
                    len,
                },
            })
        }
        other => Err(format!("a packet of {other:?}")),
    }
}

fn read_tcp(bytes: &[u8], names: &mut Names) -> Result<Segment, String> {
    let header = TcpView::parse(bytes).map_err(|why| format!("TCP: {why:?}"))?;
    let (flags, options) = (header.flags(), header.options());
    if flags.has(TcpFlags::SYN) {
        names.isn = header.seq();
        (names.local_port, names.peer_port) = (header.src_port(), header.dst_port());
    }
    if (header.src_port(), header.dst_port()) != (names.local_port, names.peer_port) {
        return Err("a segment of another connection".into());
    }
    names.clock = options.timestamps.map_or(names.clock, |stamp| stamp.value);
    let start = relative(names.isn, header.seq());
    let payload = &bytes[header.header_len()..];
    let expected = (0..payload.len()).map(|at| pattern((start + at as i64 - 1) as u32));
    if !payload.iter().copied().eq(expected) {
        return Err(format!(
            "the bytes from {start} on are not those of the stream"
        ));
    }
    Ok(Segment {
        flags,
        start,
        len: payload.len() as u32,
        ack: flags
            .has(TcpFlags::ACK)
            .then(|| relative(PEER_ISN, header.ack())),
        window: Some(header.window()),
        urgent: None,
        options: Some(decode_options(&options)),
    })
}

fn decode_options(options: &TcpOptions) -> Vec<TcpOption> {
    let mut decoded = Vec::new();
    decoded.extend(options.mss.map(|size| TcpOption::Mss(Some(size.into()))));
    decoded.extend(options.sack_permitted.then_some(TcpOption::SackPermitted));
    let stamp = options.timestamps;
    decoded.extend(stamp.map(|stamp| TcpOption::Timestamps(Some(stamp.value), Some(stamp.echo))));
    decoded.extend(
        options
            .window_scale
            .map(|shift| TcpOption::WindowScale(Some(shift.into()))),
    );
    let blocks = options.sack.as_slice().iter();
    let blocks = blocks.map(|block| {
        (
            relative(PEER_ISN, block.start),
            relative(PEER_ISN, block.end),
        )
    });
    let blocks: Vec<_> = blocks.collect();
    decoded.extend((!blocks.is_empty()).then_some(TcpOption::Sack(blocks)));
    decoded
}
