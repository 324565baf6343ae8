//! Sockets whose program has given them a filter: which packets they get, and how much of each.
//!
//! The stack does not know what a filter is; it asks the shell ([`Env::filter`]) where a socket
//! says that it has one. As in Linux a filter sees a packet from its transport header on, after
//! the checksum; what it cuts off the end was never sent, but for the header. Of a segment that
//! is cut a FIN goes too, so that what is missing comes again before the end. A connection that
//! nobody has accepted goes by its listener's filter.
//!
//! As long as no socket ever had a filter, headers of IP are not kept for one to see.

use mbuf::Chain;

use crate::addr::SocketId;
use crate::counters::DropReason;
use crate::env::Env;
use crate::options::Options;
use crate::stack::Stack;
use crate::table::Socket;

impl Stack {
    /// Lets the filter of the socket at `index`, if it has one, judge a packet whose IP headers
    /// were `headers`. Says whether it was cut, which leaves at least `least` bytes.
    pub(crate) fn screen<E: Env>(
        &mut self,
        env: &mut E,
        index: u32,
        headers: &[u8],
        packet: &mut Chain,
        least: usize,
    ) -> Result<bool, DropReason> {
        if !self.net.keeps_headers {
            return Ok(false);
        }
        let Some(owner) = self.filter_owner(index) else {
            return Ok(false);
        };
        let (len, kept) = (packet.len(), env.filter(owner, headers, packet));
        if kept == 0 {
            return Err(DropReason::Filtered);
        }
        packet.truncate(kept.max(least));
        Ok(packet.len() < len)
    }

    /// Whose filter the packets of the socket at `index` go by.
    fn filter_owner(&mut self, index: u32) -> Option<SocketId> {
        let (owner, options): (SocketId, &Options) = match self.sockets.at_mut(index)? {
            Socket::Tcp(tcb) => (tcb.filter_owner(), &tcb.options),
            Socket::Listener(listener) => (listener.id, &listener.options),
            Socket::Udp(socket) => (socket.id, &socket.options),
            Socket::Free { .. } | Socket::Frozen(_) => return None,
        };
        options.is_filtered.then_some(owner)
    }
}
