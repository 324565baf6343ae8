//! A segment of a connection that is known by its headers ([`prediction`](crate::input::prediction)).
//!
//! Connections come and go all the time, so nothing is forgotten when one does: the prediction says where
//! the connection was, and its name says whether it is still there.

use mbuf::Chain;
use wire::{TCP_HEADER_BYTES_MAX, TcpFlags, TcpView};

use super::segment::Segment;
use crate::addr::FourTuple;
use crate::counters::{Count, DropReason};
use crate::env::Env;
use crate::input::is_marked;
use crate::input::prediction::{IP_AT, Predicted, TRANSPORT_AT};
use crate::stack::Stack;

impl Stack {
    /// Takes it, unless its header needs a longer look or the connection is gone.
    #[inline]
    pub(crate) fn predicted_segment<E: Env>(
        &mut self,
        env: &mut E,
        packet: &Predicted,
        frame: &mut Chain,
    ) -> Option<Result<(), DropReason>> {
        let end = IP_AT + packet.total;
        // All of the header lies in one part.
        let headers = end.min(TRANSPORT_AT + TCP_HEADER_BYTES_MAX);
        let bytes = frame.front()?.bytes().get(TRANSPORT_AT..headers)?;
        let header = TcpView::parse(bytes).ok()?;
        if header.flags().has(TcpFlags::SYN) || self.net.limits_hops {
            return None;
        }
        if !self.is_connection(packet) {
            return None;
        }
        let header_len = header.header_len();
        let mut segment = Segment::new(&header, is_marked(packet.tos));
        self.net.count(Count::SegmentsIn);
        frame.truncate(end);
        frame.advance(TRANSPORT_AT);
        if !packet.verify(frame) {
            return Some(Err(DropReason::BadChecksum));
        }
        segment.payload = core::mem::take(frame);
        segment.strip(header_len, false);
        self.connection_input(env, packet.socket, segment);
        Some(Ok(()))
    }

    /// Whether the packet's connection is where it is said to be.
    #[inline]
    fn is_connection(&mut self, packet: &Predicted) -> bool {
        let tuple = FourTuple {
            local: packet.to,
            remote: packet.from,
        };
        let found = self.sockets.tcp_at(packet.socket);
        let is_there = found.is_some_and(|tcb| tcb.is_in_demux && tcb.tuple == tuple);
        debug_assert!(
            !is_there || self.net.demux.connection(&tuple) == Some(packet.socket),
            "Same"
        );
        is_there
    }
}
