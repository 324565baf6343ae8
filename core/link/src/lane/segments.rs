//! Cuts a frame that was joined into the segments that were, or would have been, on the wire.
//!
//! A card joins segments of a stream that follow each other, and a neighbour on this machine, or the
//! host behind a virtual card, never cuts them. Network stacks are glad of that. Who takes frames
//! as they are on a wire (a program that owns a link) has no room for them.
//!
//! Each segment gets a copy of the headers in a buffer of its own, with the lengths, numbers, flags and
//! sums that are its own; the payload is shared. As a sender cuts (RFC 9293 3.8.6.3, and Linux's
//! `tcp_gso_segment`): FIN and PSH stand in the last one only, CWR in the first.

use mbuf::{Chain, Checksum, Pool, RxFrame};
use wire::{
    ETHERNET_HEADER_BYTES, EtherType, EthernetRepr, IPV6_HEADER_BYTES, Ipv4View, Ipv6View,
    Protocol, Sum, TCP_HEADER_BYTES_MAX,
};

/// Segments of one frame at most: 64 KiB in the smallest that a path must take.
const SEGMENTS_MAX: usize = 128;

const IP_AT: usize = ETHERNET_HEADER_BYTES;
const IPV4_HEADER_BYTES_MAX: usize = 60;
const HEADERS_MAX: usize = IP_AT + IPV4_HEADER_BYTES_MAX + TCP_HEADER_BYTES_MAX;
/// Kept free in front of the headers, as in every frame that may be sent on.
const HEADROOM: usize = 64;

const V4_LEN: usize = IP_AT + 2;
const V4_IDENT: usize = IP_AT + 4;
const V4_SUM: usize = IP_AT + 10;
const V6_LEN: usize = IP_AT + 4;
const TCP_SEQ: usize = 4;
const TCP_OFFSET: usize = 12;
const TCP_FLAGS: usize = 13;
const TCP_SUM: usize = 16;
const FIN_AND_PSH: u8 = 0x09;
const CWR: u8 = 0x80;

/// The headers of a joined frame.
struct Headers {
    bytes: [u8; HEADERS_MAX],
    len: usize,
    tcp_at: usize,
    is_v4: bool,
}

/// One of a frame's segments.
struct Segment {
    index: usize,
    /// Of its first byte in the payload.
    offset: usize,
    is_last: bool,
}

/// Gives `sink` the segments of a frame, or the frame itself if it is none that was joined. False if a part
/// of it is lost: it makes no sense, or `pool` has no buffer.
pub fn cut_coalesced(frame: RxFrame, pool: &dyn Pool, sink: &mut dyn FnMut(RxFrame)) -> bool {
    let Some(coalesced) = frame.coalesced else {
        sink(frame);
        return true;
    };
    let size = usize::from(coalesced.mss);
    let Some(headers) = Headers::of(&frame.chain) else {
        return false;
    };
    let mut payload = frame.chain;
    payload.advance(headers.len);
    if payload.is_empty() || size == 0 || payload.len() > size * SEGMENTS_MAX {
        return false;
    }
    let (mut index, mut offset) = (0, 0);
    while !payload.is_empty() {
        let piece = payload.split_to(size);
        let bytes = piece.len();
        let segment = Segment {
            index,
            offset,
            is_last: payload.is_empty(),
        };
        let Some(chain) = headers.in_front_of(piece, &segment, pool) else {
            return false;
        };
        sink(RxFrame {
            chain,
            checksum: Checksum::Verified,
            ..RxFrame::default()
        });
        (index, offset) = (index + 1, offset + bytes);
    }
    true
}

impl Headers {
    fn of(chain: &Chain) -> Option<Self> {
        let mut bytes = [0; HEADERS_MAX];
        let copied = chain.copy_to_slice(0, &mut bytes);
        let known = bytes.get(..copied)?;
        let packet = known.get(IP_AT..)?;
        let packet_len = chain.len().checked_sub(IP_AT)?;
        let (ip_bytes, is_v4) = match EthernetRepr::parse(known).ok()?.ether_type {
            EtherType::Ipv4 => {
                let ip = Ipv4View::parse(packet, packet_len).ok()?;
                let is_tcp = ip.protocol() == Protocol::Tcp && !ip.is_fragment();
                (is_tcp.then_some(ip.header().len())?, true)
            }
            EtherType::Ipv6 => {
                let ip = Ipv6View::parse(packet, packet_len).ok()?;
                let is_tcp = ip.next_header() == Protocol::Tcp.number();
                (is_tcp.then_some(IPV6_HEADER_BYTES)?, false)
            }
            _ => return None,
        };
        let tcp_at = IP_AT + ip_bytes;
        let words = known.get(tcp_at + TCP_OFFSET)? >> 4;
        let len = tcp_at + 4 * usize::from(words);
        (words >= 5 && len <= copied).then_some(Self {
            bytes,
            len,
            tcp_at,
            is_v4,
        })
    }

