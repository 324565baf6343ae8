//! A value becomes a connection again (`snapshot` has the theory).
//!
//! Refused is what contradicts itself or names ends that cannot be: a state in which nothing can
//! go on, ends of two families or that are not ours and one peer's, shifts that RFC 7323 forbids,
//! a FIN in a state that has none in flight, more bytes than buffers hold. Cut to its limits is
//! what is only large: windows to what their fields can say, our offer to what buffers hold,
//! segments to what the path takes. Any sequence number is as good as another.
//!
//! What was in flight counts as lost, because its acknowledgements may have come meanwhile and
//! found nobody: it leaves again, as far as a first window goes, and the first answer says how
//! much of it was needless. A probe asks for the peer's window, which may have changed as well.

use mbuf::Chain;
use wire::Seq;

use super::acknowledge::AckDue;
use super::export::TIMESTAMPS_BYTES;
use super::info::State;
use super::recovery::Phase;
use super::scoreboard::Sent;
use super::snapshot::TcpSnapshot;
use super::tcb::{Clocks, Fin, MSS_MIN, Tcb};
use crate::context::Context;
use crate::env::Env;
use crate::error::Error;
use crate::net::Net;

/// RFC 7323 2.3.
pub(super) const SCALE_MAX: u8 = 14;

impl TcpSnapshot {
    /// Whether a connection can go on with it in this stack.
    ///
    /// Errors: `AddressNotAvailable` for ends that cannot be, `NoBuffers` for too many bytes,
    /// `InvalidState` for all else.
    pub(super) fn check(&self, net: &Net) -> Result<(), Error> {
        self.check_ends(net)?;
        let (sending, receiving) = (&self.sending, &self.receiving);
        let scales = [sending.scale, receiving.scale];
        let is_fin_odd = sending.is_fin_sent
            && (!self.state.may_have_fin_in_flight() || !sending.unsent.is_empty());
        // An acknowledged FIN leaves nothing to send.
        let is_rest_odd = self.state == State::FinWait2 && !sending.is_empty();
        if !self.state.is_portable()
            || scales.into_iter().any(|scale| scale > SCALE_MAX)
            || is_fin_odd
            || is_rest_odd
        {
            return Err(Error::InvalidState);
        }
        let (config, options) = (&net.config, &self.options);
        let sending_max = options.send_buffer.max(config.send_buffer_max);
        let receiving_max = options.recv_buffer.max(config.recv_buffer_max);
        let is_small = sending.len() <= sending_max as usize
            && receiving.unread.len() <= receiving_max as usize;
        is_small.then_some(()).ok_or(Error::NoBuffers)
    }

    fn check_ends(&self, net: &Net) -> Result<(), Error> {
        let (local, remote) = (self.local, self.remote);
        let is_pair =
            local.addr.is_ipv4() == remote.addr.is_ipv4() && local.port != 0 && remote.port != 0;
        let is_possible = is_pair && net.is_local(local.addr) && net.is_host(remote.addr);
        is_possible.then_some(()).ok_or(Error::AddressNotAvailable)
    }
}

impl Tcb {
    /// Takes a checked snapshot over, and sends nothing yet.
    ///
    /// Errors: `NoBuffers`.
    pub(super) fn restore<E: Env>(
        &mut self,
        cx: &mut Context<'_, E>,
        from: &TcpSnapshot,
    ) -> Result<(), Error> {
        self.state = from.state;
        self.options = from.options;
        self.restore_clocks(cx, from);
        self.restore_receiver(cx, from)?;
        self.restore_sender(cx, from)?;
        self.regrow(cx.net);
        self.is_sack_ok = from.has_sack;
        self.ecn.is_on = from.has_ecn;
        let (smoothed, variation) = from.rtt_micros;
        self.rtt.restore(smoothed, variation);
        self.timers.progress_at = cx.now;
        self.timers.last_sent = cx.now;
        self.begin_congestion();
        Ok(())
    }

    fn restore_clocks<E: Env>(&mut self, cx: &Context<'_, E>, from: &TcpSnapshot) {
        let Some(clocks) = from.clocks else { return };
        self.clock_offset = clocks.own.wrapping_sub(cx.now.as_millis() as u32);
        self.clocks = Some(Clocks {
            recent: clocks.recent,
            recent_at: cx.now,
        });
    }

