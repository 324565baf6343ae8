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
//! - An ICMP error belongs to the connection of the packet that it quotes.
//! - A DHCP client is in one of the stacks.
//! - A fragment of a TCP segment hashes without ports, so it would be put together where
//!   the connection is not, and be answered with a reset. TCP avoids fragments (RFC 9293,
//!   3.7.2).
//!
//! Not here: IPv6, whose neighbour discovery is ICMP; the hash ([`rss`](crate::rss)).

use core::net::{IpAddr, Ipv4Addr};

use mbuf::Chain;

use crate::headers::{ICMP, Packet, Piece, TCP, UDP, with_window};

/// What a frame is, to whoever spreads frames over stacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dispatch {
    /// One of a flow, or of no importance: the hash decides.
    Flow,
    /// An ARP message from which all learn.
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
const ICMP_HEADER: usize = 8;

/// What `frame` is; `own` is our address.
pub fn dispatch_of(frame: &Chain, own: Option<Ipv4Addr>) -> Dispatch {
    with_window(frame, |bytes| of_bytes(bytes, own))
}

fn of_bytes(frame: &[u8], own: Option<Ipv4Addr>) -> Dispatch {
    let Some((header, packet)) = frame.split_at_checked(ETHERNET) else {
        return Dispatch::Flow;
    };
    match header {
        [.., 0x08, 0x06] if teaches(packet, own) => Dispatch::Neighbor,
        [.., 0x08, 0x00] => of_ipv4(packet).unwrap_or(Dispatch::Flow),
        _ => Dispatch::Flow,
    }
}

/// Whether a message names us, or its sender announces itself (RFC 5227).
fn teaches(message: &[u8], own: Option<Ipv4Addr>) -> bool {
    let Some(message) = message.first_chunk::<ARP_BYTES>() else {
        return false;
    };
    let (sender, target) = (&message[14..18], &message[24..28]);
    sender == target || own.is_some_and(|own| own.octets() == *target)
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

/// The packet that an error quotes, with its ends exchanged.
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

/// The bytes of an ARP message as a reply, which teaches the same (RFC 826 learns before it
/// looks at the operation) and asks nobody for an answer.
pub fn announcement_of(frame: &Chain) -> [u8; ETHERNET + ARP_BYTES] {
    let mut bytes = [0; ETHERNET + ARP_BYTES];
    frame.copy_to_slice(0, &mut bytes);
    bytes[ARP_OPERATION] = ARP_REPLY;
    bytes
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    const OWN: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);
    const PEER: [u8; 4] = [10, 0, 2, 2];

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
        of_bytes(&frame(ether_type, packet), Some(OWN))
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

    #[test]
    fn no_prefix_of_a_frame_is_read_beyond_its_end() {
        let quoted = ipv4(TCP, 0, OWN.octets(), PEER, &[0; 8]);
        let error = [&[3, 1, 0, 0, 0, 0, 0, 0][..], &quoted].concat();
        let whole = frame(0x0800, &ipv4(ICMP, 0, PEER, OWN.octets(), &error));
        for len in 0..whole.len() - 4 {
            assert_eq!(of_bytes(&whole[..len], Some(OWN)), Dispatch::Flow, "{len}");
        }
    }
}
