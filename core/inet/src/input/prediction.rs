//! Packets of a flow, known by the headers of those before (header prediction, Van Jacobson 1990).
//!
//! Two packets of one flow to one socket differ in lengths, identification, hops, sums and sequence numbers, and in
//! nothing else that matters on their way to it. So once a flow came twice, the headers of its frames are kept, and
//! the next frame with the same goes to the socket at once: lengths and sums are looked at, addresses, ports and
//! options are compared as five words. `udp/predicted.rs` and `tcp/predicted.rs` take it from there.
//!
//! Invariant **Same**: a prediction says what the long way would say. That depends on the headers; on what
//! changes [`Net::route_epoch`](crate::net::Net), our addresses among it; on whether filters and raw sockets want to
//! see headers; of datagrams on the sockets' names, whose changes change [`Ports::epoch`](crate::ports::Ports);
//! of segments on the connection, whose name is looked at each time. Debug builds find each socket anyway and compare.
//!
//! The table is small and each place has one flow: flows that share it take the long way by turns, for a few
//! instructions more.
//!
//! Not here: IPv6, fragments, options, groups and broadcasts, datagrams without a sum, segments that open a
//! connection.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use mbuf::Chain;
use wire::{ETHERNET_HEADER_BYTES, IPV4_HEADER_BYTES, Protocol, Sum, UDP_HEADER_BYTES};

use crate::addr::{Endpoint, FourTuple};
use crate::counters::DropReason;
use crate::dhcp::is_dhcp;
use crate::env::Env;
use crate::net::Net;
use crate::stack::Stack;

/// Where the transport's header begins.
pub(crate) const TRANSPORT_AT: usize = ETHERNET_HEADER_BYTES + IPV4_HEADER_BYTES;
/// Headers as far as they are looked at.
const HEADERS_BYTES: usize = TRANSPORT_AT + UDP_HEADER_BYTES;
type Headers = [u8; HEADERS_BYTES];

const ETHER_TYPE_AT: usize = 12;
pub(crate) const IP_AT: usize = ETHERNET_HEADER_BYTES;
const TOS_AT: usize = IP_AT + 1;
const IP_LEN_AT: usize = IP_AT + 2;
const FRAGMENT_AT: usize = IP_AT + 6;
const TTL_AT: usize = IP_AT + 8;
const PROTOCOL_AT: usize = IP_AT + 9;
const SRC_AT: usize = IP_AT + 12;
const DST_AT: usize = IP_AT + 16;
/// A datagram's length, and the first half of a segment's sequence number.
const LEN_AT: usize = TRANSPORT_AT + 4;

/// EtherType, version and length of a plain IPv4 header.
const PLAIN_IPV4: [u8; 3] = [0x08, 0x00, 0x45];
/// More fragments, and the offset.
const IS_FRAGMENT: u16 = 0x3fff;

/// Words that are compared: all but the lengths and sums at the end.
const WORDS: usize = 5;
/// What of them is the same for a whole flow.
const SAME: [u64; WORDS] = {
    let mut bytes = [0xff; WORDS * 8];
    let changing = [16, 17, 18, 19, TTL_AT, 24, 25, LEN_AT, LEN_AT + 1];
    let mut at = 0;
    while at < changing.len() {
        bytes[changing[at]] = 0;
        at += 1;
    }
    let (words, _) = bytes.as_chunks::<8>();
    let mut same = [0; WORDS];
    let mut word = 0;
    while word < WORDS {
        same[word] = u64::from_ne_bytes(words[word]);
        word += 1;
    }
    same
};

/// Flows that are remembered.
const FLOWS: usize = 256;

/// One flow.
#[derive(Clone, Copy)]
struct Prediction {
    same: [u64; WORDS],
    /// Where its packets go; `None` for a flow that was seen once.
    socket: Option<u32>,
    route_epoch: u32,
    /// Of a flow of datagrams.
    ports_epoch: u32,
}

const NONE: Prediction = Prediction {
    same: [0; WORDS],
    socket: None,
    route_epoch: 0,
    ports_epoch: 0,
};