    fn restore_receiver<E: Env>(
        &mut self,
        cx: &mut Context<'_, E>,
        from: &TcpSnapshot,
    ) -> Result<(), Error> {
        let most = self.options.recv_buffer.max(cx.net.config.recv_buffer_max);
        let saved = &from.receiving;
        let receiver = &mut self.receiver;
        receiver.nxt = Seq(saved.nxt);
        receiver.acked = receiver.nxt;
        receiver.scale = saved.scale;
        let sayable = u32::from(u16::MAX) << saved.scale;
        receiver.edge = receiver.nxt + saved.window.min(sayable).min(most);
        receiver.queue = cx.chain_of(&saved.unread)?;
        receiver.is_shut = saved.is_shut;
        receiver.is_finished = !self.state.is_receiving();
        receiver.last_arrival = cx.now;
        Ok(())
    }

    fn restore_sender<E: Env>(
        &mut self,
        cx: &mut Context<'_, E>,
        from: &TcpSnapshot,
    ) -> Result<(), Error> {
        let saved = &from.sending;
        let options = if self.clocks.is_some() {
            TIMESTAMPS_BYTES
        } else {
            0
        };
        let path = cx.segment_to(self.tuple.remote.addr);
        let sayable = u32::from(u16::MAX) << saved.scale;
        let sender = &mut self.sender;
        sender.mss = saved.mss.min(path).max(MSS_MIN + options) - options;
        sender.scale = saved.scale;
        sender.window = saved.window.min(sayable);
        sender.window_max = saved.window_max.min(sayable).max(sender.window);
        sender.una = Seq(saved.una);
        sender.wl1 = Seq(saved.wl1).min(self.receiver.nxt);
        sender.wl2 = sender.una;
        sender.partial_end = sender.una;
        sender.flight = cx.chain_of(&saved.unacked)?;
        sender.unsent = cx.chain_of(&saved.unsent)?;
        sender.nxt = sender.una + saved.unacked.len() as u32;
        sender.fin = match self.state {
            State::Established | State::CloseWait => Fin::Open,
            State::FinWait2 => Fin::Sent,
            _ if saved.is_fin_sent => Fin::Sent,
            _ => Fin::Queued,
        };
        if saved.is_fin_sent {
            sender.nxt += 1;
        }
        Ok(())
    }

    /// Goes on: what was in flight leaves again, and the peer is asked where it is, if it shall
    /// be asked. Otherwise timers do the same when they are due.
    pub(super) fn resume<E: Env>(&mut self, cx: &mut Context<'_, E>, asks: bool) {
        self.arm_keepalive(cx.now);
        self.lose_flight(cx);
        if asks {
            self.probe(cx);
            // A peer does not take the acknowledgement of a probe, which repeats old bytes.
            self.owe(AckDue::Now);
            self.output(cx);
        } else {
            self.owe(AckDue::Delayed);
            self.arm_delayed_ack(cx.now);
        }
    }

    /// All that is in flight is taken for lost.
    fn lose_flight<E: Env>(&mut self, cx: &Context<'_, E>) {
        let (una, nxt) = (self.sender.una, self.sender.nxt);
        self.recovery.begin_flight(una);
        if una == nxt {
            return;
        }
        let stamp = self.rate.stamp(cx.now, true);
        let board = &mut self.recovery.board;
        board.push(Sent::new(una, nxt, cx.now, stamp));
        board.lose(0);
        self.enter(Phase::Loss);
        self.arm_retransmit(cx.now);
    }
}

impl<E: Env> Context<'_, E> {
    /// Bytes in packet memory, to be queued.
    pub(super) fn chain_of(&mut self, bytes: &[u8]) -> Result<Chain, Error> {
        let mut chain = Chain::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let mut part = self.buffer_to_queue().ok_or(Error::NoBuffers)?;
            let taken = part.append(rest);
            if taken == 0 {
                return Err(Error::NoBuffers);
            }
            rest = rest.get(taken..).unwrap_or_default();
            chain.push_back(part);
        }
        Ok(chain)
    }
}
