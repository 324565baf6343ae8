//! Values as bytes, for a library of another version ([`checkpoint`](crate::checkpoint)).
//!
//! A structure is its fields one after the other, numbers little-endian, a list or bytes behind their count. `put` and
//! `take` of a structure are made of one list of its fields, so they cannot disagree. Nothing is believed: what is
//! no value of its type, or is cut off, is refused, and a count is no reason to allocate.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use inet::{
    Algorithm, ClockSnapshot, Device, Endpoint, Error, Options, PastConnection, PathDiscovery,
    ReceiveSnapshot, SendSnapshot, State, TcpSnapshot, Transport,
};

/// A value that can be bytes.
pub(crate) trait Encode: Sized {
    /// Adds its bytes.
    fn put(&self, to: &mut Vec<u8>);

    /// Takes a value from the front; `None` if there is none.
    fn take(from: &mut &[u8]) -> Option<Self>;

    /// Adds the bytes of all.
    fn put_all(all: &[Self], to: &mut Vec<u8>) {
        all.iter().for_each(|value| value.put(to));
    }

    /// Takes so many. Each has a byte at least, so the list is no longer than what it is read from.
    fn take_all(count: usize, from: &mut &[u8]) -> Option<Vec<Self>> {
        (0..count).map(|_| Self::take(from)).collect()
    }
}

impl Encode for u8 {
    fn put(&self, to: &mut Vec<u8>) {
        to.push(*self);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let (first, rest) = from.split_first()?;
        *from = rest;
        Some(*first)
    }

    fn put_all(all: &[Self], to: &mut Vec<u8>) {
        to.extend_from_slice(all);
    }

    fn take_all(count: usize, from: &mut &[u8]) -> Option<Vec<Self>> {
        let (all, rest) = from.split_at_checked(count)?;
        *from = rest;
        Some(all.to_vec())
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Encode for $number {
            fn put(&self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_le_bytes());
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                let (bytes, rest) = from.split_first_chunk()?;
                *from = rest;
                Some(Self::from_le_bytes(*bytes))
            }
        }
    )*};
}

numbers!(u16, u32, u64);

