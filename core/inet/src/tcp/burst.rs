//! How much leaves in one frame.
//!
//! A device that cuts segments (TSO) gets many at a time, which saves the stack and its ring a
//! visit for each. Over loopback nothing is cut, because a segment there may be as long as a packet.

use core::net::IpAddr;

use super::tcb::Tcb;
use crate::context::Context;
use crate::env::Env;
use crate::output::NextHop;

/// Bytes of payload in one frame that a device cuts: an IPv4 packet less its headers, which
/// an IPv6 packet has room for too.
const BURST_MAX: u32 = 65535 - 20 - 60;

impl Tcb {
    /// Bytes of full segments that one frame may carry.
    pub(super) fn burst_max<E: Env>(&mut self, cx: &mut Context<'_, E>) -> u32 {
        let mss = u32::from(self.sender.mss);
        // A device would copy the report of a reduction into each segment.
        if self.can_cut(cx) && !self.ecn.is_reduced {
            (BURST_MAX.min(self.pacing_quantum()) / mss).max(1) * mss
        } else {
            mss
        }
    }

    /// Whether a device would cut segments.
    fn can_cut<E: Env>(&mut self, cx: &mut Context<'_, E>) -> bool {
        let offloads = cx.net.port.map(|port| port.offloads).unwrap_or_default();
        let is_able = match self.tuple.remote.addr {
            IpAddr::V4(_) => offloads.segment_v4,
            IpAddr::V6(_) => offloads.segment_v6,
        };
        is_able && cx.next_hop(&self.tuple, &mut self.route) != Ok(&NextHop::Loopback)
    }
}
