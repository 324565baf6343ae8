//! A datagram of a flow that is known by its headers ([`prediction`](crate::input::prediction)).

use mbuf::Chain;
use wire::{IPV4_HEADER_BYTES, UDP_HEADER_BYTES, UdpView};

use super::Datagram;
use crate::counters::{Count, DropReason};
use crate::env::Env;
use crate::input::prediction::{IP_AT, Predicted, TRANSPORT_AT, half_at};
use crate::stack::Stack;
use crate::table::Socket;

const LEN_AT: usize = TRANSPORT_AT + 4;
const SUM_AT: usize = TRANSPORT_AT + UdpView::CHECKSUM_OFFSET as usize;

impl Stack {
    /// Takes it, unless its header needs a longer look.
    #[inline]
    pub(crate) fn predicted_datagram<E: Env>(
        &mut self,
        env: &mut E,
        packet: &Predicted,
        frame: &mut Chain,
    ) -> Option<Result<(), DropReason>> {
        let headers = frame.front()?.bytes().first_chunk()?;
        let len = usize::from(half_at(headers, LEN_AT));
        let has_sum = half_at(headers, SUM_AT) != 0;
        if packet.total != IPV4_HEADER_BYTES + len || len < UDP_HEADER_BYTES || !has_sum {
            return None;
        }
        frame.truncate(IP_AT + packet.total);
        frame.advance(TRANSPORT_AT);
        if !packet.verify(frame) {
            return Some(Err(DropReason::BadChecksum));
        }
        frame.advance(UDP_HEADER_BYTES);
        if self.is_taken(env, packet, frame) {
            return Some(Ok(()));
        }
        let datagram = Datagram {
            from: packet.from,
            to: packet.to,
            hop_limit: packet.hop_limit,
            tos: packet.tos,
            payload: core::mem::take(frame),
            segment_bytes: 0,
            drops: 0,
        };
        Some(self.queue_datagram(env, packet.socket, datagram))
    }

    /// Whether who runs the stack takes a payload as it comes.
    #[inline]
    fn is_taken<E: Env>(&mut self, env: &mut E, packet: &Predicted, payload: &mut Chain) -> bool {
        let Some(Socket::Udp(socket)) = self.sockets.at_mut(packet.socket) else {
            return false;
        };
        let is_first = socket.front().is_none() && !self.net.is_scarce;
        let is_taken = is_first && env.take_datagram(socket.id, packet.from, payload);
        if is_taken {
            self.net.count(Count::UdpIn);
        }
        is_taken
    }
}