    /// The frame of a segment with this payload; `None` without a buffer.
    fn in_front_of(&self, payload: Chain, segment: &Segment, pool: &dyn Pool) -> Option<Chain> {
        let mut headers = self.bytes;
        let headers = headers.get_mut(..self.len)?;
        let tcp_len = self.len - self.tcp_at + payload.len();
        let pseudo = match self.is_v4 {
            true => number_v4(headers, self.tcp_at, tcp_len, segment.index)?,
            false => number_v6(headers, tcp_len)?,
        };
        let tcp = headers.get_mut(self.tcp_at..)?;
        number_tcp(tcp, segment)?;
        let sum = payload.slices().fold(pseudo.bytes(tcp), Sum::bytes);
        put(tcp, TCP_SUM, sum.checksum())?;
        let mut buffer = pool.alloc()?;
        buffer.reserve(HEADROOM);
        if buffer.append(headers) != headers.len() {
            return None;
        }
        let mut frame = Chain::from(buffer);
        frame.append(payload);
        Some(frame)
    }
}

fn put(bytes: &mut [u8], at: usize, value: u16) -> Option<()> {
    bytes
        .get_mut(at..at + 2)?
        .copy_from_slice(&value.to_be_bytes());
    Some(())
}

/// A packet's own length, number and sum; gives back the sum of TCP's pseudo header.
fn number_v4(headers: &mut [u8], tcp_at: usize, tcp_len: usize, index: usize) -> Option<Sum> {
    let ip = Ipv4View::parse(headers.get(IP_AT..)?, usize::from(u16::MAX)).ok()?;
    let ident = ip.ident().wrapping_add(index as u16);
    let pseudo = Sum::pseudo_v4(ip.src(), ip.dst(), Protocol::Tcp, tcp_len as u32);
    put(headers, V4_LEN, (tcp_at - IP_AT + tcp_len) as u16)?;
    put(headers, V4_IDENT, ident)?;
    put(headers, V4_SUM, 0)?;
    let sum = Sum::new().bytes(headers.get(IP_AT..tcp_at)?);
    put(headers, V4_SUM, sum.checksum())?;
    Some(pseudo)
}

fn number_v6(headers: &mut [u8], tcp_len: usize) -> Option<Sum> {
    let ip = Ipv6View::parse(headers.get(IP_AT..)?, usize::from(u16::MAX)).ok()?;
    let tcp = Protocol::Tcp.number();
    let pseudo = Sum::pseudo_v6(ip.src(), ip.dst(), tcp, tcp_len as u32);
    put(headers, V6_LEN, tcp_len as u16)?;
    Some(pseudo)
}

