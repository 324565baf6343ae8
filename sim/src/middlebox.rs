//! Boxes on a path that rewrite TCP, as measured on the Internet (RFC 6182 section 7,
//! RFC 3168 section 6.1.1.1): they take out options that they do not know, clear or refuse
//! ECN, and lower segment sizes. They do so in both directions, and mend checksums.

use wire::{ETHERNET_HEADER_BYTES, EtherType, EthernetRepr, IPV4_HEADER_BYTES, Ipv4View};
use wire::{Protocol, Sum, TCP_HEADER_BYTES};

const KIND_NOP: u8 = 1;
const KIND_MSS: u8 = 2;
const KIND_SCALE: u8 = 3;
const KIND_SACK_PERMITTED: u8 = 4;
const KIND_SACK: u8 = 5;
const KIND_TIMESTAMPS: u8 = 8;

const FLAGS_AT: usize = 13;
const CHECKSUM_AT: usize = 16;
const FLAG_SYN: u8 = 0x02;
const FLAGS_ECN: u8 = 0xc0;
const TOS_AT: usize = 1;
const IP_CHECKSUM_AT: usize = 10;
/// Both bits of the ECN field: congestion was experienced.
const CODE_CE: u8 = 3;

/// What a box does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Middlebox {
    /// Nothing.
    Honest,
    /// No SACK is permitted, and no blocks pass.
    NoSack,
    /// SACK is permitted, but blocks do not pass.
    NoSackBlocks,
    /// No timestamps.
    NoTimestamps,
    /// Timestamps in SYNs only: the ends agree on what then does not pass.
    NoLateTimestamps,
    /// No window scaling.
    NoScale,
    /// No options at all.
    NoOptions,
    /// Segment sizes of SYNs are lowered to this.
    ClampMss(u16),
    /// The ECN field of IP is cleared.
    ClearEcn,
    /// A SYN that asks for ECN is lost.
    RefuseEcn,
}

/// Where the headers of a TCP frame lie.
struct Layout {
    tcp: usize,
    end: usize,
    options_end: usize,
    is_syn: bool,
}

impl Layout {
    fn of(frame: &[u8]) -> Option<Self> {
        let ethernet = EthernetRepr::parse(frame).ok()?;
        let packet = frame.get(ETHERNET_HEADER_BYTES..)?;
        if ethernet.ether_type != EtherType::Ipv4 {
            return None;
        }
        let ip = Ipv4View::parse(packet, packet.len()).ok()?;
        if ip.protocol() != Protocol::Tcp || ip.is_fragment() {
            return None;
        }
        let tcp = ETHERNET_HEADER_BYTES + ip.header().len();
        let header = frame.get(tcp..tcp + TCP_HEADER_BYTES)?;
        let options_end = tcp + usize::from(header[12] >> 4) * 4;
        let end = ETHERNET_HEADER_BYTES + ip.total_len();
        (options_end <= end).then_some(Self {
            tcp,
            end,
            options_end,
            is_syn: header[FLAGS_AT] & FLAG_SYN != 0,
        })
    }
}

impl Middlebox {
    /// Passes a frame on, perhaps changed; `None` if it is lost.
    pub fn pass(self, mut frame: Vec<u8>) -> Option<Vec<u8>> {
        let Some(layout) = Layout::of(&frame).filter(|_| self != Self::Honest) else {
            return Some(frame);
        };
        match self {
            Self::ClearEcn => set_ecn(&mut frame, 0),
            Self::RefuseEcn => {
                let flags = frame[layout.tcp + FLAGS_AT];
                if layout.is_syn && flags & FLAGS_ECN == FLAGS_ECN {
                    return None;
                }
            }
            _ => self.rewrite_options(&mut frame, &layout),
        }
        Some(frame)
    }

    fn takes_out(self, kind: u8, is_syn: bool) -> bool {
        match self {
            Self::NoSack => matches!(kind, KIND_SACK_PERMITTED | KIND_SACK),
            Self::NoSackBlocks => kind == KIND_SACK,
            Self::NoTimestamps => kind == KIND_TIMESTAMPS,
            Self::NoLateTimestamps => kind == KIND_TIMESTAMPS && !is_syn,
            Self::NoScale => kind == KIND_SCALE,
            Self::NoOptions => true,
            _ => false,
        }
    }

    fn rewrite_options(self, frame: &mut [u8], layout: &Layout) {
        let mut at = layout.tcp + TCP_HEADER_BYTES;
        while at + 1 < layout.options_end && frame[at] != 0 {
            let kind = frame[at];
            if kind == KIND_NOP {
                at += 1;
                continue;
            }
            let next = at + usize::from(frame[at + 1]).max(2);
            if next > layout.options_end {
                break;
            }
            if self.takes_out(kind, layout.is_syn) {
                frame[at..next].fill(KIND_NOP);
            }
            if let (Self::ClampMss(most), KIND_MSS) = (self, kind) {
                let offered = u16::from_be_bytes([frame[at + 2], frame[at + 3]]);
                frame[at + 2..at + 4].copy_from_slice(&offered.min(most).to_be_bytes());
            }
            at = next;
        }
        mend_tcp_checksum(frame, layout);
    }
}

fn mend_tcp_checksum(frame: &mut [u8], layout: &Layout) {
    let ip = Ipv4View::parse(&frame[ETHERNET_HEADER_BYTES..], usize::from(u16::MAX));
    let Ok((src, dst)) = ip.map(|ip| (ip.src(), ip.dst())) else {
        return;
    };
    let tcp = &mut frame[layout.tcp..layout.end];
    tcp[CHECKSUM_AT..CHECKSUM_AT + 2].fill(0);
    let pseudo = Sum::pseudo_v4(src, dst, Protocol::Tcp, tcp.len() as u32);
    let checksum = pseudo.bytes(tcp).checksum();
    tcp[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&checksum.to_be_bytes());
}

/// Marks a packet of an ECN-capable sender: a queue is building up.
pub(crate) fn mark(frame: &mut [u8]) {
    let is_capable =
        Layout::of(frame).is_some_and(|_| frame[ETHERNET_HEADER_BYTES + TOS_AT] & CODE_CE != 0);
    if is_capable {
        set_ecn(frame, CODE_CE);
    }
}

fn set_ecn(frame: &mut [u8], code: u8) {
    let header = &mut frame[ETHERNET_HEADER_BYTES..ETHERNET_HEADER_BYTES + IPV4_HEADER_BYTES];
    header[TOS_AT] = header[TOS_AT] & !CODE_CE | code;
    header[IP_CHECKSUM_AT..IP_CHECKSUM_AT + 2].fill(0);
    let checksum = Sum::new().bytes(header).checksum();
    header[IP_CHECKSUM_AT..IP_CHECKSUM_AT + 2].copy_from_slice(&checksum.to_be_bytes());
}
