//! Opening: our SYN, the peer's, and what both agree on.

use wire::{Seq, TcpFlags, TcpOptions, TcpRepr, Timestamps};

use super::acknowledge::AckDue;
use super::info::State;
use super::segment::Segment;
use super::tcb::{Clocks, MSS_DEFAULT, MSS_MIN, Tcb};
use super::transmit::WINDOW_SCALE;
use crate::addr::FourTuple;
use crate::context::Context;
use crate::counters::{Count, DropReason, ResetReason};
use crate::env::Env;
use crate::error::Error;
use crate::hash::{Key, Salt};
use crate::journal::{Resent, What};

/// Between the numbers of two connections of one name: more than a window without scaling
/// can hold, as Linux has it.
const BEYOND_BYTES: u32 = 65537;

/// Bytes that timestamps take of each segment.
const TIMESTAMPS_BYTES: u16 = 12;

/// What hides a connection's sequence numbers and its clock. All connections of one name
/// have the same, so that the numbers of the next lie beyond those of the last.
pub(super) fn secrets_of(key: &Key, tuple: &FourTuple) -> (u32, u32) {
    let secret = key.secret(Salt::Numbers, tuple, [0, 0]);
    (secret as u32, (secret >> 32) as u32)
}

impl Tcb {
    /// RFC 6528: a clock of 4 µs steps plus a hash of the connection's name. If the numbers
    /// of an older connection of that name ended at `beyond`, ours begin behind them
    /// (RFC 1122 4.2.2.13).
    pub(super) fn choose_numbers<E: Env>(&mut self, cx: &mut Context<'_, E>, beyond: Option<Seq>) {
        let (secret, clock_offset) = secrets_of(&cx.net.key, &self.tuple);
        let clock = (cx.now.as_nanos() >> 12) as u32;
        let mut first = Seq(secret.wrapping_add(clock));
        if cx.net.config.time_wait.is_clumsy {
            first = Seq(cx.env.random() as u32);
        }
        if let Some(end) = beyond {
            first = first.max(end + BEYOND_BYTES);
        }
        self.sender.una = first;
        self.sender.nxt = first;
        self.sender.partial_end = first;
        self.clock_offset = clock_offset;
    }

    /// Starts a connection to the tuple's remote end; `beyond` as for `choose_numbers`.
    pub(crate) fn connect<E: Env>(&mut self, cx: &mut Context<'_, E>, beyond: Option<Seq>) {
        cx.net.count(Count::ActiveOpens);
        self.choose_numbers(cx, beyond);
        self.state = State::SynSent;
        let offers = cx.net.config.offers;
        self.is_sack_ok = offers.sack;
        let has_clock = offers.timestamps && !cx.net.config.time_wait.is_clumsy;
        self.clocks = has_clock.then_some(Clocks {
            recent: 0,
            recent_at: cx.now,
        });
        self.open_window(offers.window_scaling);
        self.sender.nxt += 1;
        self.timers.progress_at = cx.now;
        self.rtt.start();
        self.send_syn(cx);
        self.arm_retransmit(cx.now);
    }

    /// Largest segment that we take.
    fn own_mss<E: Env>(&self, cx: &Context<'_, E>) -> u16 {
        let path = cx.segment_to(self.tuple.remote.addr);
        match self.options.max_segment {
            0 => path,
            wanted => wanted.clamp(MSS_MIN, path.max(MSS_MIN)),
        }
    }

    /// Sends our SYN, or our answer to the peer's, perhaps again.
    pub(super) fn send_syn<E: Env>(&mut self, cx: &mut Context<'_, E>) {
        let is_answer = self.state == State::SynReceived;
        let options = TcpOptions {
            mss: Some(self.own_mss(cx)),
            window_scale: (self.receiver.scale > 0).then_some(WINDOW_SCALE),
            sack_permitted: self.is_sack_ok,
            timestamps: self.clocks.map(|clocks| Timestamps {
                value: self.clock(cx.now),
                echo: clocks.recent,
            }),
            ..TcpOptions::default()
        };
        let window = self
            .receiver
            .edge
            .since(self.receiver.nxt)
            .min(u32::from(u16::MAX)) as u16;
        let flags = TcpFlags::SYN.with(self.syn_notification(cx, is_answer));
        let repr = TcpRepr {
            src_port: self.tuple.local.port,
            dst_port: self.tuple.remote.port,
            seq: self.sender.una,
            ack: self.receiver.nxt,
            flags: if is_answer {
                flags.with(TcpFlags::ACK)
            } else {
                flags
            },
            window,
            options,
        };
        self.receiver.acked = self.receiver.nxt;
        if self.timers.backoff > 0 {
            cx.net.count(Count::Retransmits);
            self.note(cx, What::Retransmit(Resent::Syn));
            self.rtt.cancel();
        }
        self.put(cx, &repr, mbuf::Chain::new(), 0);
    }

