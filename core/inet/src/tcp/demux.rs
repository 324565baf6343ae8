//! Which connection, listener or TIME_WAIT a segment belongs to, and what follows when a
//! connection has changed.

use mbuf::Chain;
use wire::{Protocol, Seq, TCP_HEADER_BYTES, TcpFlags, TcpView};

use super::acknowledge::AckDue;
use super::info::State;
use super::segment::Segment;
use super::tcb::{MSS_MIN, Tcb};
use crate::addr::{Endpoint, FourTuple, SocketId};
use crate::context::Context;
use crate::counters::{Count, DropReason, ResetReason};
use crate::env::Env;
use crate::family::ip_header_len;
use crate::icmp::Fate;
use crate::input::IpInfo;
use crate::journal::What;
use crate::stack::Stack;
use crate::table::Socket;

impl Stack {
    /// A packet that starts with its TCP header; its IP headers are needed for filters only.
    #[inline]
    pub(crate) fn tcp_input<E: Env>(
        &mut self,
        env: &mut E,
        info: &IpInfo,
        headers: &[u8],
        packet: Chain,
    ) -> Result<(), DropReason> {
        let bytes = packet.front().map_or(&[][..], |front| front.bytes());
        let header = TcpView::parse(bytes)?;
        if !info.is_unicast {
            return Err(DropReason::WrongAddress);
        }
        self.net.count(Count::SegmentsIn);
        let tuple = FourTuple {
            local: Endpoint::new(info.dst(), header.dst_port()),
            remote: Endpoint::new(info.src(), header.src_port()),
        };
        if is_opening(header.flags()) && self.net.turns_away(env.now(), tuple.local) {
            return Err(DropReason::SynLimited);
        }
        if !info.verify(Protocol::Tcp, &packet) {
            return Err(DropReason::BadChecksum);
        }
        if self.net.limits_hops && self.is_too_far(&tuple, info) {
            return Err(DropReason::TooFar);
        }
        let header_len = header.header_len();
        let mut segment = Segment::new(&header, info.is_marked());
        segment.payload = packet;
        if let Some(index) = self.net.demux.connection(&tuple) {
            let is_cut = self.screen(env, index, headers, &mut segment.payload, header_len)?;
            segment.strip(header_len, is_cut);
            self.connection_input(env, index, segment);
            return Ok(());
        }
        let mut is_cut = false;
        if self.net.keeps_headers
            && !self.is_finished(&tuple, &segment)
            && let Some(index) = self.listener_for(&tuple)
        {
            is_cut = self.screen(env, index, headers, &mut segment.payload, header_len)?;
        }
        segment.strip(header_len, is_cut);
        self.unsolicited_input(env, tuple, segment)
    }

    /// Whether a segment is for a connection that is over, and can open none.
    fn is_finished(&self, tuple: &FourTuple, segment: &Segment) -> bool {
        !is_opening(segment.flags) && self.net.time_wait.find(tuple).is_some()
    }

    /// A segment for no open connection.
    fn unsolicited_input<E: Env>(
        &mut self,
        env: &mut E,
        tuple: FourTuple,
        segment: Segment,
    ) -> Result<(), DropReason> {
        let flags = segment.flags;
        let (key, departed) = (&self.net.key, &self.net.departed);
        if !is_opening(flags) && departed.is_quiet(key, &tuple, env.now()) {
            return Err(DropReason::Departed);
        }
        let (state, outcome) = if let Some(at) = self.net.time_wait.find(&tuple) {
            let (what, state) = (What::TimeWait, State::TimeWait);
            let journal = &mut self.net.journal;
            journal.note(env.now(), what, state, flags, &tuple);
            (state, self.time_wait_input(env, at, tuple, segment))
        } else if let Some(index) = self.listener_for(&tuple) {
            let outcome = self.listener_input(env, index, tuple, segment);
            (State::Listen, outcome)
        } else {
            self.context(env)
                .refuse(&tuple, &segment, ResetReason::NoSocket);
            (State::Closed, Err(DropReason::NoSocket))
        };
        outcome.inspect_err(|reason| {
            // A flood would push everything else out of the journal.
            if *reason != DropReason::SynLimited {
                let journal = &mut self.net.journal;
                journal.note(env.now(), What::Drop(*reason), state, flags, &tuple);
            }
        })
    }

