//! What tools and programs may know of a connection.

use base::Duration;

use super::congestion::Algorithm;
use super::tcb::Tcb;
use crate::addr::{Endpoint, SocketId};

/// The states of RFC 9293, with Linux's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum State {
    /// Data flows both ways.
    Established = 1,
    /// We asked for a connection.
    SynSent = 2,
    /// We answered, and wait for the answer to that.
    SynReceived = 3,
    /// We have closed; the peer does not know yet.
    FinWait1 = 4,
    /// We have closed, the peer knows and has not.
    FinWait2 = 5,
    /// Over; remembered for late segments.
    TimeWait = 6,
    /// Nothing.
    Closed = 7,
    /// The peer has closed, we have not.
    CloseWait = 8,
    /// Both have closed; the peer does not know yet.
    LastAck = 9,
    /// Waits for connections.
    Listen = 10,
    /// Both have closed at once.
    Closing = 11,
}

impl State {
    /// Whether both ends have agreed on sequence numbers.
    pub const fn is_synchronized(self) -> bool {
        !matches!(
            self,
            Self::Closed | Self::Listen | Self::SynSent | Self::SynReceived
        )
    }

    /// Whether a reset would reach somebody: the peer knows of the connection, or will.
    pub(super) const fn has_peer(self) -> bool {
        self.is_synchronized() && !matches!(self, Self::TimeWait)
            || matches!(self, Self::SynReceived)
    }

    /// Whether the peer may still send bytes.
    pub(super) const fn is_receiving(self) -> bool {
        matches!(self, Self::Established | Self::FinWait1 | Self::FinWait2)
    }

    /// Whether there may be bytes of ours to send.
    pub(super) const fn is_sending(self) -> bool {
        matches!(
            self,
            Self::Established | Self::CloseWait | Self::FinWait1 | Self::Closing | Self::LastAck
        )
    }
}

/// A snapshot of a connection, as `TCP_INFO` shows it.
#[derive(Clone, Copy, Debug)]
pub struct TcpInfo {
    /// Where it stands.
    pub state: State,
    /// Smoothed round-trip time.
    pub srtt: Duration,
    /// Its mean deviation.
    pub rttvar: Duration,
    /// The retransmission timeout.
    pub rto: Duration,
    /// Congestion window in bytes.
    pub cwnd: u32,
    /// Slow start threshold in bytes.
    pub ssthresh: u32,
    /// Payload bytes of a full segment that we send.
    pub mss: u16,
    /// Bytes in flight.
    pub in_flight: u32,
    /// Bytes that wait to be sent.
    pub unsent: usize,
    /// Bytes that wait for the program.
    pub unread: usize,
    /// The peer's window in bytes.
    pub peer_window: u32,
    /// Timeouts in a row without an answer.
    pub backoff: u8,
    /// Segments sent again in all.
    pub retransmitted: u32,
    /// Bytes that arrived at the peer so far.
    pub delivered: u64,
    /// Bytes a second that arrived lately.
    pub delivery_rate: u64,
    /// Bytes a second at which segments leave; `None` if they are not paced.
    pub pacing_rate: Option<u64>,
    /// The shortest round-trip time of late.
    pub min_rtt: Duration,
    /// Bytes sent, not known to have arrived, and taken for lost.
    pub lost: u32,
    /// How congestion is controlled.
    pub algorithm: Algorithm,
    /// Whether timestamps are in use.
    pub has_timestamps: bool,
    /// Whether selective acknowledgements are in use.
    pub has_sack: bool,
    /// Shifts of the peer's window and of ours.
    pub window_scales: (u8, u8),
}

impl Tcb {
    pub(crate) fn info(&self) -> TcpInfo {
        TcpInfo {
            state: self.state,
            srtt: self.rtt.smoothed(),
            rttvar: self.rtt.variation(),
            rto: self.rtt.timeout(),
            cwnd: self.congestion.window(),
            ssthresh: self.congestion.threshold(),
            mss: self.sender.mss,
            in_flight: self.in_flight(),
            unsent: self.sender.unsent.len(),
            unread: self.receiver.queue.len(),
            peer_window: self.sender.window,
            backoff: self.timers.backoff,
            retransmitted: self.retransmitted,
            delivered: self.rate.delivered(),
            delivery_rate: self.rate.latest(),
            pacing_rate: self.congestion.pacing_rate(),
            min_rtt: Duration::from_micros(u64::from(self.rtt.shortest())),
            lost: self.recovery.board.lost(),
            algorithm: self.congestion.algorithm(),
            has_timestamps: self.clocks.is_some(),
            has_sack: self.is_sack_ok,
            window_scales: (self.sender.scale, self.receiver.scale),
        }
    }
}

/// A line of `netstat`.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionEntry {
    /// The socket; `None` in TIME_WAIT.
    pub socket: Option<SocketId>,
    /// Where it stands.
    pub state: State,
    /// Our end.
    pub local: Endpoint,
    /// The peer's end.
    pub remote: Endpoint,
    /// Bytes that wait for the program (a listener: connections).
    pub unread: usize,
    /// Bytes without an acknowledgement, sent or not.
    pub unacked: usize,
}
