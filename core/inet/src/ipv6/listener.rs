//! Multicast listener discovery (RFC 3810): routers ask, we report.

use core::net::{IpAddr, Ipv6Addr};

use mbuf::Chain;
use wire::{
    IPV6_HEADER_BYTES, Ipv6Repr, MLD_HOP_BY_HOP, MLD_ROUTERS, MacAddr, MldQuery, MldReport,
    Protocol, RecordKind, next_header,
};

use super::is_link_local;
use crate::addr::Addresses;
use crate::context::Context;
use crate::counters::DropReason;
use crate::env::Env;
use crate::input::IpInfo;
use crate::ip::IpHeader;
use crate::multicast::Query;
use crate::net::Net;
use crate::output::Offload;

/// All routers of the link, who hear of leaving in version 1.
const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
/// A report of one group.
const REPORT_BYTES_MAX: usize = 28;

/// A router asks (RFC 3810 5.1.14 and 6.2 say which ones are believed).
pub(super) fn on_query<E: Env>(
    net: &mut Net,
    env: &mut E,
    info: &IpInfo,
    query: &MldQuery,
) -> Result<(), DropReason> {
    let is_from_link = matches!(info.addresses, Addresses::V6 { src, .. } if is_link_local(src));
    if !is_from_link || info.hop_limit != 1 || info.was_cut || !info.has_router_alert {
        return Err(DropReason::BadMembership);
    }
    let query = Query {
        group: query.group.map(IpAddr::V6),
        is_v6: true,
        is_old_version: query.is_v1,
        max_delay: query.max_delay,
    };
    let now = env.now();
    net.groups.on_query(query, now, || env.random());
    Ok(())
}

impl<E: Env> Context<'_, E> {
    /// Tells routers of a group.
    pub fn send_mld(&mut self, group: Ipv6Addr, kind: RecordKind, is_old: bool) {
        let groups = [group];
        let (report, dst) = match (is_old, kind) {
            (false, kind) => (MldReport::V2(kind, &groups), MLD_ROUTERS),
            (true, RecordKind::ToInclude) => (MldReport::DoneV1(group), ALL_ROUTERS),
            (true, _) => (MldReport::V1(group), group),
        };
        let (Some(v6), Some(_)) = (&self.net.v6, self.net.port) else {
            return;
        };
        // RFC 3590: before we have an address, the report comes from none.
        let src = v6.link_local().unwrap_or(Ipv6Addr::UNSPECIFIED);
        let mut bytes = [0; REPORT_BYTES_MAX];
        let message = &mut bytes[..report.len().min(REPORT_BYTES_MAX)];
        report.emit(message);
        let header = IpHeader {
            addresses: Addresses::V6 { src, dst },
            protocol: Protocol::Other(next_header::ICMPV6),
            hop_limit: 1,
            tos: 0,
        };
        let Some(mut packet) = self.icmpv6_message(&header, message) else {
            return;
        };
        if self.put_headers(&mut packet, src, dst).is_some() {
            let station = MacAddr::of_group_v6(dst);
            let link = self.net.link_header(station, IpAddr::V6(dst));
            self.count_out(IpAddr::V6(dst));
            self.send_frame(packet, &link, Offload::default());
        }
    }

    /// An IPv6 header and options that make routers look.
    fn put_headers(&mut self, packet: &mut Chain, src: Ipv6Addr, dst: Ipv6Addr) -> Option<()> {
        let payload_len = packet.len() + MLD_HOP_BY_HOP.len();
        let space = self.make_room(packet, IPV6_HEADER_BYTES + MLD_HOP_BY_HOP.len())?;
        let (fixed, options) = space.split_at_mut(IPV6_HEADER_BYTES);
        options.copy_from_slice(&MLD_HOP_BY_HOP);
        let repr = Ipv6Repr {
            src,
            dst,
            next_header: next_header::HOP_BY_HOP,
            payload_len: payload_len as u16,
            hop_limit: 1,
            traffic_class: 0,
            flow_label: 0,
        };
        repr.emit(fixed);
        Some(())
    }
}
