//! The headers of a socket's last datagrams, kept for those that follow.
//!
//! Datagrams from one socket to one peer differ in their lengths and sums only. So once two in a row
//! went to the same peer, their headers are kept as bytes, as Linux keeps the link's (`hh_cache`), and
//! the next ones are sent by a copy of them: no look-up, no checks, one header in the place of three.
//!
//! Invariants:
//! - **Same**: a template says what [`Plan`] and [`Destination`] would say. They depend on the socket's names,
//!   options and shut end, whose changes drop its template; on what changes
//!   [`Net::route_epoch`](crate::net::Net); and on the neighbour, whose station is known until a time. Debug
//!   builds plan each datagram anyway and compare.
//! - **One frame**: what would be cut, looped back or is somebody else's to answer goes the long way.
//!
//! Not here: IPv6, groups, sockets without sums, messages with options of their own.

use base::Instant;
use mbuf::{Chain, ChecksumOffload, TxFrame};
use wire::{
    ETHERNET_HEADER_BYTES, IPV4_HEADER_BYTES, Protocol, Sum, UDP_HEADER_BYTES, UdpRepr, UdpView,
};

use super::send::Plan;
use super::{Destination, SendOptions, UdpSocket};
use crate::addr::Endpoint;
use crate::context::Context;
use crate::counters::Count;
use crate::env::Env;
use crate::net::Net;

const UDP_AT: usize = ETHERNET_HEADER_BYTES + IPV4_HEADER_BYTES;
const HEADERS_BYTES: usize = UDP_AT + UDP_HEADER_BYTES;
const IP_LEN: usize = ETHERNET_HEADER_BYTES + 2;
const IP_SUM: usize = ETHERNET_HEADER_BYTES + 10;
const UDP_LEN: usize = UDP_AT + 4;
const UDP_SUM: usize = UDP_AT + UdpView::CHECKSUM_OFFSET as usize;

/// See the module.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Template {
    to: Endpoint,
    epoch: u32,
    valid_until: Instant,
    /// Without lengths and sums.
    headers: [u8; HEADERS_BYTES],
    /// Bytes that one packet takes.
    payload_max: usize,
    /// Of the IP header, without its length.
    ip_sum: Sum,
    /// Of the pseudo header without its length, and of the ports if no device adds them.
    udp_sum: Sum,
    is_summed_by_device: bool,
}

impl Template {
    /// The headers by which a plan is carried out; `None` if that takes more.
    pub fn of(plan: &Plan, to: Endpoint, known: &mut Destination, net: &Net) -> Option<Self> {
        let addresses = plan.header.addresses;
        let is_plain = plan.segment_len == 0 && !plan.options.no_checksum;
        let is_station = to.addr.is_ipv4()
            && !to.addr.is_multicast()
            && !known.is_local()
            && !known.is_broadcast();
        if !is_plain || !is_station {
            return None;
        }
        let mtu = known.mtu(plan.options);
        let payload_max = usize::from(mtu).checked_sub(IPV4_HEADER_BYTES + UDP_HEADER_BYTES)?;
        let route = known.route_from(addresses.src());
        let (station, valid_until) = route.station(net.route_epoch)?;
        let mut headers = [0; HEADERS_BYTES];
        headers[..ETHERNET_HEADER_BYTES].copy_from_slice(&station.0);
        plan.header.emit(&mut headers[ETHERNET_HEADER_BYTES..], 0);
        let udp = UdpRepr {
            src_port: plan.ports.0,
            dst_port: plan.ports.1,
            payload_len: 0,
        };
        udp.emit(&mut headers[UDP_AT..], 0);
        for at in [IP_LEN, IP_SUM, UDP_LEN] {
            put(&mut headers, at, 0);
        }
        let is_summed_by_device = net.port.is_some_and(|port| port.offloads.checksum);
        let pseudo = addresses.pseudo(Protocol::Udp, 0);
        Some(Self {
            to,
            epoch: net.route_epoch,
            valid_until,
            ip_sum: Sum::new().bytes(&headers[ETHERNET_HEADER_BYTES..UDP_AT]),
            udp_sum: match is_summed_by_device {
                true => pseudo,
                false => pseudo.bytes(&headers[UDP_AT..]),
            },
            headers,
            payload_max,
            is_summed_by_device,
        })
    }

    /// Whose messages it is for.
    pub fn to(&self) -> Endpoint {
        self.to
    }

    /// Whether it holds for a message.
    #[inline]
    fn holds(&self, to: Endpoint, len: usize, net: &Net, now: Instant) -> bool {
        let is_current = self.epoch == net.route_epoch && now < self.valid_until;
        is_current && self.to == to && len <= self.payload_max && len != 0
    }

    /// Writes the headers in front of `payload`, which `space` is.
    #[inline]
    fn emit(&self, space: &mut [u8; HEADERS_BYTES], payload_len: usize, udp_sum: u16) {
        let len = (payload_len + UDP_HEADER_BYTES) as u16;
        let total = len + IPV4_HEADER_BYTES as u16;
        *space = self.headers;
        put(space, IP_LEN, total);
        put(space, IP_SUM, self.ip_sum.word(total).checksum());
        put(space, UDP_LEN, len);
        put(space, UDP_SUM, udp_sum);
    }

    /// What stands in the field of the sum.
    #[inline]
    fn sum_with(&self, payload: &Chain) -> u16 {
        let len = (payload.len() + UDP_HEADER_BYTES) as u16;
        let sum = self.udp_sum.word(len);
        if self.is_summed_by_device {
            return sum.partial();
        }
        match payload.slices().fold(sum.word(len), Sum::bytes).checksum() {
            // Zero means "none"; its other representation means zero.
            0 => 0xffff,
            sum => sum,
        }
    }
}

#[inline]
fn put(headers: &mut [u8; HEADERS_BYTES], at: usize, value: u16) {
    if let Some(field) = headers[at..].first_chunk_mut() {
        *field = value.to_be_bytes();
    }
}

impl UdpSocket {
    /// The template of a message with nothing of its own.
    #[inline]
    pub(super) fn template_for(
        &self,
        send: &SendOptions,
        len: usize,
        net: &Net,
        now: Instant,
    ) -> Option<&Template> {
        let template = self.template.as_ref()?;
        let to = send.to.or(self.peer)?;
        let segment_bytes = send.segment_bytes.unwrap_or(self.options.segment_bytes);
        let is_plain = send.has_nothing_of_its_own() && segment_bytes == 0;
        (is_plain && template.holds(to, len, net, now)).then_some(template)
    }
}

impl<E: Env> Context<'_, E> {
    /// Sends a payload behind headers that hold for it. It comes back where they have no room: it must go
    /// the long way.
    #[inline]
    pub(super) fn send_by(&mut self, template: &Template, mut payload: Chain) -> Option<Chain> {
        let (len, sum) = (payload.len(), template.sum_with(&payload));
        let Some(space) = payload.prepend(HEADERS_BYTES) else {
            return Some(payload);
        };
        if let Some(space) = space.first_chunk_mut() {
            template.emit(space, len, sum);
        }
        self.net.count(Count::UdpOut);
        self.net.count(Count::FramesOut);
        self.net.count_bytes(Count::BytesOut, &payload);
        let checksum = ChecksumOffload {
            start: UDP_AT as u16,
            offset: UdpView::CHECKSUM_OFFSET,
        };
        self.env.transmit(TxFrame {
            chain: payload,
            checksum: template.is_summed_by_device.then_some(checksum),
            ..TxFrame::default()
        });
        None
    }
}
