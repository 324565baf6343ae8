//! A TCP segment over IPv4 over Ethernet, whose ends are changed where it lies.
//!
//! Sums are not made anew but corrected by what has changed (RFC 1624), so bytes of the payload are not read, and a segment that was
//! damaged on its way stays so.

use std::net::{Ipv4Addr, SocketAddrV4};

use wire::TcpFlags;

/// Ethernet's header, and places in it.
const ETHERNET_BYTES: usize = 14;
const STATION_BYTES: usize = 6;
const TYPE_AT: usize = 12;
/// Places of IPv4's fields, and of TCP's behind a header without options.
const FRAGMENT_AT: usize = ETHERNET_BYTES + 6;
const PROTOCOL_AT: usize = ETHERNET_BYTES + 9;
const IP_SUM_AT: usize = ETHERNET_BYTES + 10;
const ADDRESSES_AT: usize = ETHERNET_BYTES + 12;
const PORTS_AT: usize = ETHERNET_BYTES + 20;
const FLAGS_AT: usize = PORTS_AT + 13;
const TCP_SUM_AT: usize = PORTS_AT + 16;
const HEADERS_BYTES: usize = PORTS_AT + 20;

/// IPv4, of twenty bytes.
const PLAIN: [u8; 3] = [0x08, 0x00, 0x45];
const TCP: u8 = 6;
/// More fragments, and the offset.
const IS_FRAGMENT: u16 = 0x3fff;
/// Two addresses, two ports: they lie side by side.
const ENDS_BYTES: usize = 12;

/// Who sends and who is to receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ends {
    pub from: SocketAddrV4,
    pub to: SocketAddrV4,
}

impl Ends {
    fn bytes(self) -> [u8; ENDS_BYTES] {
        let (from, to) = (self.from.ip().octets(), self.to.ip().octets());
        let (from_port, to_port) = (self.from.port().to_be_bytes(), self.to.port().to_be_bytes());
        let mut bytes = [0; ENDS_BYTES];
        let all = from.into_iter().chain(to).chain(from_port).chain(to_port);
        bytes.iter_mut().zip(all).for_each(|(to, from)| *to = from);
        bytes
    }
}

/// See the module.
pub struct Segment<'a>(&'a mut [u8; HEADERS_BYTES]);

impl<'a> Segment<'a> {
    /// Whatever is not one, has options of IP or is a fragment is `None`.
    pub fn parse(frame: &'a mut [u8]) -> Option<Self> {
        let headers: &mut [u8; HEADERS_BYTES] = frame.first_chunk_mut()?;
        let fragment = u16::from_be_bytes([headers[FRAGMENT_AT], headers[FRAGMENT_AT + 1]]);
        let is_one = headers[TYPE_AT..].starts_with(&PLAIN)
            && headers[PROTOCOL_AT] == TCP
            && fragment & IS_FRAGMENT == 0;
        is_one.then_some(Self(headers))
    }

    pub fn ends(&self) -> Ends {
        let end = |place: usize| {
            let address: [u8; 4] = std::array::from_fn(|at| self.0[ADDRESSES_AT + 4 * place + at]);
            let port = PORTS_AT + 2 * place;
            let port = u16::from_be_bytes([self.0[port], self.0[port + 1]]);
            SocketAddrV4::new(Ipv4Addr::from_octets(address), port)
        };
        Ends {
            from: end(0),
            to: end(1),
        }
    }

    pub fn flags(&self) -> TcpFlags {
        TcpFlags(self.0[FLAGS_AT])
    }

    /// The station that it came from.
    pub fn sender(&self) -> [u8; 6] {
        std::array::from_fn(|at| self.0[STATION_BYTES + at])
    }

    /// Sends it by one station to another, and between other ends.
    pub fn redirect(&mut self, (from, to): ([u8; 6], [u8; 6]), ends: Ends) {
        let (old, new) = (self.ends().bytes(), ends.bytes());
        let addresses = ADDRESSES_AT..ADDRESSES_AT + ENDS_BYTES;
        self.correct(IP_SUM_AT, &old[..8], &new[..8]);
        self.correct(TCP_SUM_AT, &old, &new);
        self.0[addresses].copy_from_slice(&new);
        self.0[..STATION_BYTES].copy_from_slice(&to);
        self.0[STATION_BYTES..TYPE_AT].copy_from_slice(&from);
    }

