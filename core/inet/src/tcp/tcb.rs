//! The state of one connection.

use alloc::boxed::Box;
use core::cell::Cell;

use base::Instant;
use mbuf::Chain;
use wire::{SackBlock, Seq};

use super::acknowledge::{AckDue, Interactivity};
use super::assembler::Assembler;
use super::autotune::AutoTuning;
use super::congestion::{Algorithm, Congestion};
use super::ecn::Notification;
use super::info::State;
use super::rate::Rate;
use super::recovery::Recovery;
use super::rtt::Rtt;
use super::timers::Timers;
use crate::addr::{Endpoint, FourTuple, SocketId};
use crate::error::Error;
use crate::options::Options;
use crate::output::CachedRoute;

/// RFC 9293 3.7.1: what a peer takes that does not say.
pub(crate) const MSS_DEFAULT: u16 = 536;
/// Smaller segments than this are not believed: they are an attack on our CPU.
pub(crate) const MSS_MIN: u16 = 88;

/// How far the end of our stream has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fin {
    /// More may be written.
    Open,
    /// Goes out behind the last byte.
    Queued,
    /// In flight, or acknowledged.
    Sent,
}

/// The sending direction.
pub(super) struct Sender {
    /// Oldest byte without an acknowledgement.
    pub una: Seq,
    /// Next byte to send.
    pub nxt: Seq,
    /// What the peer takes beyond `una`, in bytes.
    pub window: u32,
    /// The largest window that it ever offered.
    pub window_max: u32,
    /// Segment that last changed the window: its sequence number and acknowledgement.
    pub wl1: Seq,
    pub wl2: Seq,
    /// Shift of the peer's window field.
    pub scale: u8,
    /// Payload bytes of a full segment, timestamps taken off.
    pub mss: u16,
    pub flight: Chain,
    pub unsent: Chain,
    /// The end of the last segment sent that was not full.
    pub partial_end: Seq,
    pub fin: Fin,
    /// A program found the buffer full, or memory tight, and wants to be woken.
    pub is_starved: Cell<bool>,
}

/// The receiving direction.
pub(super) struct Receiver {
    /// Next byte expected.
    pub nxt: Seq,
    /// Right edge of the window as the peer knows it.
    pub edge: Seq,
    /// Shift of our window field.
    pub scale: u8,
    pub queue: Chain,
    pub early: Option<Box<Assembler>>,
    /// What has arrived twice, for the next acknowledgement (RFC 2883).
    pub doubled: Option<SackBlock>,
    pub ack: AckDue,
    /// Whether an acknowledgement may find an answer to ride on.
    pub interactivity: Interactivity,
    /// Bytes since the last acknowledgement.
    pub unacked: u32,
    /// Largest payload that the peer sent: what it thinks a full segment is.
    pub segment_max: u16,
    /// What our last acknowledgement said.
    pub acked: Seq,
    /// What the program takes.
    pub tuning: AutoTuning,
    /// The peer's FIN was reached.
    pub is_finished: bool,
    /// The program wants no more.
    pub is_shut: bool,
    /// When the peer was last heard.
    pub last_arrival: Instant,
}

/// Timestamps (RFC 7323), if both ends use them.
#[derive(Clone, Copy)]
pub(super) struct Clocks {
    /// The peer's latest clock.
    pub recent: u32,
    /// When we saw it; older than 24 days it says nothing.
    pub recent_at: Instant,
}

