//! What is remembered of one connection.

use base::{Duration, Instant};
use wire::{Seq, TcpFlags, TcpOptions, TcpRepr, Timestamps};

use super::NONE;
use super::rules::{Reuse, TimeWaitRules};
use crate::addr::FourTuple;
use crate::tcp::syn::Syn;
use crate::tcp::tcb::Tcb;

/// Linux's `tcp_invalid_ratelimit`: so often one connection's segments are answered.
const ANSWER_INTERVAL_MILLIS: u32 = 500;

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
    /// A SYN that was answered with a challenge, to be taken up when the challenge is answered.
    pub refused: Option<Syn>,
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
