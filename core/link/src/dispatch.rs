//! Dispatch of frames that a hash sends to the wrong stack, where several stacks share an address.
//!
//! The problem: one stack for each CPU, and a hash that names the stack of a connection.
//! Some frames are not of a connection, or do not show it.
//!
//! The idea: look at the few bytes that make a frame such a one, and say what it is; the
//! shell knows its stacks and does the rest.
//!
//! - An ARP message that is of use to all stacks: each has neighbours of its own, and only
//!   one may answer. [`announcement_of`] makes a copy that teaches the same and asks nothing.
//! - The same of neighbour discovery: its answers go to whoever has the address, not to the
//!   stack that asked. Stacks that follow another one learn from it and do not answer.
//! - An ICMP error belongs to the connection of the packet that it quotes.
//! - A DHCP client is in one of the stacks.
//! - A fragment of a TCP segment hashes without ports, so it would be put together where
//!   the connection is not, and be answered with a reset. TCP avoids fragments (RFC 9293,
//!   3.7.2).
//!
//! Not here: the hash ([`rss`](crate::rss)), which leads all other ICMPv6 to one stack.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use mbuf::{Chain, Mbuf};

use crate::headers::{Header, ICMP, ICMP6, Packet, Piece, TCP, UDP, with_window};

/// What a frame is, to whoever spreads frames over stacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dispatch {
    /// One of a flow, or of no importance: the hash decides.
    Flow,
    /// A message of ARP or of neighbour discovery from which all learn.
    Neighbor,
    /// For the DHCP client.
    Dhcp,
    /// About a packet that we sent, shown here as if the peer had sent it.
    IcmpError(Packet),
    /// A fragment of a TCP segment.
    TcpFragment,
}

const ETHERNET: usize = wire::ETHERNET_HEADER_BYTES;
const ARP_BYTES: usize = 28;
/// The low byte of an ARP message's operation, in the frame.
const ARP_OPERATION: usize = ETHERNET + 7;
const ARP_REPLY: u8 = 2;
const DHCP_CLIENT: u16 = 68;
/// Unreachable, source quench, time exceeded, parameter problem (RFC 792).
const ICMP_ERRORS: [u8; 4] = [3, 4, 11, 12];
/// Unreachable, too big, time exceeded, parameter problem (RFC 4443).
const ICMP6_ERRORS: [u8; 4] = [1, 2, 3, 4];
const ICMP_HEADER: usize = 8;
/// Where IPv6's header names what follows.
const NEXT_HEADER: usize = 6;
/// RFC 4861.
const NEIGHBOR_SOLICIT: u8 = 135;
const NEIGHBOR_ADVERT: u8 = 136;

/// What `frame` is; `is_ours` knows our addresses.
pub fn dispatch_of(frame: &Chain, is_ours: impl Fn(IpAddr) -> bool) -> Dispatch {
    with_window(frame, |bytes| of_bytes(bytes, frame.len(), is_ours))
}

/// Of the first bytes of a frame that has `len`.
pub(crate) fn of_bytes(frame: &[u8], len: usize, is_ours: impl Fn(IpAddr) -> bool) -> Dispatch {
    let Some((header, packet)) = frame.split_at_checked(ETHERNET) else {
        return Dispatch::Flow;
    };
    match header {
        [.., 0x08, 0x06] if teaches(packet, &is_ours) => Dispatch::Neighbor,
        [.., 0x08, 0x00] => of_ipv4(packet).unwrap_or(Dispatch::Flow),
        [.., 0x86, 0xdd] => match packet.get(NEXT_HEADER) {
            None | Some(&(TCP | UDP)) => Dispatch::Flow,
            Some(_) => of_ipv6(frame, len, is_ours).unwrap_or(Dispatch::Flow),
        },
        _ => Dispatch::Flow,
    }
}

/// Whether a message names us, or its sender announces itself (RFC 5227).
fn teaches(message: &[u8], is_ours: impl Fn(IpAddr) -> bool) -> bool {
    let Some(message) = message.first_chunk::<ARP_BYTES>() else {
        return false;
    };
    let (sender, target) = (address(message, 14), address(message, 24));
    sender == target || target.is_some_and(is_ours)
}

