//! What is remembered of one connection.

use core::num::NonZeroU16;

use base::{Duration, Instant};
use mbuf::Chain;
use wire::{Seq, TcpFlags, TcpOptions, TcpRepr, Timestamps};

use super::NONE;
use super::rules::{Reuse, TimeWaitRules};
use crate::addr::FourTuple;
use crate::tcp::segment::Segment;
use crate::tcp::tcb::Tcb;

/// Linux's `tcp_invalid_ratelimit`: so often one connection's segments are answered.
const ANSWER_INTERVAL_MILLIS: u32 = 500;

/// A SYN that we have answered with a challenge: all of it that opening needs, so that it
/// can be taken up when the challenge is answered.
#[derive(Clone, Copy)]
pub(super) struct Refused {
    seq: Seq,
    clock: u32,
    window: u16,
    mss: Option<NonZeroU16>,
    scale: Option<u8>,
    has_clock: bool,
    has_sack: bool,
}

impl Refused {
    pub fn new(syn: &Segment) -> Self {
        let options = &syn.options;
        Self {
            seq: syn.seq,
            clock: options.timestamps.map_or(0, |stamp| stamp.value),
            window: syn.window,
            mss: options.mss.and_then(NonZeroU16::new),
            scale: options.window_scale,
            has_clock: options.timestamps.is_some(),
            has_sack: options.sack_permitted,
        }
    }

    /// The SYN again, without bytes that may have been behind it and without the offer of ECN.
    pub fn segment(&self) -> Segment {
        let timestamps = self.has_clock.then_some(Timestamps {
            value: self.clock,
            echo: 0,
        });
        Segment {
            seq: self.seq,
            ack: Seq(0),
            flags: TcpFlags::SYN,
            window: self.window,
            options: TcpOptions {
                mss: self.mss.map(NonZeroU16::get),
                window_scale: self.scale,
                sack_permitted: self.has_sack,
                timestamps,
                ..TcpOptions::default()
            },
            is_marked: false,
            payload: Chain::new(),
        }
    }
}

pub(super) struct Entry {
    pub tuple: FourTuple,
    /// When the wait began.
    pub since: Instant,
    /// Next byte that we would send, and expect.
    pub seq: Seq,
    pub ack: Seq,
    /// The peer's clock, if timestamps were used.
    pub clock: Option<u32>,
    clock_offset: u32,
    /// Milliseconds on our clock when we last answered.
    answered_at: u32,
    pub refused: Option<Refused>,
    /// Neighbours in the list.
    pub newer: u32,
    pub older: u32,
}

const _: () = assert!(size_of::<Entry>() <= 96, "thousands of these are kept");

impl Entry {
    pub fn new(tcb: &Tcb, now: Instant) -> Self {
        Self {
            tuple: tcb.tuple,
            since: now,
            seq: tcb.sender.nxt,
            ack: tcb.receiver.nxt,
            clock: tcb.clocks.map(|clocks| clocks.recent),
            clock_offset: tcb.clock_offset,
            answered_at: (now.as_millis() as u32).wrapping_sub(ANSWER_INTERVAL_MILLIS),
            refused: None,
            newer: NONE,
            older: NONE,
        }
    }

    /// Whether a connection of ours may take the name over.
    pub fn is_reusable(&self, rules: &TimeWaitRules, is_same_host: bool, age: Duration) -> bool {
        let is_allowed = match rules.reuse {
            Reuse::Never => false,
            Reuse::SameHost => is_same_host,
            Reuse::All => true,
        };
        is_allowed && self.clock.is_some() && age >= rules.reuse_delay()
    }

    /// Our last acknowledgement again, unless it went out a moment ago.
    pub fn acknowledgement(&mut self, now: Instant) -> Option<TcpRepr> {
        let millis = now.as_millis() as u32;
        if millis.wrapping_sub(self.answered_at) < ANSWER_INTERVAL_MILLIS {
            return None;
        }
        self.answered_at = millis;
        let value = millis.wrapping_add(self.clock_offset);
        Some(TcpRepr {
            src_port: self.tuple.local.port,
            dst_port: self.tuple.remote.port,
            seq: self.seq,
            ack: self.ack,
            flags: TcpFlags::ACK,
            window: 0,
            options: TcpOptions {
                timestamps: self.clock.map(|echo| Timestamps { value, echo }),
                ..TcpOptions::default()
            },
        })
    }
}