fn number_tcp(tcp: &mut [u8], segment: &Segment) -> Option<()> {
    let seq: &mut [u8; 4] = tcp.get_mut(TCP_SEQ..)?.first_chunk_mut()?;
    let number = u32::from_be_bytes(*seq).wrapping_add(segment.offset as u32);
    *seq = number.to_be_bytes();
    let flags = tcp.get_mut(TCP_FLAGS)?;
    if !segment.is_last {
        *flags &= !FIN_AND_PSH;
    }
    if segment.index != 0 {
        *flags &= !CWR;
    }
    put(tcp, TCP_SUM, 0)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;
    use core::net::{Ipv4Addr, Ipv6Addr};

    use mbuf::{Coalesced, HeapPool};
    use wire::{Ipv4Repr, Ipv6Repr, MacAddr};

    use super::*;

    const MSS: usize = 1000;
    const TCP_BYTES: usize = 32;
    const SEQ: u32 = u32::MAX - 1500;
    const ALL_FLAGS: u8 = CWR | 0x10 | FIN_AND_PSH;

    fn tcp() -> [u8; TCP_BYTES] {
        let mut tcp = [1; TCP_BYTES];
        tcp[TCP_SEQ..TCP_SEQ + 4].copy_from_slice(&SEQ.to_be_bytes());
        tcp[TCP_OFFSET] = (TCP_BYTES as u8 / 4) << 4;
        tcp[TCP_FLAGS] = ALL_FLAGS;
        tcp
    }

    fn ethernet(ether_type: EtherType) -> Vec<u8> {
        let mut bytes = alloc::vec![0; ETHERNET_HEADER_BYTES];
        let header = EthernetRepr {
            dst: MacAddr([2; 6]),
            src: MacAddr([4; 6]),
            ether_type,
        };
        header.emit(&mut bytes);
        bytes
    }

    fn frame_v4(payload: &[u8]) -> Vec<u8> {
        let mut ip = [0; 20];
        let header = Ipv4Repr {
            src: Ipv4Addr::new(10, 0, 0, 1),
            dst: Ipv4Addr::new(10, 0, 0, 2),
            protocol: Protocol::Tcp,
            payload_len: (TCP_BYTES + payload.len()) as u16,
            ttl: 64,
            tos: 0,
        };
        header.emit(&mut ip);
        [&ethernet(EtherType::Ipv4)[..], &ip, &tcp(), payload].concat()
    }

    fn frame_v6(payload: &[u8]) -> Vec<u8> {
        let mut ip = [0; IPV6_HEADER_BYTES];
        let header = Ipv6Repr {
            src: Ipv6Addr::LOCALHOST,
            dst: Ipv6Addr::LOCALHOST,
            next_header: Protocol::Tcp.number(),
            payload_len: (TCP_BYTES + payload.len()) as u16,
            hop_limit: 64,
            traffic_class: 0,
            flow_label: 0,
        };
        header.emit(&mut ip);
        [&ethernet(EtherType::Ipv6)[..], &ip, &tcp(), payload].concat()
    }

    /// In pieces that tear headers apart.
    fn joined(pool: &HeapPool, bytes: &[u8]) -> RxFrame {
        let mut frame = RxFrame::default();
        for piece in bytes.chunks(47) {
            let mut part = pool.alloc().expect("a buffer");
            part.append(piece);
            frame.chain.push_back(part);
        }
        frame.coalesced = Some(Coalesced { mss: MSS as u16 });
        frame
    }

    fn cut(pool: &HeapPool, bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
        let mut segments = Vec::new();
        let is_whole = cut_coalesced(joined(pool, bytes), pool, &mut |frame| {
            segments.push(frame.chain.slices().flatten().copied().collect());
        });
        is_whole.then_some(segments)
    }

    /// A segment's number, flags and payload, if all of its sums are right.
    fn opened(frame: &[u8]) -> (u32, u8, Vec<u8>) {
        let packet = &frame[IP_AT..];
        let (tcp, pseudo) = match packet[0] >> 4 {
            4 => {
                let ip = Ipv4View::parse(packet, packet.len()).expect("a packet");
                assert_eq!(ip.total_len(), packet.len());
                let tcp = &packet[ip.header().len()..];
                let len = tcp.len() as u32;
                (tcp, Sum::pseudo_v4(ip.src(), ip.dst(), Protocol::Tcp, len))
            }
            _ => {
                let ip = Ipv6View::parse(packet, packet.len()).expect("a packet");
                let tcp = &packet[IPV6_HEADER_BYTES..];
                assert_eq!(usize::from(ip.payload_len()), tcp.len());
                let (number, len) = (Protocol::Tcp.number(), tcp.len() as u32);
                (tcp, Sum::pseudo_v6(ip.src(), ip.dst(), number, len))
            }
        };
        assert!(pseudo.bytes(tcp).is_valid());
        let seq = tcp[TCP_SEQ..TCP_SEQ + 4].try_into().map(u32::from_be_bytes);
        (
            seq.expect("four bytes"),
            tcp[TCP_FLAGS],
            tcp[TCP_BYTES..].to_vec(),
        )
    }

    #[test]
    fn a_joined_frame_becomes_the_segments_of_its_stream() {
        let pool = HeapPool::new(200);
        let payload: Vec<u8> = (0..2500_u32).map(|at| at as u8).collect();
        for bytes in [frame_v4(&payload), frame_v6(&payload)] {
            let segments = cut(&pool, &bytes).expect("segments");
            let opened: Vec<_> = segments.iter().map(|bytes| opened(bytes)).collect();
            let numbers: Vec<u32> = opened.iter().map(|one| one.0.wrapping_sub(SEQ)).collect();
            assert_eq!(numbers, [0, 1000, 2000]);
            let flags: Vec<u8> = opened.iter().map(|one| one.1).collect();
            assert_eq!(flags, [CWR | 0x10, 0x10, 0x10 | FIN_AND_PSH]);
            let whole: Vec<u8> = opened.into_iter().flat_map(|one| one.2).collect();
            assert_eq!(whole, payload);
        }
        assert_eq!(pool.used(), 0);
    }

    #[test]
    fn packets_of_one_frame_have_numbers_of_their_own() {
        let pool = HeapPool::new(200);
        let segments = cut(&pool, &frame_v4(&[0; 2500])).expect("segments");
        let ident = |bytes: &Vec<u8>| [bytes[V4_IDENT], bytes[V4_IDENT + 1]];
        let idents: Vec<_> = segments.iter().map(ident).collect();
        assert_eq!(idents, [[0, 0], [0, 1], [0, 2]]);
    }

    #[test]
    fn what_makes_no_sense_is_lost_and_nothing_else_happens() {
        let pool = HeapPool::new(300);
        let whole = frame_v4(&[0; 1500]);
        for end in 0..IP_AT + 20 + TCP_BYTES {
            assert_eq!(cut(&pool, &whole[..end]), None, "{end}");
        }
        for at in 0..IP_AT + 20 + TCP_BYTES {
            for bit in 0..8 {
                let mut bytes = whole.clone();
                bytes[at] ^= 1 << bit;
                let _ = cut(&pool, &bytes);
            }
        }
        assert_eq!(pool.used(), 0);
    }
}
