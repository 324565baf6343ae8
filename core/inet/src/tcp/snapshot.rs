//! A connection as a value: all that another stack needs to go on with it.
//!
//! # Problem
//! A program is moved to another process or host, or a stack is replaced by a newer one, and the
//! peer must not notice more than a pause. Linux lets a program take a connection apart and put
//! it together again (TCP_REPAIR); we give it the same as one value.
//!
//! # Idea
//! The two ends of a connection agree on few numbers: how far each stream has come, how far its
//! receiver lets it go, and what their SYNs have settled once and for all. With these go the
//! bytes that are in neither end's program yet. Everything else is an estimate, and is made anew:
//! congestion windows, what the peer holds out of order, what of ours arrived early (the peer
//! sends it again; RFC 2018 section 8 allows to forget it). Round-trip times are kept, because
//! the first timeout depends on them.
//!
//! Invariant: no value is believed. Whoever has made a snapshot may be a program; [`import`] says
//! what is refused and what is cut to its limits.
//!
//! [`export`] makes it of a connection, [`import`] the reverse, [`frozen`] is a socket that holds
//! one, [`departed`] remembers the names of connections that are on their way.
//!
//! [`export`]: super::export
//! [`import`]: super::import
//! [`frozen`]: super::frozen
//! [`departed`]: super::departed

use alloc::vec::Vec;

use base::Duration;

use super::info::{State, TcpInfo};
use crate::addr::Endpoint;
use crate::error::Error;
use crate::options::Options;

/// A connection that stands still, or a socket without one.
#[derive(PartialEq, Eq, Debug)]
pub struct TcpSnapshot {
    /// Our end.
    pub local: Endpoint,
    /// The peer's end.
    pub remote: Endpoint,
    /// Where it stands: from ESTABLISHED to LAST_ACK, or CLOSED.
    pub state: State,
    /// The socket's options.
    pub options: Options,
    /// Our stream.
    pub sending: SendSnapshot,
    /// The peer's stream.
    pub receiving: ReceiveSnapshot,
    /// Timestamps (RFC 7323), if both ends use them.
    pub clocks: Option<ClockSnapshot>,
    /// Both ends take selective acknowledgements.
    pub has_sack: bool,
    /// Both ends understand marks (RFC 3168).
    pub has_ecn: bool,
    /// The smoothed round-trip time in microseconds, zero if there was none yet, and its
    /// variation.
    pub rtt_micros: (u32, u32),
}

/// Our stream.
#[derive(PartialEq, Eq, Debug)]
pub struct SendSnapshot {
    /// The oldest byte without an acknowledgement.
    pub una: u32,
    /// Bytes from there on that were sent.
    pub unacked: Vec<u8>,
    /// Bytes behind them that were not.
    pub unsent: Vec<u8>,
    /// Our FIN was sent behind all these, and not acknowledged.
    pub is_fin_sent: bool,
    /// What the peer takes from `una` on.
    pub window: u32,
    /// The largest window that it ever offered.
    pub window_max: u32,
    /// The sequence number of the segment that last changed the window.
    pub wl1: u32,
    /// Shift of the peer's window field.
    pub scale: u8,
    /// Payload bytes of a full segment, options not taken off.
    pub mss: u16,
}

/// The peer's stream.
#[derive(PartialEq, Eq, Debug)]
pub struct ReceiveSnapshot {
    /// The next byte expected, behind the peer's FIN if that has come.
    pub nxt: u32,
    /// Bytes from there on that we have offered to take.
    pub window: u32,
    /// Shift of our window field.
    pub scale: u8,
    /// Bytes that the program has not read.
    pub unread: Vec<u8>,
    /// The program wants no more.
    pub is_shut: bool,
}

/// Both clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockSnapshot {
    /// Ours, in milliseconds, at the time of the snapshot.
    pub own: u32,
    /// The peer's latest; zero if it is not known.
    pub recent: u32,
}

impl SendSnapshot {
    /// The sequence number of the next byte that the program writes.
    pub fn end(&self) -> u32 {
        let bytes = (self.unacked.len() + self.unsent.len()) as u32;
        self.una.wrapping_add(bytes)
    }

    /// Bytes that were not acknowledged, sent or not.
    pub fn len(&self) -> usize {
        self.unacked.len() + self.unsent.len()
    }

    /// Whether all was acknowledged.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl TcpSnapshot {
    /// The same once more.
    ///
    /// Errors: `NoBuffers` without memory for its bytes.
    pub fn try_clone(&self) -> Result<Self, Error> {
        let copy = |bytes: &[u8]| {
            let mut copy = Vec::new();
            push(&mut copy, bytes).map(|()| copy)
        };
        Ok(Self {
            sending: SendSnapshot {
                unacked: copy(&self.sending.unacked)?,
                unsent: copy(&self.sending.unsent)?,
                ..self.sending
            },
            receiving: ReceiveSnapshot {
                unread: copy(&self.receiving.unread)?,
                ..self.receiving
            },
            ..*self
        })
    }

    /// What tools may know of it.
    pub fn info(&self) -> TcpInfo {
        let micros = |micros: u32| Duration::from_micros(u64::from(micros));
        let (smoothed, variation) = self.rtt_micros;
        TcpInfo {
            state: self.state,
            srtt: micros(smoothed),
            rttvar: micros(variation),
            rto: micros(0),
            cwnd: 0,
            ssthresh: 0,
            mss: self.sending.mss,
            in_flight: self.sending.unacked.len() as u32,
            unsent: self.sending.unsent.len(),
            unread: self.receiving.unread.len(),
            peer_window: self.sending.window,
            backoff: 0,
            retransmitted: 0,
            delivered: 0,
            delivery_rate: 0,
            pacing_rate: None,
            min_rtt: micros(0),
            lost: 0,
            algorithm: self.options.congestion,
            has_timestamps: self.clocks.is_some(),
            has_sack: self.has_sack,
            window_scales: (self.sending.scale, self.receiving.scale),
        }
    }
}

/// Adds bytes to a queue of a snapshot.
///
/// Errors: `NoBuffers` without memory for them.
pub(super) fn push(queue: &mut Vec<u8>, bytes: &[u8]) -> Result<(), Error> {
    queue
        .try_reserve(bytes.len())
        .map_err(|_| Error::NoBuffers)?;
    queue.extend_from_slice(bytes);
    Ok(())
}