fn of_ipv4(packet: &[u8]) -> Option<Dispatch> {
    let transport = packet.get(header_bytes(packet)?..)?;
    let is_fragment = word(packet, 6)? & 0x3fff != 0;
    match (*packet.get(9)?, is_fragment) {
        (TCP, true) => Some(Dispatch::TcpFragment),
        (UDP, false) if word(transport, 2)? == DHCP_CLIENT => Some(Dispatch::Dhcp),
        (ICMP, false) if ICMP_ERRORS.contains(transport.first()?) => {
            quoted(transport.get(ICMP_HEADER..)?).map(Dispatch::IcmpError)
        }
        _ => None,
    }
}

/// A packet of IPv6 that is not a whole segment or datagram without more ado.
fn of_ipv6(frame: &[u8], len: usize, is_ours: impl Fn(IpAddr) -> bool) -> Option<Dispatch> {
    let packet = Packet::parse(&Header::parse(frame)?, frame, len)?;
    match (packet.protocol, packet.piece) {
        (TCP, Piece::First | Piece::Later) => Some(Dispatch::TcpFragment),
        (ICMP6, Piece::Whole) => {
            let message = frame.get(packet.transport_at..)?;
            match message.first()? {
                &NEIGHBOR_ADVERT => Some(Dispatch::Neighbor),
                // Who asks without an address teaches nothing.
                &NEIGHBOR_SOLICIT if !packet.src.is_unspecified() => {
                    let target: &[u8; 16] = message.get(ICMP_HEADER..)?.first_chunk()?;
                    is_ours(Ipv6Addr::from(*target).into()).then_some(Dispatch::Neighbor)
                }
                kind if ICMP6_ERRORS.contains(kind) => {
                    let quoted = Packet::quoted_v6(message.get(ICMP_HEADER..)?)?;
                    Some(Dispatch::IcmpError(quoted.reversed()))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// The packet that an error of IPv4 quotes, with its ends exchanged.
fn quoted(quote: &[u8]) -> Option<Packet> {
    let transport_at = header_bytes(quote)?;
    let transport = quote.get(transport_at..)?;
    Some(Packet {
        src: address(quote, 16)?,
        dst: address(quote, 12)?,
        protocol: *quote.get(9)?,
        piece: Piece::Whole,
        ports: Some((word(transport, 2)?, word(transport, 0)?)),
        dsfield: 0,
        transport_at,
    })
}

fn header_bytes(packet: &[u8]) -> Option<usize> {
    Some(usize::from(packet.first()? & 0xf) * 4)
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    let word = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_be_bytes(*word))
}

fn address(bytes: &[u8], at: usize) -> Option<IpAddr> {
    let octets: &[u8; 4] = bytes.get(at..)?.first_chunk()?;
    Some(Ipv4Addr::from(*octets).into())
}

/// Writes a message that teaches as much as `frame` and asks nobody for an answer into an empty
/// buffer; false if it has no room. An ARP message becomes a reply (RFC 826 learns before it looks
/// at the operation); one of neighbour discovery stays as it is, for who follows answers nobody.
pub fn announcement_of(frame: &Chain, to: &mut Mbuf) -> bool {
    let is_arp = with_window(frame, |bytes| {
        bytes.get(ETHERNET - 2..ETHERNET) == Some(&[0x08, 0x06])
    });
    let len = match is_arp {
        true => frame.len().min(ETHERNET + ARP_BYTES),
        false => frame.len(),
    };
    let Some(space) = to.extend(len) else {
        return false;
    };
    frame.copy_to_slice(0, space);
    if let (true, Some(operation)) = (is_arp, space.get_mut(ARP_OPERATION)) {
        *operation = ARP_REPLY;
    }
    true
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;
    use alloc::vec::Vec;

    use mbuf::Pool;

    use super::*;

    const OWN: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);
    const PEER: [u8; 4] = [10, 0, 2, 2];

    fn is_ours(addr: IpAddr) -> bool {
        [OWN.to_string(), OWN6.into()].contains(&addr.to_string())
    }

    fn frame(ether_type: u16, packet: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend(ether_type.to_be_bytes());
        frame.extend(packet);
        frame
    }

    fn ipv4(protocol: u8, fragment: u16, src: [u8; 4], dst: [u8; 4], rest: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 0, 0, 0];
        packet.extend(fragment.to_be_bytes());
        packet.extend([64, protocol, 0, 0]);
        packet.extend(src);
        packet.extend(dst);
        packet.extend(rest);
        packet
    }

    fn dispatch(ether_type: u16, packet: &[u8]) -> Dispatch {
        let frame = frame(ether_type, packet);
        of_bytes(&frame, frame.len(), is_ours)
    }

    fn arp(sender: [u8; 4], target: [u8; 4]) -> Dispatch {
        let mut message = vec![0, 1, 8, 0, 6, 4, 0, 1];
        message.extend([0; 6]);
        message.extend(sender);
        message.extend([0; 6]);
        message.extend(target);
        dispatch(0x0806, &message)
    }

    #[test]
    fn arp_teaches_all_if_it_names_us_or_announces_its_sender() {
        assert_eq!(arp(PEER, OWN.octets()), Dispatch::Neighbor);
        assert_eq!(arp(PEER, PEER), Dispatch::Neighbor);
        assert_eq!(arp(PEER, [10, 0, 2, 3]), Dispatch::Flow);
    }

    #[test]
    fn an_error_goes_where_the_quoted_packet_came_from() {
        let quoted = ipv4(TCP, 0, OWN.octets(), PEER, &[0x1f, 0x90, 0, 80, 0, 0, 0, 0]);
        let error = [&[3, 1, 0, 0, 0, 0, 0, 0][..], &quoted].concat();
        let router = [10, 0, 2, 1];
        let packet = ipv4(ICMP, 0, router, OWN.octets(), &error);
        let Dispatch::IcmpError(packet) = dispatch(0x0800, &packet) else {
            panic!("an error is not seen");
        };
        assert_eq!(packet.src, IpAddr::from(PEER));
        assert_eq!(packet.dst, IpAddr::from(OWN));
        assert_eq!((packet.protocol, packet.ports), (TCP, Some((80, 8080))));
    }

    #[test]
    fn an_echo_and_an_error_that_is_cut_off_are_left_to_the_hash() {
        let echo = ipv4(ICMP, 0, PEER, OWN.octets(), &[8, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(dispatch(0x0800, &echo), Dispatch::Flow);
        let cut = ipv4(ICMP, 0, PEER, OWN.octets(), &[3, 1, 0, 0, 0, 0, 0, 0, 0x45]);
        assert_eq!(dispatch(0x0800, &cut), Dispatch::Flow);
    }

    #[test]
    fn fragments_of_segments_and_answers_of_dhcp_are_seen() {
        let more_fragments = 0x2000;
        let first = ipv4(TCP, more_fragments, PEER, OWN.octets(), &[0; 20]);
        let later = ipv4(TCP, 185, PEER, OWN.octets(), &[0; 20]);
        let whole = ipv4(TCP, 0x4000, PEER, OWN.octets(), &[0; 20]);
        assert_eq!(dispatch(0x0800, &first), Dispatch::TcpFragment);
        assert_eq!(dispatch(0x0800, &later), Dispatch::TcpFragment);
        assert_eq!(dispatch(0x0800, &whole), Dispatch::Flow);
        let offer = ipv4(UDP, 0, PEER, [255; 4], &[0, 67, 0, 68, 0, 8, 0, 0]);
        assert_eq!(dispatch(0x0800, &offer), Dispatch::Dhcp);
    }

    const OWN6: &str = "2001:db8::15";
    const PEER6: &str = "2001:db8::2";
    const FRAGMENT_HEADER: u8 = 44;

    fn ipv6(next_header: u8, src: &str, dst: &str, rest: &[u8]) -> Vec<u8> {
        let octets = |text: &str| text.parse::<Ipv6Addr>().expect("an address").octets();
        let mut packet = vec![0x60, 0, 0, 0];
        packet.extend((rest.len() as u16).to_be_bytes());
        packet.extend([next_header, 64]);
        packet.extend(octets(src));
        packet.extend(octets(dst));
        packet.extend(rest);
        packet
    }

    fn discovery(kind: u8, src: &str, dst: &str) -> Dispatch {
        discovery_of(OWN6, kind, src, dst)
    }

    fn discovery_of(target: &str, kind: u8, src: &str, dst: &str) -> Dispatch {
        let target = target.parse::<Ipv6Addr>().expect("an address").octets();
        let message = [&[kind, 0, 0, 0, 0, 0, 0, 0][..], &target].concat();
        dispatch(0x86dd, &ipv6(ICMP6, src, dst, &message))
    }

    #[test]
    fn what_neighbours_ask_and_answer_teaches_all() {
        assert_eq!(discovery(136, PEER6, OWN6), Dispatch::Neighbor);
        assert_eq!(discovery(136, PEER6, "ff02::1"), Dispatch::Neighbor);
        assert_eq!(discovery(135, PEER6, "ff02::1:ff00:15"), Dispatch::Neighbor);
        assert_eq!(discovery(135, "::", "ff02::1:ff00:15"), Dispatch::Flow);
        let for_another = discovery_of("2001:db8::1:15", 135, PEER6, "ff02::1:ff00:15");
        assert_eq!(for_another, Dispatch::Flow);
        for other in [128, 133, 134, 137] {
            assert_eq!(discovery(other, PEER6, OWN6), Dispatch::Flow, "{other}");
        }
    }

    #[test]
    fn an_error_of_icmpv6_goes_where_the_quoted_packet_came_from() {
        let tcp = [0x1f, 0x90, 0, 80, 0, 0, 0, 0];
        // Behind destination options, and cut short.
        let behind = [&[TCP, 0, 1, 4, 0, 0, 0, 0][..], &tcp].concat();
        let mut long = ipv6(TCP, OWN6, PEER6, &tcp);
        long[4..6].copy_from_slice(&1400_u16.to_be_bytes());
        for quoted in [long, ipv6(60, OWN6, PEER6, &behind)] {
            for kind in 1..=4 {
                let error = [&[kind, 0, 0, 0, 0, 0, 5, 0][..], &quoted].concat();
                let seen = dispatch(0x86dd, &ipv6(ICMP6, "fe80::1", OWN6, &error));
                let Dispatch::IcmpError(packet) = seen else {
                    panic!("an error is not seen");
                };
                let ends = (packet.src.to_string(), packet.dst.to_string());
                assert_eq!(ends, (PEER6.into(), OWN6.into()));
                assert_eq!((packet.protocol, packet.ports), (TCP, Some((80, 8080))));
            }
        }
    }

    #[test]
    fn pieces_of_segments_are_seen_behind_a_fragment_header() {
        let piece = |protocol: u8, place: u16| {
            let [high, low] = place.to_be_bytes();
            let rest = [&[protocol, 0, high, low, 0, 0, 0, 7][..], &[0; 20]].concat();
            dispatch(0x86dd, &ipv6(FRAGMENT_HEADER, PEER6, OWN6, &rest))
        };
        assert_eq!(piece(TCP, 1), Dispatch::TcpFragment, "the first");
        assert_eq!(piece(TCP, 1480), Dispatch::TcpFragment, "the last");
        assert_eq!(piece(TCP, 0), Dispatch::Flow, "the only one");
        assert_eq!(piece(UDP, 1), Dispatch::Flow);
        assert_eq!(piece(ICMP6, 1), Dispatch::Flow);
    }

    #[test]
    fn an_announcement_of_discovery_is_the_message_itself_and_one_of_arp_asks_nothing() {
        let pool = mbuf::HeapPool::new(4);
        let copied = |bytes: &[u8]| {
            let mut frame = pool.alloc().expect("room");
            frame.append(bytes);
            let mut copy = pool.alloc().expect("room");
            assert!(announcement_of(&Chain::from(frame), &mut copy));
            copy.bytes().to_vec()
        };
        let solicitation = frame(0x86dd, &ipv6(ICMP6, PEER6, "ff02::1:ff00:15", &[135; 24]));
        assert_eq!(copied(&solicitation), solicitation);
        let request = frame(0x0806, &[&[0, 1, 8, 0, 6, 4, 0, 1][..], &[7; 38]].concat());
        let mut reply = request[..ETHERNET + ARP_BYTES].to_vec();
        reply[ARP_OPERATION] = ARP_REPLY;
        assert_eq!(copied(&request), reply);
    }

    #[test]
    fn no_prefix_of_a_frame_is_read_beyond_its_end() {
        let quoted = ipv4(TCP, 0, OWN.octets(), PEER, &[0; 8]);
        let error = [&[3, 1, 0, 0, 0, 0, 0, 0][..], &quoted].concat();
        let whole = frame(0x0800, &ipv4(ICMP, 0, PEER, OWN.octets(), &error));
        for len in 0..whole.len() - 4 {
            let seen = of_bytes(&whole[..len], len, is_ours);
            assert_eq!(seen, Dispatch::Flow, "{len}");
        }
        let quoted = ipv6(TCP, OWN6, PEER6, &[0; 8]);
        let error = [&[1, 4, 0, 0, 0, 0, 0, 0][..], &quoted].concat();
        let whole = frame(0x86dd, &ipv6(ICMP6, PEER6, OWN6, &error));
        for len in 0..whole.len() - 4 {
            // A window may end where the frame does not.
            for frame_len in [len, whole.len()] {
                let seen = of_bytes(&whole[..len], frame_len, is_ours);
                assert_eq!(seen, Dispatch::Flow, "{len} of {frame_len}");
            }
        }
    }
}
