//! Frames to send through a LAN.

use std::net::IpAddr;

use mbuf::{Chain, Pool, RxFrame, TxFrame};
use wire::{DhcpMessage, DhcpRepr, MacAddr, Protocol};

use crate::frame;

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
        match (self.from.0, self.to.0) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                let header = frame::header(src, dst, Protocol::from_number(self.protocol));
                frame::ipv4(self.dst, self.src, header, &transport)
            }
            (IpAddr::V6(src), IpAddr::V6(dst)) => {
                let header = frame::header_v6(src, dst, self.protocol);
                frame::ipv6(self.dst, self.src, header, &transport)
            }
            _ => panic!("two families in one packet"),
        }
    }
}

/// A DHCP message between the first station and a server, station 99, which leases
/// 10.0.0.1 for an hour. `kind` is that of a server's message (RFC 2132, option 53);
/// `ports` are 68 and 67 for the client's, turned round for the server's.
pub fn dhcp(message: DhcpMessage, kind: u8, transaction: u32, ports: [u16; 2]) -> Vec<u8> {
    let mut body = vec![0; DhcpRepr::BYTES];
    let repr = DhcpRepr {
        message,
        transaction,
        elapsed_secs: 0,
        mac: super::station(1),
        client_ip: [0; 4].into(),
        requested_ip: None,
        server: None,
        host_name: None,
    };
    repr.emit(&mut body);
    let is_reply = ports[0] == 67;
    if is_reply {
        body[0] = 2;
        body[16..20].copy_from_slice(&[10, 0, 0, 1]);
        body.truncate(240);
        body.extend_from_slice(&[53, 1, kind, 51, 4, 0, 0, 14, 16, 255]);
    }
    let mut udp = ports.map(u16::to_be_bytes).concat();
    udp.extend_from_slice(&(body.len() as u16 + 8).to_be_bytes());
    udp.extend_from_slice(&[0, 0]);
    udp.extend(body);
    let sender = if is_reply { [10, 0, 0, 99] } else { [0; 4] };
    let header = frame::header(sender.into(), [255; 4].into(), Protocol::Udp);
    let (dst, src) = if is_reply {
        (super::station(1), super::station(99))
    } else {
        (super::station(99), super::station(1))
    };
    frame::ipv4(dst, src, header, &udp)
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
