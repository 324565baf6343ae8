//! Buffers as large as the path needs, and no larger.
//!
//! A receive buffer grows when the program took more in a round trip than ever before: the
//! window must hold two round trips' worth, so that it does not limit a sender in slow start.
//! A send buffer grows when the program waits for room while the congestion window has
//! outgrown half of it. Each stays below its limit in `Config`, all of a stack's growth together
//! below `buffer_growth_max`, none grows while packet memory is tight, and a buffer whose size the
//! program has set stays.
//!
//! A receiver does not know the round trip; its own clock, echoed by what arrives, tells
//! (dynamic right-sizing). Invariant: `grown` is what this connection has of `Net::grown`.

use base::{Duration, Instant};
use wire::Seq;

use super::segment::Segment;
use super::tcb::Tcb;
use crate::context::Context;
use crate::env::Env;
use crate::net::Net;
use crate::stack::Stack;

/// Room for what a sender has under way when a window of two round trips begins to grow.
const SPARE_SEGMENTS: u32 = 16;
/// Round trips longer than this are pauses of the sender.
const ROUND_TRIP_MAX: u32 = 1 << 14;

/// What the program takes.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct AutoTuning {
    /// When and where the running round trip began.
    since: Instant,
    from: Seq,
    /// The most bytes that it took in one.
    most: u32,
    /// The round trip in milliseconds, as echoed clocks show it; zero until one has.
    round_trip: u32,
    /// Bytes that both buffers have grown by.
    pub grown: u32,
}

impl Net {
    /// Takes up to `bytes` of what buffers may grow by.
    fn grow(&mut self, bytes: u32) -> u32 {
        if self.is_tcp_tight() {
            return 0;
        }
        let left = self
            .config
            .buffer_growth_max
            .saturating_sub(self.grown.all());
        let taken = u32::try_from(left).unwrap_or(u32::MAX).min(bytes);
        self.grown.add(taken as usize);
        taken
    }

    /// A connection is gone that had grown by so much.
    pub fn shrink(&mut self, bytes: u32) {
        self.grown.sub(bytes as usize);
    }
}

impl Stack {
    /// Bytes that the buffers of all connections have grown by.
    pub fn buffers_grown(&self) -> usize {
        self.net.grown.own()
    }
}

impl Tcb {
    /// Takes in the clock that a segment with bytes echoes.
    #[inline]
    pub(super) fn note_round_trip<E: Env>(&mut self, cx: &Context<'_, E>, segment: &Segment) {
        let (Some(stamp), Some(_)) = (segment.options.timestamps, &self.clocks) else {
            return;
        };
        let millis = self.clock(cx.now).wrapping_sub(stamp.echo).max(1);
        if stamp.echo == 0 || millis > ROUND_TRIP_MAX {
            return;
        }
        let known = &mut self.receiver.tuning.round_trip;
        *known = match *known {
            0 => millis,
            // A program that answers late makes it longer; the shortest is the path's.
            old => millis.min(old + old / 8 + 1),
        };
    }

    /// The program has read.
    #[inline]
    pub(super) fn tune_receiver<E: Env>(&mut self, cx: &mut Context<'_, E>) {
        let Self {
            receiver, options, ..
        } = self;
        let round_trip = Duration::from_millis(u64::from(receiver.tuning.round_trip));
        let is_due = cx.now.since(receiver.tuning.since) >= round_trip;
        if !options.is_recv_tuned || round_trip.is_zero() || !is_due {
            return;
        }
        let read = receiver.nxt - receiver.queue.len() as u32;
        let tuning = &mut receiver.tuning;
        let took = read.since(tuning.from);
        let is_first = tuning.since == Instant::START;
        (tuning.since, tuning.from) = (cx.now, read);
        if is_first || took <= tuning.most {
            return;
        }
        tuning.most = took;
        let spare = SPARE_SEGMENTS * u32::from(receiver.segment_max);
        let wanted = took.saturating_mul(2).saturating_add(spare);
        let wanted = wanted.min(cx.net.config.recv_buffer_max);
        let more = cx.net.grow(wanted.saturating_sub(options.recv_buffer));
        options.recv_buffer += more;
        tuning.grown += more;
    }

    /// An acknowledgement has come while the program waits for room.
    pub(super) fn tune_sender(&mut self, net: &mut Net) {
        let wanted = self.congestion.window().saturating_mul(2);
        let wanted = wanted.min(net.config.send_buffer_max);
        if !self.options.is_send_tuned || wanted <= self.options.send_buffer {
            return;
        }
        let more = net.grow(wanted - self.options.send_buffer);
        self.options.send_buffer += more;
        self.receiver.tuning.grown += more;
    }

    /// The program waits for so many bytes: the window of a connection shall hold twice as much.
    pub(crate) fn make_room_for_low_water(&mut self, net: &mut Net) {
        let options = &mut self.options;
        options.limit_low_water(net.config.recv_buffer_max);
        let wanted = options.receive_low_water.saturating_mul(2);
        let may_grow = options.is_recv_tuned && self.state.is_synchronized();
        if !may_grow || wanted <= options.recv_buffer {
            return;
        }
        let more = net.grow(wanted - options.recv_buffer);
        options.recv_buffer += more;
        self.receiver.tuning.grown += more;
    }

    /// Buffers that had grown elsewhere do so here, as far as there is room.
    pub(super) fn regrow(&mut self, net: &mut Net) {
        let fresh = net.config.stream;
        let options = &mut self.options;
        let buffers = [
            (
                options.is_send_tuned,
                &mut options.send_buffer,
                fresh.send_buffer,
            ),
            (
                options.is_recv_tuned,
                &mut options.recv_buffer,
                fresh.recv_buffer,
            ),
        ];
        for (is_tuned, buffer, fresh) in buffers {
            if is_tuned && *buffer > fresh {
                let more = net.grow(*buffer - fresh);
                *buffer = fresh + more;
                self.receiver.tuning.grown += more;
            }
        }
    }

    /// Bytes that both buffers have grown by, to be given back.
    pub(crate) fn grown(&self) -> u32 {
        self.receiver.tuning.grown
    }
}
