//! A received datagram, or the news that one was lost, finds its socket.

use alloc::vec::Vec;

use mbuf::Chain;
use wire::{Protocol, UDP_HEADER_BYTES, UdpView};

use super::Datagram;
use crate::addr::Endpoint;
use crate::counters::{Count, DropReason};
use crate::counters6::Snmp6;
use crate::env::{Env, Events};
use crate::input::IpInfo;
use crate::stack::Stack;
use crate::table::Socket;

impl Stack {
    /// Takes a datagram that came behind `headers`. Of one that no socket wants, `packet` is left
    /// whole.
    pub(crate) fn udp_input<E: Env>(
        &mut self,
        env: &mut E,
        info: &IpInfo,
        headers: &[u8],
        packet: &mut Chain,
    ) -> Result<(), DropReason> {
        let result = self.try_udp_input(env, info, headers, packet);
        if info.dst().is_ipv6() {
            self.net.count6(match result {
                Ok(()) => Snmp6::UdpInDatagrams,
                Err(DropReason::NoSocket) => Snmp6::UdpNoPorts,
                Err(_) => Snmp6::UdpInErrors,
            });
        }
        result
    }

    fn try_udp_input<E: Env>(
        &mut self,
        env: &mut E,
        info: &IpInfo,
        headers: &[u8],
        packet: &mut Chain,
    ) -> Result<(), DropReason> {
        let bytes = packet.front().map_or(&[][..], |front| front.bytes());
        let header = UdpView::parse(bytes, packet.len())?;
        let from = Endpoint::new(info.src(), header.src_port());
        let to = Endpoint::new(info.dst(), header.dst_port());
        let (len, has_checksum) = (header.len(), header.has_checksum());
        packet.truncate(len);
        // RFC 8200 8.1: over IPv6 a checksum is not left out.
        let is_bare = !has_checksum && to.addr.is_ipv6() && !info.is_checked;
        if is_bare || has_checksum && !info.verify(Protocol::Udp, packet) {
            return Err(DropReason::BadChecksum);
        }
        if self.dhcp_input(env, from, to, packet) {
            return Ok(());
        }
        if to.addr.is_multicast() {
            return self.multicast_input(env, info, headers, (from, to), packet);
        }
        let net = &self.net;
        let found = net.demux.udp.find((to, from), || net.spread(to, from));
        let index = found.ok_or(DropReason::NoSocket)?;
        let payload = self.payload_for(env, index, headers, core::mem::take(packet))?;
        let datagram = Datagram::new(info, (from, to), payload);
        self.queue_datagram(env, index, datagram)
    }

    /// What the socket at `index` gets of a datagram that starts with its header.
    fn payload_for<E: Env>(
        &mut self,
        env: &mut E,
        index: u32,
        headers: &[u8],
        mut packet: Chain,
    ) -> Result<Chain, DropReason> {
        self.screen(env, index, headers, &mut packet, UDP_HEADER_BYTES)?;
        packet.advance(UDP_HEADER_BYTES);
        Ok(packet)
    }

    /// Each socket that has joined the group gets a share.
    fn multicast_input<E: Env>(
        &mut self,
        env: &mut E,
        info: &IpInfo,
        headers: &[u8],
        (from, to): (Endpoint, Endpoint),
        packet: &Chain,
    ) -> Result<(), DropReason> {
        let members: Vec<u32> = self.net.demux.udp.find_all(to, from).collect();
        let mut result = Err(DropReason::NoSocket);
        for index in members {
            let is_member = matches!(self.sockets.at_mut(index),
                Some(Socket::Udp(socket)) if socket.groups.contains(&to.addr));
            if is_member {
                let share = packet.share(0, packet.len());
                let payload = self.payload_for(env, index, headers, share);
                let queued = payload.and_then(|payload| {
                    let datagram = Datagram::new(info, (from, to), payload);
                    self.queue_datagram(env, index, datagram)
                });
                result = result.or(queued);
            }
        }
        result
    }

    /// Puts a datagram into the queue of the socket at `index`.
    #[inline]
    pub(super) fn queue_datagram<E: Env>(
        &mut self,
        env: &mut E,
        index: u32,
        datagram: Datagram,
    ) -> Result<(), DropReason> {
        let Some(Socket::Udp(socket)) = self.sockets.at_mut(index) else {
            return Err(DropReason::NoSocket);
        };
        self.net.stats.counts.count(Count::UdpIn);
        socket.push(&mut self.net, datagram)?;
        env.wake(socket.id, Events::READABLE);
        Ok(())
    }
}