    /// The listener that a new connection would belong to.
    pub(super) fn listener_for(&mut self, tuple: &FourTuple) -> Option<u32> {
        let (key, ports) = (self.net.key, &self.net.demux.tcp);
        let ends = (tuple.local, tuple.remote);
        let index = ports.find(ends, || key.tuple(tuple))?;
        self.sockets.listener_at(index)?;
        Some(index)
    }

    /// A segment for an open connection.
    #[inline]
    pub(super) fn connection_input<E: Env>(
        &mut self,
        env: &mut E,
        index: u32,
        mut segment: Segment,
    ) {
        let mut cx = Context {
            now: env.now(),
            env,
            net: &mut self.net,
        };
        let Some(tcb) = self.sockets.tcp_at(index) else {
            self.drop_for_frozen(index);
            return;
        };
        let was = tcb.state;
        match was {
            State::SynSent => tcb.arrive_in_syn_sent(&mut cx, segment),
            State::SynReceived => {
                let parent = tcb.parent;
                let (tuple, is_reset) = (tcb.tuple, segment.has(TcpFlags::RST));
                if !is_reset && self.is_accept_queue_full(parent) {
                    let reason = DropReason::AcceptQueueFull;
                    self.net.drop(reason);
                    let journal = &mut self.net.journal;
                    journal.note(env.now(), What::Drop(reason), was, segment.flags, &tuple);
                    return;
                }
                let mut cx = Context {
                    now: env.now(),
                    env,
                    net: &mut self.net,
                };
                let Some(tcb) = self.sockets.tcp_at(index) else {
                    return;
                };
                tcb.meet(&mut segment);
                tcb.arrive(&mut cx, &mut segment);
                if tcb.state.is_synchronized() {
                    self.promote(env, index);
                } else if tcb.state == State::Closed && is_reset {
                    cx.net.count(Count::EmbryonicResets);
                }
            }
            _ => {
                cx.net.unsolicited.note_work(cx.now);
                tcb.arrive(&mut cx, &mut segment);
            }
        }
        self.queue_output(index);
        self.settle(env, index);
    }

    /// Queues a connection for the end of the batch if it may have something to send.
    #[inline]
    fn queue_output(&mut self, index: u32) {
        if let Some(tcb) = self.sockets.tcp_at(index)
            && !tcb.is_pending
            && tcb.has_output()
        {
            tcb.is_pending = true;
            self.net.ack_queue.push(index);
        }
    }

    /// Called after anything that may have changed a connection: bills what it holds, files its
    /// timer, and takes it out of the tables when it is over.
    #[inline]
    pub(crate) fn settle<E: Env>(&mut self, env: &mut E, index: u32) {
        let Some(tcb) = self.sockets.tcp_at(index) else {
            return;
        };
        if matches!(tcb.state, State::Closed | State::TimeWait) {
            self.settle_finished(env, index);
            return;
        }
        tcb.bill(&mut self.net);
        self.net.wheel.arm(index, tcb.deadline());
    }

    fn settle_finished<E: Env>(&mut self, env: &mut E, index: u32) {
        let mut cx = Context {
            now: env.now(),
            env,
            net: &mut self.net,
        };
        let Some(tcb) = self.sockets.tcp_at(index) else {
            return;
        };
        if tcb.receiver.ack == AckDue::Now && tcb.state == State::TimeWait {
            tcb.send_ack(&mut cx);
        }
        tcb.stop_timers();
        tcb.bill(cx.net);
        if tcb.is_in_demux {
            tcb.is_in_demux = false;
            cx.net.demux.disconnect(&tcb.tuple);
            if tcb.state == State::TimeWait {
                cx.net.enter_time_wait(tcb, cx.now);
            }
        }
        let is_abandoned = tcb.is_orphan || self.is_unaccepted(index);
        if is_abandoned {
            self.release(index);
        } else {
            self.net.wheel.disarm(index);
        }
    }

