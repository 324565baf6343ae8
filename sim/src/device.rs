//! What a NIC does with a frame: completes its checksum and cuts it into segments.

use mbuf::{SegmentKind, TxFrame};
use wire::{ETHERNET_HEADER_BYTES, IPV6_HEADER_BYTES, Ipv4Repr, Ipv4View, Ipv6View, Protocol, Sum};

const SEQ_AT: usize = 4;
const FLAGS_AT: usize = 13;
const FIN_AND_PSH: u8 = 0x09;

/// The frames that appear on the wire.
pub fn cut(frame: &TxFrame) -> Vec<Vec<u8>> {
    let whole: Vec<u8> = frame.chain.slices().flatten().copied().collect();
    let Some(segment) = frame.segment else {
        return vec![complete(whole, frame)];
    };
    let (headers, payload) = whole.split_at(usize::from(segment.header_len));
    let mss = usize::from(segment.mss);
    let count = payload.len().div_ceil(mss);
    let pieces = payload.chunks(mss).enumerate();
    pieces
        .map(|(index, piece)| {
            let bytes = [headers, piece].concat();
            rebuild(segment.kind, bytes, index * mss, index + 1 == count)
        })
        .collect()
}

fn complete(mut bytes: Vec<u8>, frame: &TxFrame) -> Vec<u8> {
    if let Some(offload) = frame.checksum {
        let start = usize::from(offload.start);
        let at = start + usize::from(offload.offset);
        let checksum = match Sum::new().bytes(&bytes[start..]).checksum() {
            0 => 0xffff,
            sum => sum,
        };
        bytes[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    }
    bytes
}

/// One segment of a large one: its own lengths, sequence number and checksums.
fn rebuild(kind: SegmentKind, mut bytes: Vec<u8>, offset: usize, is_last: bool) -> Vec<u8> {
    let (tcp_at, pseudo) = match kind {
        SegmentKind::Tcp4 => rebuild_v4(&mut bytes),
        SegmentKind::Tcp6 => rebuild_v6(&mut bytes),
    };
    let tcp = &mut bytes[tcp_at..];
    let seq: [u8; 4] = tcp[SEQ_AT..SEQ_AT + 4].try_into().expect("four bytes");
    let seq = u32::from_be_bytes(seq).wrapping_add(offset as u32);
    tcp[SEQ_AT..SEQ_AT + 4].copy_from_slice(&seq.to_be_bytes());
    if !is_last {
        tcp[FLAGS_AT] &= !FIN_AND_PSH;
    }
    tcp[16..18].fill(0);
    let checksum = pseudo.bytes(tcp).checksum();
    tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

/// Gives a packet its length; says where TCP begins, and the sum of its pseudo header.
fn rebuild_v4(bytes: &mut [u8]) -> (usize, Sum) {
    let ip_at = ETHERNET_HEADER_BYTES;
    let ip = Ipv4View::parse(&bytes[ip_at..], usize::from(u16::MAX)).expect("our own header");
    let tcp_at = ip_at + ip.header().len();
    let len = bytes.len() - tcp_at;
    let header = Ipv4Repr {
        src: ip.src(),
        dst: ip.dst(),
        protocol: Protocol::Tcp,
        payload_len: len as u16,
        ttl: ip.ttl(),
        tos: ip.tos(),
    };
    header.emit(&mut bytes[ip_at..]);
    let pseudo = Sum::pseudo_v4(header.src, header.dst, Protocol::Tcp, len as u32);
    (tcp_at, pseudo)
}

fn rebuild_v6(bytes: &mut [u8]) -> (usize, Sum) {
    let ip_at = ETHERNET_HEADER_BYTES;
    let tcp_at = ip_at + IPV6_HEADER_BYTES;
    let len = bytes.len() - tcp_at;
    bytes[ip_at + 4..ip_at + 6].copy_from_slice(&(len as u16).to_be_bytes());
    let ip = Ipv6View::parse(&bytes[ip_at..], usize::from(u16::MAX)).expect("our own header");
    let tcp = Protocol::Tcp.number();
    (tcp_at, Sum::pseudo_v6(ip.src(), ip.dst(), tcp, len as u32))
}
