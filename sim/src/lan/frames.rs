//! Frames to send through a LAN.

use std::net::IpAddr;

use mbuf::{Chain, Pool, RxFrame, TxFrame};
use wire::{
    EtherType, EthernetRepr, IPV4_HEADER_BYTES, IPV6_HEADER_BYTES, Ipv4Repr, Ipv6Repr, MacAddr,
    Protocol,
};

/// Number of TCP.
pub const TCP: u8 = 6;
/// Number of UDP.
pub const UDP: u8 = 17;

/// A packet with ports and four bytes behind them.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// Receiving station.
    pub dst: MacAddr,
    /// Sending station.
    pub src: MacAddr,
    /// Sending host and port.
    pub from: (IpAddr, u16),
    /// Receiving host and port.
    pub to: (IpAddr, u16),
    /// TCP or UDP.
    pub protocol: u8,
}

impl Flow {
    /// The frame that carries `number`.
    pub fn frame(&self, number: u32) -> Vec<u8> {
        let mut transport = Vec::new();
        transport.extend_from_slice(&self.from.1.to_be_bytes());
        transport.extend_from_slice(&self.to.1.to_be_bytes());
        transport.extend_from_slice(&number.to_be_bytes());
        let (kind, packet) = match (self.from.0, self.to.0) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                let mut packet = vec![0; IPV4_HEADER_BYTES];
                let header = Ipv4Repr {
                    src,
                    dst,
                    protocol: Protocol::from_number(self.protocol),
                    payload_len: transport.len() as u16,
                    ttl: 64,
                    tos: 0,
                };
                header.emit(&mut packet);
                (EtherType::Ipv4, packet)
            }
            (IpAddr::V6(src), IpAddr::V6(dst)) => {
                let mut packet = vec![0; IPV6_HEADER_BYTES];
                let header = Ipv6Repr {
                    src,
                    dst,
                    next_header: self.protocol,
                    payload_len: transport.len() as u16,
                    hop_limit: 64,
                };
                header.emit(&mut packet);
                (EtherType::Ipv6, packet)
            }
            _ => panic!("two families in one packet"),
        };
        ethernet(self.dst, self.src, kind, &[packet, transport].concat())
    }
}

/// A frame around `payload`.
pub fn ethernet(dst: MacAddr, src: MacAddr, kind: EtherType, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; wire::ETHERNET_HEADER_BYTES];
    let header = EthernetRepr {
        dst,
        src,
        ether_type: kind,
    };
    header.emit(&mut frame);
    frame.extend_from_slice(payload);
    frame
}

/// The number in a frame of [`Flow`], its last four bytes.
pub fn number_of(chain: &Chain) -> u32 {
    let mut number = [0; 4];
    chain.copy_to_slice(chain.len().saturating_sub(4), &mut number);
    u32::from_be_bytes(number)
}

/// Bytes in a buffer with headroom; `None` while the pool is empty or they are too many.
pub fn chain(pool: &dyn Pool, bytes: &[u8]) -> Option<Chain> {
    let mut buffer = pool.alloc()?;
    buffer.reserve(64);
    (buffer.append(bytes) == bytes.len()).then(|| Chain::from(buffer))
}

/// A frame from the wire.
pub fn received(pool: &dyn Pool, bytes: &[u8]) -> Option<RxFrame> {
    Some(RxFrame {
        chain: chain(pool, bytes)?,
        ..RxFrame::default()
    })
}

/// A frame of a client.
pub fn sent(pool: &dyn Pool, bytes: &[u8]) -> Option<TxFrame> {
    Some(TxFrame {
        chain: chain(pool, bytes)?,
        ..TxFrame::default()
    })
}
