//! Sockets join groups, routers ask for them, and are told (RFC 3376 for IPv4; IPv6's
//! messages are in `ipv6/listener`).

use core::net::{IpAddr, Ipv4Addr};

use base::Instant;
use mbuf::Chain;
use wire::{
    ALL_ROUTERS_V4, IGMP_ROUTERS, IPV4_ROUTER_ALERT_BYTES, IgmpReport, IgmpView, Ipv4Repr, MacAddr,
    Protocol, RecordKind,
};

use crate::addr::SocketId;
use crate::context::Context;
use crate::counters::{Count, DropReason};
use crate::env::Env;
use crate::error::Error;
use crate::input::IpInfo;
use crate::multicast::{Query, is_reported};
use crate::output::Offload;
use crate::stack::Stack;

/// Groups of one socket (Linux: `igmp_max_memberships`).
const MEMBERSHIPS_MAX: usize = 20;
/// Queries with their sources; more would be cut by any link that we are on.
const MESSAGE_BYTES_MAX: usize = 1500;

impl Stack {
    /// A datagram socket wants the packets of a group.
    ///
    /// Errors: `AddressInUse` if it is a member, `InvalidState` if that is no group,
    /// `NoBuffers` at a limit.
    pub fn join_group<E: Env>(
        &mut self,
        env: &mut E,
        id: SocketId,
        group: IpAddr,
    ) -> Result<(), Error> {
        let socket = self.sockets.udp_mut(id)?;
        if !group.is_multicast() {
            return Err(Error::InvalidState);
        }
        if socket.groups.contains(&group) {
            return Err(Error::AddressInUse);
        }
        if socket.groups.len() >= MEMBERSHIPS_MAX || socket.groups.try_reserve(1).is_err() {
            return Err(Error::NoBuffers);
        }
        self.context(env).join(group)?;
        self.sockets.udp_mut(id)?.groups.push(group);
        Ok(())
    }

    /// A datagram socket does not want them any more.
    ///
    /// Errors: `AddressNotAvailable` if it is no member.
    pub fn leave_group<E: Env>(
        &mut self,
        env: &mut E,
        id: SocketId,
        group: IpAddr,
    ) -> Result<(), Error> {
        let groups = &mut self.sockets.udp_mut(id)?.groups;
        let at = groups.iter().position(|known| *known == group);
        groups.swap_remove(at.ok_or(Error::AddressNotAvailable)?);
        self.context(env).leave(group);
        Ok(())
    }

    /// Groups that we listen to.
    pub fn groups(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.net.groups.iter()
    }

    /// The stations of those that [`Env::group`] was told of and is not told to leave. When a stack
    /// ends, its shell leaves them.
    pub fn group_stations(&self) -> impl Iterator<Item = MacAddr> + '_ {
        let from_outside = self.groups().filter(|group| is_reported(*group));
        from_outside.map(MacAddr::of_group)
    }

    pub(crate) fn igmp_input<E: Env>(
        &mut self,
        env: &mut E,
        info: &IpInfo,
        packet: &Chain,
    ) -> Result<(), DropReason> {
        let mut bytes = [0; MESSAGE_BYTES_MAX];
        let len = packet.copy_to_slice(0, &mut bytes);
        let message = IgmpView::parse(&bytes[..len])?;
        // RFC 3376 9.1: queries come from the link itself.
        if info.hop_limit != 1 || packet.len() > MESSAGE_BYTES_MAX {
            return Err(DropReason::BadMembership);
        }
        let IgmpView::Query {
            group,
            max_delay,
            is_v2,
        } = message
        else {
            return Ok(());
        };
        let query = Query {
            group: group.map(IpAddr::V4),
            is_v6: false,
            is_old_version: is_v2,
            max_delay,
        };
        let now = env.now();
        self.net.change_upkeep();
        self.net.groups.on_query(query, now, || env.random());
        Ok(())
    }
}

impl<E: Env> Context<'_, E> {
    /// One more member of `group`; the first makes it known.
    pub fn join(&mut self, group: IpAddr) -> Result<(), Error> {
        let random = self.env.random();
        self.net.change_upkeep();
        if self.net.groups.join(group, self.now, random)? {
            self.env.group(MacAddr::of_group(group), true);
            self.report(group, RecordKind::ToExclude);
        }
        Ok(())
    }

    /// One member of `group` less; the last one's leaving is made known.
    pub fn leave(&mut self, group: IpAddr) {
        self.net.change_upkeep();
        if self.net.groups.leave(group) {
            self.env.group(MacAddr::of_group(group), false);
            self.report(group, RecordKind::ToInclude);
        }
    }

    /// Sends reports that are due.
    pub fn expire_groups(&mut self) {
        let now = self.now;
        let is_due = |due: &Instant| *due <= now;
        while self.net.groups.next_deadline().as_ref().is_some_and(is_due) {
            let random = self.env.random();
            if let Some(group) = self.net.groups.pop_due(self.now, random) {
                self.report(group, RecordKind::IsExclude);
            }
        }
    }

    fn report(&mut self, group: IpAddr, kind: RecordKind) {
        let is_old = self.net.groups.is_old_version(group, self.now);
        self.net.count(Count::MembershipReports);
        match group {
            IpAddr::V4(group) => self.send_igmp(group, kind, is_old),
            IpAddr::V6(group) => self.send_mld(group, kind, is_old),
        }
    }

    fn send_igmp(&mut self, group: Ipv4Addr, kind: RecordKind, is_old: bool) {
        let groups = [group];
        let (report, dst) = match (is_old, kind) {
            (false, kind) => (IgmpReport::V3(kind, &groups), IGMP_ROUTERS),
            (true, RecordKind::ToInclude) => (IgmpReport::LeaveV2(group), ALL_ROUTERS_V4),
            (true, _) => (IgmpReport::V2(group), group),
        };
        let Some(own) = self.net.address else { return };
        let Some(mut buffer) = self.buffer() else {
            return self.net.drop(DropReason::NoBuffer);
        };
        let len = report.len();
        if let Some(space) = buffer.extend(IPV4_ROUTER_ALERT_BYTES + len) {
            let (header, message) = space.split_at_mut(IPV4_ROUTER_ALERT_BYTES);
            report.emit(message);
            Ipv4Repr {
                src: own.addr(),
                dst,
                protocol: Protocol::Igmp,
                payload_len: len as u16,
                ttl: 1,
                // RFC 3376 4: internetwork control.
                tos: 0xc0,
            }
            .emit_with_router_alert(header);
        }
        if self.net.port.is_none() {
            return;
        }
        let station = MacAddr::of_group_v4(dst);
        let link = self.net.link_header(station, IpAddr::V4(dst));
        self.send_frame(Chain::from(buffer), &link, Offload::default());
    }
}