    /// Whether a dead connection never left its listener's half-open count.
    fn is_unaccepted(&mut self, index: u32) -> bool {
        let Some(tcb) = self.sockets.tcp_at(index) else {
            return false;
        };
        let (id, Some(parent)) = (tcb.id, tcb.parent) else {
            return false;
        };
        match self.sockets.get_mut(parent) {
            // One that waits to be accepted stays: the program finds out what became of it.
            Ok(Socket::Listener(listener)) if listener.ready.contains(id) => false,
            Ok(Socket::Listener(listener)) => {
                listener.half_open.sub(1);
                true
            }
            _ => true,
        }
    }

    /// Forgets a connection for good.
    pub(crate) fn release(&mut self, index: u32) {
        self.net.wheel.disarm(index);
        if let Some(Socket::Tcp(tcb)) = self.sockets.remove(index) {
            self.net.shrink(tcb.grown());
            self.net.tcp_memory.bill(tcb.billed as usize, 0);
            if tcb.is_bound {
                self.net.demux.tcp.unbind(tcb.tuple.local.port, index);
            }
            if tcb.is_in_demux {
                self.net.demux.disconnect(&tcb.tuple);
            }
            if tcb.is_orphan {
                self.net.orphans.sub(1);
            }
        }
    }

    /// A segment of ours did not arrive, says a router or the peer's host (RFC 5927:
    /// believed only if it quotes a sequence number that is in flight).
    pub(crate) fn tcp_lost<E: Env>(
        &mut self,
        env: &mut E,
        tuple: &FourTuple,
        seq: Seq,
        sent: u16,
        fate: Fate,
    ) -> Result<(), DropReason> {
        let index = self
            .net
            .demux
            .connection(tuple)
            .ok_or(DropReason::NoSocket)?;
        let mut cx = Context {
            now: env.now(),
            env,
            net: &mut self.net,
        };
        let tcb = self.sockets.tcp_at(index).ok_or(DropReason::NoSocket)?;
        if seq.before(tcb.sender.una) || !seq.before(tcb.sender.nxt) {
            return Err(DropReason::Suspicious);
        }
        match fate {
            Fate::TooBig(mtu) => {
                let mtu = cx.learn_mtu(tuple.remote.addr, mtu, sent);
                tcb.on_too_big(&mut cx, mtu.ok_or(DropReason::Suspicious)?);
            }
            Fate::Lost(error) if tcb.state == State::SynSent => tcb.die(&mut cx, Some(error)),
            // RFC 1122 4.2.3.9: a hint, not an end.
            Fate::Lost(_) => {}
        }
        self.settle(env, index);
        Ok(())
    }
}

/// Whether a segment is a connection's first.
fn is_opening(flags: TcpFlags) -> bool {
    flags.has(TcpFlags::SYN) && !flags.has(TcpFlags::ACK)
}

impl Tcb {
    /// Path MTU discovery (RFC 1191, RFC 8201).
    fn on_too_big<E: Env>(&mut self, cx: &mut Context<'_, E>, mtu: u16) {
        let options = if self.clocks.is_some() { 12 } else { 0 };
        let overhead = ip_header_len(self.tuple.remote.addr) + TCP_HEADER_BYTES + options;
        let mss = mtu.saturating_sub(overhead as u16).max(MSS_MIN);
        if mss < self.sender.mss {
            self.sender.mss = mss;
            self.congestion.set_mss(mss);
            self.on_timeout(cx);
        }
    }

    /// The program gets the connection.
    pub(crate) fn adopt(&mut self) {
        self.parent = None;
    }

    /// The socket whose filter it goes by: its listener while nobody has accepted it.
    pub(crate) fn filter_owner(&self) -> SocketId {
        self.parent.unwrap_or(self.id)
    }

    /// Whether it counts in that listener's queues.
    pub(crate) fn is_child_of(&self, listener: SocketId) -> bool {
        self.parent == Some(listener)
    }

    /// Notes that a program may wait for room: it is woken when there is some again.
    pub(crate) fn starve(&self) {
        self.sender.is_starved.set(true);
    }
}
