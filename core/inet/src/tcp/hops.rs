//! Segments from too far away (RFC 5082; Linux: IP_MINTTL, IPV6_MINHOPCOUNT).
//!
//! Who is to be a neighbour sends with 255 hops, and no packet gains any, so that one with fewer
//! left cannot be the neighbour's. A socket says how many it asks for, and so do the connections
//! that it accepts. Stacks without such a socket do not look.

use crate::addr::FourTuple;
use crate::input::IpInfo;
use crate::options::Options;
use crate::stack::Stack;
use crate::table::Socket;

impl Options {
    /// Hops that a segment must have left.
    fn min_hops(&self, is_v6: bool) -> u8 {
        match is_v6 {
            true => self.min_hop_count,
            false => self.min_ttl,
        }
    }
}

impl Stack {
    /// Whether the socket of a segment wants none with so few hops left.
    #[cold]
    pub(super) fn is_too_far(&mut self, tuple: &FourTuple, info: &IpInfo) -> bool {
        let connection = self.net.demux.connection(tuple);
        let index = connection.or_else(|| self.listener_for(tuple));
        let options = match index.and_then(|index| self.sockets.at_mut(index)) {
            Some(Socket::Tcp(tcb)) => &tcb.options,
            Some(Socket::Listener(listener)) => &listener.options,
            _ => return false,
        };
        info.hop_limit < options.min_hops(info.dst().is_ipv6())
    }
}
