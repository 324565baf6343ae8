//! A payload becomes a packet: the header, and a checksum or the wish for one.

use mbuf::{Chain, ChecksumOffload};
use wire::{Protocol, Sum, UDP_HEADER_BYTES, UdpRepr, UdpView};

use super::Destination;
use crate::context::Context;
use crate::counters::Count;
use crate::counters6::Snmp6;
use crate::env::Env;
use crate::ip::IpHeader;
use crate::options::{Options, PathDiscovery};
use crate::output::Offload;

/// What a packet takes from its socket's options.
#[derive(Clone, Copy)]
pub(crate) struct PacketOptions {
    pub path_discovery: PathDiscovery,
    /// As in [`Options`].
    pub packet_bytes_v6: u16,
    /// As in [`Options`].
    pub is_whole_v6: bool,
    pub no_checksum: bool,
}

impl From<&Options> for PacketOptions {
    fn from(options: &Options) -> Self {
        Self {
            path_discovery: options.path_discovery,
            packet_bytes_v6: options.packet_bytes_v6,
            is_whole_v6: options.is_whole_v6,
            no_checksum: options.no_checksum,
        }
    }
}

impl<E: Env> Context<'_, E> {
    /// Lets a group's members on this host hear what the host sends to it.
    pub(super) fn loop_datagram(&mut self, header: IpHeader, ports: (u16, u16), payload: &Chain) {
        if !self.net.groups.contains(header.addresses.dst()) {
            return;
        }
        let udp = UdpRepr {
            src_port: ports.0,
            dst_port: ports.1,
            payload_len: payload.len() as u16,
        };
        let mut copy = payload.share(0, payload.len());
        if let Some(space) = self.make_room(&mut copy, UDP_HEADER_BYTES) {
            udp.emit(space, 0);
            let len = copy.len();
            if let Some(space) = self.make_room(&mut copy, header.len()) {
                header.emit(space, len);
                self.net.push_loopback(copy);
            }
        }
    }

    /// Puts headers in front of a payload and sends it, by the rules of a socket with `options`,
    /// to a destination that was looked up.
    pub(crate) fn send_datagram(
        &mut self,
        header: IpHeader,
        (src_port, dst_port): (u16, u16),
        payload: Chain,
        options: PacketOptions,
        destination: &mut Destination,
    ) {
        let udp = UdpRepr {
            src_port,
            dst_port,
            payload_len: payload.len() as u16,
        };
        let dst = header.addresses.dst();
        let total = payload.len() + UDP_HEADER_BYTES;
        let pseudo = header.addresses.pseudo(Protocol::Udp, total as u32);
        // A device sums one frame, so it cannot help with what becomes several.
        let mtu = destination.mtu(options);
        let is_one_frame = header.len() + total <= usize::from(mtu);
        let is_bare = options.no_checksum && dst.is_ipv4();
        let can_sum = self.net.port.is_some_and(|port| port.offloads.checksum);
        let mut offload = Offload::default();
        // To ourselves it is left out, unless pieces are put together: these are checked.
        let sum = if is_bare || destination.is_local() && is_one_frame {
            0
        } else if can_sum && is_one_frame && !dst.is_multicast() {
            offload.checksum = Some(ChecksumOffload {
                start: header.len() as u16,
                offset: UdpView::CHECKSUM_OFFSET,
            });
            pseudo.partial()
        } else {
            checksum_of(&udp, &payload, pseudo)
        };
        let mut packet = payload;
        let Some(space) = self.make_room(&mut packet, UDP_HEADER_BYTES) else {
            return;
        };
        udp.emit(space, sum);
        self.net.count(Count::UdpOut);
        if dst.is_ipv6() {
            self.net.count6(Snmp6::UdpOutDatagrams);
        }
        let route = destination.route_from(header.addresses.src());
        self.send_ip_by(header, packet, offload, mtu, route);
    }
}

fn checksum_of(udp: &UdpRepr, payload: &Chain, pseudo: Sum) -> u16 {
    let mut bytes = [0; UDP_HEADER_BYTES];
    udp.emit(&mut bytes, 0);
    let sum = payload.slices().fold(pseudo.bytes(&bytes), Sum::bytes);
    match sum.checksum() {
        // Zero means "none"; its other representation means zero.
        0 => 0xffff,
        sum => sum,
    }
}