impl Encode for bool {
    fn put(&self, to: &mut Vec<u8>) {
        to.push(u8::from(*self));
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        match u8::take(from)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl<T: Encode> Encode for Option<T> {
    fn put(&self, to: &mut Vec<u8>) {
        self.is_some().put(to);
        if let Some(value) = self {
            value.put(to);
        }
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        match bool::take(from)? {
            true => T::take(from).map(Some),
            false => Some(None),
        }
    }
}

impl<A: Encode, B: Encode> Encode for (A, B) {
    fn put(&self, to: &mut Vec<u8>) {
        self.0.put(to);
        self.1.put(to);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        Some((A::take(from)?, B::take(from)?))
    }
}

impl<T: Encode> Encode for Vec<T> {
    fn put(&self, to: &mut Vec<u8>) {
        (self.len() as u32).put(to);
        T::put_all(self, to);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let count = u32::take(from)?;
        T::take_all(count as usize, from)
    }
}

impl Encode for IpAddr {
    fn put(&self, to: &mut Vec<u8>) {
        match self {
            Self::V4(addr) => (4_u8, addr.to_bits()).put(to),
            Self::V6(addr) => {
                6_u8.put(to);
                to.extend_from_slice(&addr.octets());
            }
        }
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        match u8::take(from)? {
            4 => Some(Ipv4Addr::from_bits(u32::take(from)?).into()),
            6 => {
                let (octets, rest) = from.split_first_chunk::<16>()?;
                *from = rest;
                Some(Ipv6Addr::from(*octets).into())
            }
            _ => None,
        }
    }
}

/// Choices by their places in a list, which only grows.
macro_rules! choices {
    ($type:ty: $all:expr) => {
        impl Encode for $type {
            fn put(&self, to: &mut Vec<u8>) {
                let place = $all.iter().position(|one| one == self);
                place.map_or(u8::MAX, |place| place as u8).put(to);
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                $all.get(usize::from(u8::take(from)?)).copied()
            }
        }
    };
}

choices!(Algorithm: [Algorithm::Reno, Algorithm::Cubic, Algorithm::Bbr]);
choices!(State: [
    State::Closed, State::Established, State::FinWait1, State::FinWait2, State::CloseWait,
    State::Closing, State::LastAck,
]);
choices!(PathDiscovery: [
    PathDiscovery::Never, PathDiscovery::Want, PathDiscovery::Always, PathDiscovery::Probe,
    PathDiscovery::Interface, PathDiscovery::Omit,
]);
choices!(Transport: [Transport::Tcp, Transport::Udp]);
choices!(Device: [Device::Any, Device::Loopback, Device::Port]);
choices!(Error: [
    Error::BadSocket, Error::InvalidState, Error::WouldBlock, Error::InProgress,
    Error::AlreadyConnected, Error::NotConnected, Error::DestinationRequired,
    Error::AddressInUse, Error::AddressNotAvailable, Error::NetworkUnreachable,
    Error::HostUnreachable, Error::ProtocolUnreachable, Error::HostDown, Error::Protocol,
    Error::Prohibited, Error::ConnectionRefused, Error::ConnectionReset,
    Error::ConnectionAborted, Error::BrokenPipe, Error::TimedOut, Error::MessageTooLong,
    Error::BroadcastNotAllowed, Error::NoBuffers,
]);

/// Structures by the list of their fields.
macro_rules! structures {
    ($($type:ty { $($field:ident),* $(,)? })*) => {$(
        impl $crate::encoding::Encode for $type {
            fn put(&self, to: &mut Vec<u8>) {
                $($crate::encoding::Encode::put(&self.$field, to);)*
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                Some(Self {
                    $($field: $crate::encoding::Encode::take(from)?,)*
                })
            }
        }
    )*};
}
pub(crate) use structures;

structures! {
    Endpoint { addr, port }
    ClockSnapshot { own, recent }
    SendSnapshot {
        una, unacked, unsent, is_fin_sent, window, window_max, wl1, scale, mss,
    }
    ReceiveSnapshot { nxt, window, scale, unread, is_shut }
    TcpSnapshot {
        local, remote, state, options, sending, receiving, clocks, has_sack, has_ecn, rtt_micros,
    }
    PastConnection { local, remote, unread, error, options }
    Options {
        owner, device, reuse_address, reuse_port, broadcast, path_discovery, packet_bytes_v6, is_whole_v6, no_checksum, min_ttl,
        min_hop_count, queue_failures_v4, queue_failures_v6, segment_bytes, join_datagrams,
        is_filtered, v6_only, no_delay, cork, keepalive, ttl, multicast_ttl, multicast_loop, tos,
        keep_count, max_segment, keep_idle_secs, keep_interval_secs, linger_secs, user_timeout_ms,
        syn_timeouts, defer_timeouts, window_clamp, receive_low_water, congestion, send_buffer,
        recv_buffer, is_send_tuned, is_recv_tuned,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection() -> TcpSnapshot {
        TcpSnapshot {
            local: Endpoint::v4([10, 0, 0, 1].into(), 6379),
            remote: Endpoint::v6(Ipv6Addr::LOCALHOST, 40_000),
            state: State::CloseWait,
            options: Options {
                linger_secs: Some(7),
                no_delay: true,
                congestion: Algorithm::Bbr,
                path_discovery: PathDiscovery::Omit,
                ..Options::default()
            },
            sending: SendSnapshot {
                una: 0xffff_fff0,
                unacked: b"sent".to_vec(),
                unsent: b"not sent".to_vec(),
                is_fin_sent: false,
                window: 65_536,
                window_max: 70_000,
                wl1: 3,
                scale: 7,
                mss: 1460,
            },
            receiving: ReceiveSnapshot {
                nxt: 17,
                window: 1000,
                scale: 9,
                unread: vec![1; 300],
                is_shut: true,
            },
            clocks: Some(ClockSnapshot { own: 5, recent: 6 }),
            has_sack: true,
            has_ecn: false,
            rtt_micros: (1000, 250),
        }
    }

    fn bytes_of(value: &impl Encode) -> Vec<u8> {
        let mut bytes = Vec::new();
        value.put(&mut bytes);
        bytes
    }

    #[test]
    fn a_connection_is_the_same_after_it_was_bytes() {
        let bytes = bytes_of(&connection());
        let mut rest = bytes.as_slice();
        assert_eq!(TcpSnapshot::take(&mut rest), Some(connection()));
        assert!(rest.is_empty());
    }

    #[test]
    fn bytes_that_are_cut_off_anywhere_are_no_connection() {
        let bytes = bytes_of(&connection());
        for len in 0..bytes.len() {
            assert_eq!(TcpSnapshot::take(&mut &bytes[..len]), None, "{len}");
        }
    }

    #[test]
    fn a_count_beyond_all_bytes_and_a_choice_that_is_none_are_refused() {
        assert_eq!(Vec::<u32>::take(&mut &[255; 10][..]), None);
        assert_eq!(Vec::<u8>::take(&mut &[255, 255, 255, 255, 1][..]), None);
        assert_eq!(bool::take(&mut &[2][..]), None);
        assert_eq!(State::take(&mut &[7][..]), None);
        assert_eq!(IpAddr::take(&mut &[5, 0, 0, 0, 0][..]), None);
        assert_eq!(<Option<u8> as Encode>::take(&mut &[1][..]), None);
    }

    #[test]
    fn every_byte_that_changes_gives_another_connection_or_none() {
        let bytes = bytes_of(&connection());
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 0x41;
            assert_ne!(
                TcpSnapshot::take(&mut other.as_slice()),
                Some(connection()),
                "{at}"
            );
        }
    }
}