/// What a stack remembers of the flows that come to it. It has no memory until there is one.
#[derive(Default)]
pub(crate) struct Predictions(Option<Box<[Prediction]>>);

impl Predictions {
    #[inline]
    fn get(&self, headers: &Headers) -> Option<&Prediction> {
        self.0.as_ref()?.get(place_of(headers))
    }

    fn entry(&mut self, headers: &Headers) -> Option<&mut Prediction> {
        if self.0.is_none() {
            let mut flows = Vec::new();
            flows.try_reserve_exact(FLOWS).ok()?;
            flows.resize(FLOWS, NONE);
            self.0 = Some(flows.into_boxed_slice());
        }
        self.0.as_mut()?.get_mut(place_of(headers))
    }
}

/// The sender's port says more than anything else. Hosts give ports out one after the other, many of them every second one (Linux
/// does): the lowest bit counts for the most, so that of either kind as many in a row as there are places have one each.
#[inline]
fn place_of(headers: &Headers) -> usize {
    let port = half_at(headers, TRANSPORT_AT);
    usize::from((port >> 1 ^ port << 7) as u8 ^ headers[SRC_AT + 3]) % FLOWS
}

#[inline]
fn same_of(headers: &Headers) -> [u64; WORDS] {
    let (words, _) = headers.as_chunks::<8>();
    core::array::from_fn(|at| u64::from_ne_bytes(words[at]) & SAME[at])
}

/// Word by word: a comparison of arrays is a call.
#[inline]
fn is_same(one: &[u64; WORDS], other: &[u64; WORDS]) -> bool {
    let differences = one.iter().zip(other).map(|(one, other)| one ^ other);
    differences.fold(0, |all, words| all | words) == 0
}

#[inline]
pub(crate) fn half_at(headers: &Headers, at: usize) -> u16 {
    u16::from_be_bytes([headers[at], headers[at + 1]])
}

#[inline]
fn addr_at(headers: &Headers, at: usize) -> Ipv4Addr {
    let bytes = [0, 1, 2, 3].map(|byte| headers[at + byte]);
    Ipv4Addr::from_octets(bytes)
}

/// Sender and receiver.
#[inline]
fn ends_of(headers: &Headers) -> (Endpoint, Endpoint) {
    let end = |addr, port| Endpoint::v4(addr_at(headers, addr), half_at(headers, port));
    (end(SRC_AT, TRANSPORT_AT), end(DST_AT, TRANSPORT_AT + 2))
}

#[inline]
fn is_tcp(headers: &Headers) -> bool {
    headers[PROTOCOL_AT] == Protocol::Tcp.number()
}

/// The headers of a frame that may be of a flow.
#[inline]
pub(crate) fn headers_of(frame: &Chain) -> Option<&Headers> {
    let headers: &Headers = frame.front()?.bytes().first_chunk()?;
    let is_plain = headers[ETHER_TYPE_AT..=IP_AT] == PLAIN_IPV4;
    let is_udp = headers[PROTOCOL_AT] == Protocol::Udp.number();
    (is_plain && (is_udp || is_tcp(headers))).then_some(headers)
}

/// A packet of a known flow, whose IP header is whole and right.
pub(crate) struct Predicted {
    /// Where it goes, if it is what the flow's others were.
    pub socket: u32,
    pub from: Endpoint,
    pub to: Endpoint,
    pub hop_limit: u8,
    pub tos: u8,
    /// Bytes of the packet, its IP header included.
    pub total: usize,
    /// The transport's sum needs no look.
    pub is_checked: bool,
    /// The pseudo header, without the length.
    pub pseudo: Sum,
}

impl Predicted {
    /// Whether the transport's sum is right; `packet` begins with its header.
    #[inline]
    pub fn verify(&self, packet: &Chain) -> bool {
        self.is_checked || {
            let pseudo = self.pseudo.word(packet.len() as u16);
            packet.slices().fold(pseudo, Sum::bytes).is_valid()
        }
    }
}