    /// Takes the peer's SYN: its numbers and what it can do. Our own abilities are already
    /// in the fields and shrink to what both can.
    pub(super) fn accept_syn<E: Env>(&mut self, cx: &Context<'_, E>, segment: &Segment) {
        let options = cx.net.config.offers.among(&segment.options);
        self.receiver.nxt = segment.seq + 1;
        self.receiver.last_arrival = cx.now;
        self.open_window(options.window_scale.is_some());
        self.sender.scale = options.window_scale.unwrap_or(0);
        self.sender.window = u32::from(segment.window);
        self.sender.window_max = self.sender.window;
        self.sender.wl1 = segment.seq;
        self.sender.wl2 = segment.ack;
        self.is_sack_ok &= options.sack_permitted;
        self.clocks = match (self.clocks, options.timestamps) {
            (Some(_), Some(stamp)) => Some(Clocks {
                recent: stamp.value,
                recent_at: cx.now,
            }),
            _ => None,
        };
        self.agree_on_notification(cx, segment);
        self.agree_on_mss(cx, options.mss);
    }

    pub(super) fn agree_on_mss<E: Env>(&mut self, cx: &Context<'_, E>, peer: Option<u16>) {
        let mut mss = peer
            .unwrap_or(MSS_DEFAULT)
            .max(MSS_MIN)
            .min(self.own_mss(cx));
        if self.clocks.is_some() {
            mss -= TIMESTAMPS_BYTES;
        }
        self.sender.mss = mss;
        self.begin_congestion();
    }

    /// A segment arrives in SYN-SENT (RFC 9293 3.10.7.3).
    pub(super) fn arrive_in_syn_sent<E: Env>(&mut self, cx: &mut Context<'_, E>, segment: Segment) {
        let has_ack = segment.has(TcpFlags::ACK);
        if has_ack && segment.ack != self.sender.nxt {
            self.drop_segment(cx, DropReason::BadAck);
            let tuple = self.tuple;
            cx.send_reset(&tuple, &segment, ResetReason::BadSeq);
            self.ask_again(cx, &segment);
            return;
        }
        if has_ack && !self.is_own_clock(cx, &segment) {
            self.drop_segment(cx, DropReason::BadEcho);
            let tuple = self.tuple;
            cx.send_reset(&tuple, &segment, ResetReason::BadEcho);
            return;
        }
        if segment.has(TcpFlags::RST) {
            if has_ack {
                cx.net.count(Count::ResetsIn);
                self.die(cx, Some(Error::ConnectionRefused));
            } else {
                self.drop_segment(cx, DropReason::Suspicious);
            }
            return;
        }
        if !segment.has(TcpFlags::SYN) {
            self.drop_segment(cx, DropReason::Unexpected);
            return;
        }
        self.accept_syn(cx, &segment);
        if !has_ack {
            // Both have opened at once.
            self.state = State::SynReceived;
            self.send_syn(cx);
            return;
        }
        self.rtt.finish(self.timers.progress_at, cx.now);
        self.sender.una = segment.ack;
        self.timers.backoff = 0;
        self.timers.disarm_retransmit();
        self.establish(cx);
        self.owe(AckDue::Now);
        self.take_syn_payload(cx, segment);
    }

    /// The peer remembers an older connection of this name, which our reset has ended. So
    /// we ask once more at once: the timer is a second away (Linux waits two ticks). Only
    /// once, or somebody who guesses our name could make us send for ever.
    fn ask_again<E: Env>(&mut self, cx: &mut Context<'_, E>, segment: &Segment) {
        let is_first = self.timers.backoff == 0;
        if is_first && !segment.has(TcpFlags::RST) && !cx.net.config.time_wait.is_clumsy {
            self.timers.backoff = 1;
            cx.net.count(Count::SynsHurried);
            self.send_syn(cx);
        }
    }

    /// RFC 7323 3.2: the echo must be a clock that we have sent since we began to connect.
    /// Zero is what those send that do not care.
    fn is_own_clock<E: Env>(&self, cx: &Context<'_, E>, segment: &Segment) -> bool {
        let (Some(_), Some(stamp)) = (self.clocks, segment.options.timestamps) else {
            return true;
        };
        let first = self.clock(self.timers.progress_at);
        let most = self.clock(cx.now).wrapping_sub(first);
        stamp.echo == 0 || stamp.echo.wrapping_sub(first) <= most
    }

    /// Both have opened at once, and the peer's SYN comes again with the acknowledgement of
    /// ours (RFC 9293 3.5, figure 7). What is new in it lies behind the SYN that we have.
    pub(super) fn meet(&mut self, segment: &mut Segment) {
        let is_answer = segment.has(TcpFlags::SYN) && segment.has(TcpFlags::ACK);
        let is_known = segment.seq + 1 == self.receiver.nxt && segment.ack == self.sender.nxt;
        if self.parent.is_none() && is_answer && is_known {
            segment.flags.0 &= !TcpFlags::SYN.0;
            segment.seq += 1;
            self.owe(AckDue::Now);
        }
    }

    /// Bytes behind a SYN-ACK are legal, if rare.
    fn take_syn_payload<E: Env>(&mut self, cx: &mut Context<'_, E>, mut segment: Segment) {
        segment.flags.0 &= !TcpFlags::SYN.0;
        segment.seq += 1;
        if segment.len() > 0 {
            self.receive(cx, &mut segment);
        }
    }
}