/// A transmission control block.
pub(crate) struct Tcb {
    pub id: SocketId,
    pub tuple: FourTuple,
    pub state: State,
    pub options: Options,
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    pub(super) clocks: Option<Clocks>,
    /// Added to our clock so that it tells nobody how long we run.
    pub(super) clock_offset: u32,
    pub(super) is_sack_ok: bool,
    pub(super) ecn: Notification,
    pub(super) congestion: Congestion,
    pub(super) recovery: Recovery,
    pub(super) rtt: Rtt,
    pub(super) rate: Rate,
    /// When the next segment may leave, if segments are paced.
    pub(super) pace_at: Instant,
    /// The congestion window kept bytes back when we last looked.
    pub(super) is_window_limited: bool,
    /// Bytes of packet memory that the ledger has been billed for its queues.
    pub(super) billed: u32,
    /// Tight memory kept the window smaller than the buffer.
    pub(super) is_window_held_back: bool,
    /// Segments sent again in all.
    pub(super) retransmitted: u32,
    pub(super) timers: Timers,
    pub(super) route: CachedRoute,
    pub(super) error: Option<Error>,
    /// The listener whose backlog this connection counts in, until it is accepted.
    pub(super) parent: Option<SocketId>,
    /// The handshake is over for the peer, but its listener waits for bytes (TCP_DEFER_ACCEPT).
    pub(super) is_deferred: bool,
    /// The program has closed it.
    pub(super) is_orphan: bool,
    /// Reachable by its four-tuple.
    pub is_in_demux: bool,
    /// Bound to its local port by a program rather than inherited from a listener.
    pub is_bound: bool,
    /// Waits for the end of the batch.
    pub(super) is_pending: bool,
    /// The round of [`autocork`](super::autocork) in which new bytes left last.
    pub(super) sent_in: u32,
}

impl Tcb {
    pub fn new(id: SocketId) -> Self {
        Self {
            id,
            tuple: FourTuple {
                local: Endpoint::ANY,
                remote: Endpoint::ANY,
            },
            state: State::Closed,
            options: Options::default(),
            sender: Sender {
                una: Seq(0),
                nxt: Seq(0),
                window: 0,
                window_max: 0,
                wl1: Seq(0),
                wl2: Seq(0),
                scale: 0,
                mss: MSS_DEFAULT,
                flight: Chain::new(),
                unsent: Chain::new(),
                partial_end: Seq(0),
                fin: Fin::Open,
                is_starved: Cell::new(false),
            },
            receiver: Receiver {
                nxt: Seq(0),
                edge: Seq(0),
                scale: 0,
                queue: Chain::new(),
                early: None,
                doubled: None,
                ack: AckDue::No,
                interactivity: Interactivity::Unknown,
                unacked: 0,
                segment_max: MSS_DEFAULT,
                acked: Seq(0),
                tuning: AutoTuning::default(),
                is_finished: false,
                is_shut: false,
                last_arrival: Instant::START,
            },
            clocks: None,
            clock_offset: 0,
            is_sack_ok: false,
            ecn: Notification::default(),
            congestion: Congestion::new(Algorithm::Cubic, MSS_DEFAULT, 0),
            recovery: Recovery::default(),
            rtt: Rtt::default(),
            rate: Rate::default(),
            pace_at: Instant::START,
            is_window_limited: false,
            billed: 0,
            is_window_held_back: false,
            retransmitted: 0,
            timers: Timers::default(),
            route: CachedRoute::NONE,
            error: None,
            parent: None,
            is_deferred: false,
            is_orphan: false,
            is_in_demux: false,
            is_bound: false,
            is_pending: false,
            sent_in: 0,
        }
    }

    /// The path's segments are known: congestion control begins.
    pub(super) fn begin_congestion(&mut self) {
        let entropy = self.sender.una.0;
        self.congestion = Congestion::new(self.options.congestion, self.sender.mss, entropy);
    }

    /// The program may have chosen another way to control congestion.
    pub(crate) fn choose_congestion(&mut self) {
        let entropy = self.sender.una.0;
        self.congestion.change(self.options.congestion, entropy);
    }

    /// Our clock for the timestamps option, in milliseconds.
    pub(super) fn clock(&self, now: Instant) -> u32 {
        (now.as_millis() as u32).wrapping_add(self.clock_offset)
    }

    /// Bytes sent and not acknowledged, SYN and FIN included.
    pub(super) fn in_flight(&self) -> u32 {
        self.sender.nxt.since(self.sender.una)
    }

    /// Whether our FIN is in flight.
    pub(super) fn is_fin_in_flight(&self) -> bool {
        self.sender.fin == Fin::Sent
            && matches!(
                self.state,
                State::FinWait1 | State::Closing | State::LastAck
            )
    }
}

/// What is larger, and what an idle connection does without, is boxed.
const _: () = assert!(size_of::<Tcb>() <= 896, "the heap has a class of this size");
