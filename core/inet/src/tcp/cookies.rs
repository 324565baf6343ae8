//! SYN cookies (RFC 4987 3.6): half-open connections that take no memory.
//!
//! Our sequence number carries, instead of a clock, a minute counter, an index into a
//! table of segment sizes, and a keyed hash over both and the connection's name. The
//! peer's timestamp echo carries the other options, if it uses timestamps: its window
//! shift and SACK; without them the connection does without.

use base::{Duration, Instant};
use wire::{Seq, TcpFlags, TcpOptions, TcpRepr, Timestamps};

use super::handshake::secrets_of;
use super::info::State;
use super::segment::Segment;
use super::tcb::Clocks;
use super::transmit::WINDOW_SCALE;
use crate::addr::FourTuple;
use crate::context::Context;
use crate::counters::{Count, DropReason, ResetReason};
use crate::env::Env;
use crate::hash::{Key, Salt};
use crate::stack::Stack;

const SIZES: [u16; 4] = [536, 1300, 1440, 1460];
/// Cookies are good for this minute and the last one.
const COOKIE_LIFETIME: Duration = Duration::from_secs(120);
const MINUTE_BITS: u32 = 5;
const HASH_BITS: u32 = 32 - MINUTE_BITS - 2;
/// Low bits of our clock in a cookie's SYN-ACK: window shift (15: none) and SACK.
const CLOCK_BITS: u32 = 5;
const NO_SCALE: u32 = 15;

fn minute_of(now: Instant) -> u32 {
    (now.as_millis() / 60_000) as u32
}

fn cookie(key: &Key, tuple: &FourTuple, peer: Seq, minute: u32, size: u32) -> Seq {
    let hash = key.secret(Salt::Cookie, tuple, [peer.0, minute << 2 | size]) as u32;
    let minute = minute & ((1 << MINUTE_BITS) - 1);
    Seq(hash >> (32 - HASH_BITS) | minute << HASH_BITS | size << (32 - 2))
}

/// The segment size that a valid cookie holds.
fn check(key: &Key, tuple: &FourTuple, peer: Seq, now: Instant, echoed: Seq) -> Option<u16> {
    let size = echoed.0 >> 30;
    let minute = minute_of(now);
    let is_valid = |minute| cookie(key, tuple, peer, minute, size) == echoed;
    if !is_valid(minute) && !is_valid(minute.wrapping_sub(1)) {
        return None;
    }
    SIZES.get(size as usize).copied()
}

impl<E: Env> Context<'_, E> {
    pub(super) fn send_cookie(&mut self, tuple: &FourTuple, syn: &Segment) {
        let asked = self.net.config.offers.among(&syn.options);
        let peer_mss = asked.mss.unwrap_or(SIZES[0]);
        let size = SIZES
            .iter()
            .rposition(|size| *size <= peer_mss)
            .unwrap_or(0) as u32;
        let seq = cookie(&self.net.key, tuple, syn.seq, minute_of(self.now), size);
        let scale = asked.window_scale.map_or(NO_SCALE, u32::from);
        let bits = scale << 1 | u32::from(asked.sack_permitted);
        let has_clock = asked.timestamps.is_some();
        let options = TcpOptions {
            mss: Some(self.segment_to(tuple.remote.addr)),
            window_scale: (has_clock && scale != NO_SCALE).then_some(WINDOW_SCALE),
            sack_permitted: has_clock && asked.sack_permitted,
            timestamps: asked.timestamps.map(|stamp| Timestamps {
                value: self.cookie_clock(tuple, bits),
                echo: stamp.value,
            }),
            ..TcpOptions::default()
        };
        let repr = TcpRepr {
            src_port: tuple.local.port,
            dst_port: tuple.remote.port,
            seq,
            ack: syn.seq + 1,
            flags: TcpFlags::SYN.with(TcpFlags::ACK),
            window: u16::MAX,
            options,
        };
        self.net.count(Count::CookiesSent);
        self.send_bare(tuple, &repr);
    }

    /// The connection's clock with `bits` in place of its lowest. A flood seldom asks for it.
    fn cookie_clock(&self, tuple: &FourTuple, bits: u32) -> u32 {
        let (_, clock_offset) = secrets_of(&self.net.key, tuple);
        let clock = (self.now.as_millis() as u32).wrapping_add(clock_offset);
        clock & !((1 << CLOCK_BITS) - 1) | bits
    }
}

impl Stack {
    /// An acknowledgement for a listener: the answer to a cookie, or nothing of ours.
    pub(super) fn answer_input<E: Env>(
        &mut self,
        env: &mut E,
        index: u32,
        tuple: FourTuple,
        segment: Segment,
    ) -> Result<(), DropReason> {
        let now = env.now();
        let sent_at = self
            .sockets
            .listener_at(index)
            .and_then(|listener| listener.cookie_sent_at);
        if sent_at.is_some_and(|sent_at| now.since(sent_at) < COOKIE_LIFETIME) {
            return self.cookie_input(env, index, tuple, segment);
        }
        self.context(env)
            .refuse(&tuple, &segment, ResetReason::ListenerAck);
        Err(DropReason::Unexpected)
    }

    fn cookie_input<E: Env>(
        &mut self,
        env: &mut E,
        index: u32,
        tuple: FourTuple,
        segment: Segment,
    ) -> Result<(), DropReason> {
        let (now, key) = (env.now(), self.net.key);
        let valid = check(&key, &tuple, segment.seq - 1, now, segment.ack - 1);
        let is_bare = !segment.has(TcpFlags::SYN);
        let Some(mss) = valid.filter(|_| is_bare) else {
            self.context(env)
                .refuse(&tuple, &segment, ResetReason::BadCookie);
            return Err(DropReason::BadCookie);
        };
        if self
            .sockets
            .listener_at(index)
            .is_none_or(|listener| listener.is_overfull())
        {
            return Err(DropReason::AcceptQueueFull);
        }
        let child = self.spawn(index, tuple)?;
        let mut cx = Context {
            now,
            env,
            net: &mut self.net,
        };
        let tcb = self.sockets.tcp_at(child).ok_or(DropReason::NoSocket)?;
        tcb.choose_numbers(&mut cx, None);
        tcb.sender.una = segment.ack - 1;
        tcb.sender.nxt = segment.ack;
        tcb.sender.partial_end = segment.ack;
        tcb.receiver.nxt = segment.seq;
        tcb.receiver.acked = segment.seq;
        if let Some(stamp) = segment.options.timestamps {
            let bits = stamp.echo & ((1 << CLOCK_BITS) - 1);
            let scale = bits >> 1;
            tcb.is_sack_ok = bits & 1 != 0;
            tcb.clocks = Some(Clocks {
                recent: stamp.value,
                recent_at: now,
            });
            // The clock goes on from what the peer has seen.
            tcb.clock_offset = stamp
                .echo
                .wrapping_sub(now.as_millis() as u32)
                .wrapping_add(1 << CLOCK_BITS);
            if scale != NO_SCALE {
                tcb.sender.scale = scale.min(14) as u8;
            }
            tcb.open_window(scale != NO_SCALE);
        } else {
            tcb.open_window(false);
        }
        tcb.agree_on_mss(&cx, Some(mss));
        tcb.state = State::SynReceived;
        self.net.count(Count::CookiesAccepted);
        self.connection_input(env, child, segment);
        Ok(())
    }
}