    /// A sum of which words were `old` and are `new` now.
    fn correct(&mut self, at: usize, old: &[u8], new: &[u8]) {
        let sum = u16::from_be_bytes([self.0[at], self.0[at + 1]]);
        let words = |bytes: &[u8]| -> Vec<u16> {
            let (pairs, _) = bytes.as_chunks::<2>();
            pairs.iter().map(|pair| u16::from_be_bytes(*pair)).collect()
        };
        let less = words(old).into_iter().map(|word| u32::from(!word));
        let more = words(new).into_iter().map(u32::from);
        let mut total = u32::from(!sum) + less.chain(more).sum::<u32>();
        while total > 0xffff {
            total = (total & 0xffff) + (total >> 16);
        }
        let [high, low] = (!(total as u16)).to_be_bytes();
        (self.0[at], self.0[at + 1]) = (high, low);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Protocol, Sum};

    fn end(host: u8, port: u16) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::new(10, 0, 2, host), port)
    }

    /// A segment with right sums.
    fn frame(ends: Ends, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; HEADERS_BYTES];
        frame[TYPE_AT..TYPE_AT + 3].copy_from_slice(&PLAIN);
        let total = (HEADERS_BYTES - ETHERNET_BYTES + payload.len()) as u16;
        frame[16..18].copy_from_slice(&total.to_be_bytes());
        frame[PROTOCOL_AT] = TCP;
        frame[ADDRESSES_AT..ADDRESSES_AT + ENDS_BYTES].copy_from_slice(&ends.bytes());
        frame[PORTS_AT + 12] = 0x50;
        frame.extend(payload);
        let sum = Sum::new()
            .bytes(&frame[ETHERNET_BYTES..PORTS_AT])
            .checksum();
        frame[IP_SUM_AT..IP_SUM_AT + 2].copy_from_slice(&sum.to_be_bytes());
        let sum = tcp_sum(&frame, ends).checksum();
        frame[TCP_SUM_AT..TCP_SUM_AT + 2].copy_from_slice(&sum.to_be_bytes());
        frame
    }

    fn tcp_sum(frame: &[u8], ends: Ends) -> Sum {
        let segment = &frame[PORTS_AT..];
        let (from, to) = (*ends.from.ip(), *ends.to.ip());
        Sum::pseudo_v4(from, to, Protocol::Tcp, segment.len() as u32).bytes(segment)
    }

    #[test]
    fn sums_are_right_after_any_change_of_ends() {
        for seed in 0..500_u32 {
            let part = |shift: u32| (seed.wrapping_mul(0x9e37_79b9) >> shift) as u16;
            let ends = Ends {
                from: end(part(3) as u8, part(7)),
                to: end(part(11) as u8, part(13)),
            };
            let new = Ends {
                from: end(part(5) as u8, part(1)),
                to: end(part(9) as u8, part(15)),
            };
            let mut bytes = frame(ends, &seed.to_be_bytes()[..(seed % 5) as usize]);
            let mut segment = Segment::parse(&mut bytes).expect("one");
            assert_eq!(segment.ends(), ends);
            segment.redirect(([1; 6], [2; 6]), new);
            assert_eq!(segment.ends(), new);
            assert_eq!(segment.sender(), [1; 6]);
            assert!(
                Sum::new()
                    .bytes(&bytes[ETHERNET_BYTES..PORTS_AT])
                    .is_valid(),
                "seed {seed}"
            );
            assert!(tcp_sum(&bytes, new).is_valid(), "seed {seed}");
        }
    }

    #[test]
    fn what_is_no_whole_plain_segment_is_none() {
        let whole = frame(
            Ends {
                from: end(1, 2),
                to: end(3, 4),
            },
            b"",
        );
        for len in 0..whole.len() {
            assert!(Segment::parse(&mut whole[..len].to_vec()).is_none());
        }
        for (at, byte) in [
            (TYPE_AT, 0x86),
            (TYPE_AT + 2, 0x46),
            (PROTOCOL_AT, 17),
            (FRAGMENT_AT, 0x20),
        ] {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            assert!(Segment::parse(&mut bytes).is_none(), "byte {at}");
        }
    }
}