impl Stack {
    /// Takes a frame of a flow that is known, whole; nothing has happened to one that goes the long way.
    #[inline]
    pub(crate) fn predicted_input<E: Env>(
        &mut self,
        env: &mut E,
        frame: &mut Chain,
        is_checked: bool,
    ) -> Option<Result<(), DropReason>> {
        // Whatever it is: the words say whether it is of a flow.
        let headers: &Headers = frame.front()?.bytes().first_chunk()?;
        let socket = self.net.predict(headers)?;
        let total = usize::from(half_at(headers, IP_LEN_AT));
        let ip: &[u8; IPV4_HEADER_BYTES] = headers[IP_AT..].first_chunk()?;
        if total + IP_AT > frame.len() || !Sum::of_twenty(ip).is_valid() {
            return None;
        }
        let (from, to) = ends_of(headers);
        let protocol = match is_tcp(headers) {
            true => Protocol::Tcp,
            false => Protocol::Udp,
        };
        let packet = Predicted {
            socket,
            from,
            to,
            hop_limit: headers[TTL_AT],
            tos: headers[TOS_AT],
            total,
            is_checked,
            pseudo: Sum::pseudo_v4(
                addr_at(headers, SRC_AT),
                addr_at(headers, DST_AT),
                protocol,
                0,
            ),
        };
        match protocol {
            Protocol::Tcp => self.predicted_segment(env, &packet, frame),
            _ => self.predicted_datagram(env, &packet, frame),
        }
    }
}

impl Net {
    #[inline]
    fn predict(&self, headers: &Headers) -> Option<u32> {
        let known = self.predictions.get(headers)?;
        let is_current = known.route_epoch == self.route_epoch
            && (known.ports_epoch == self.demux.udp.epoch() || is_tcp(headers));
        if !is_current || self.keeps_headers || !is_same(&known.same, &same_of(headers)) {
            return None;
        }
        let socket = known.socket?;
        debug_assert!(
            is_tcp(headers) || self.socket_of(headers) == Some(socket),
            "Same"
        );
        Some(socket)
    }

    /// A packet with these headers was delivered by the long way. Of a flow that comes for the
    /// second time, where it goes is kept.
    pub(crate) fn learn(&mut self, headers: &Headers) {
        let same = same_of(headers);
        let (route_epoch, ports_epoch) = (self.route_epoch, self.demux.udp.epoch());
        let Some(known) = self.predictions.entry(headers) else {
            return;
        };
        let is_known = known.same == same
            && known.route_epoch == route_epoch
            && (known.ports_epoch == ports_epoch || is_tcp(headers));
        *known = Prediction {
            same,
            socket: None,
            route_epoch,
            ports_epoch,
        };
        if is_known
            && let socket = self.socket_of(headers)
            && let Some(known) = self.predictions.entry(headers)
        {
            known.socket = socket;
        }
    }

    /// The socket that a frame with these headers goes to; `None` if that depends on more.
    fn socket_of(&self, headers: &Headers) -> Option<u32> {
        let (from, to) = ends_of(headers);
        let is_ours = self
            .port
            .is_some_and(|port| headers.starts_with(&port.mac.0))
            && self.is_local_v4(addr_at(headers, DST_AT));
        if half_at(headers, FRAGMENT_AT) & IS_FRAGMENT != 0 || !is_ours || is_dhcp(from, to) {
            return None;
        }
        if is_tcp(headers) {
            let (local, remote) = (to, from);
            return self.demux.connection(&FourTuple { local, remote });
        }
        self.demux.udp.find((to, from), || self.spread(to, from))
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use super::*;

    #[test]
    fn ports_in_a_row_and_every_second_one_have_places_of_their_own() {
        let place = |port: u16| {
            let mut headers = [0; HEADERS_BYTES];
            headers[TRANSPORT_AT..TRANSPORT_AT + 2].copy_from_slice(&port.to_be_bytes());
            place_of(&headers)
        };
        for (first, step) in [(32_768, 1), (40_000, 1), (40_001, 2), (50_000, 2)] {
            let ports = (0..FLOWS as u16).map(|number| first + step * number);
            let places: BTreeSet<usize> = ports.map(place).collect();
            assert_eq!(places.len(), FLOWS, "from {first} by {step}");
        }
    }
}
