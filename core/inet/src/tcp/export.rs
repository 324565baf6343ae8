//! A connection becomes a value (`snapshot` has the theory). Nothing is sent.

use alloc::vec::Vec;

use base::Instant;
use mbuf::Chain;

use super::info::State;
use super::snapshot::{ClockSnapshot, ReceiveSnapshot, SendSnapshot, TcpSnapshot, push};
use super::tcb::{Fin, Tcb};
use crate::error::Error;

/// Bytes that timestamps take of each segment.
pub(super) const TIMESTAMPS_BYTES: u16 = 12;

impl State {
    /// Whether a connection in it can go on elsewhere.
    pub const fn is_portable(self) -> bool {
        self.is_synchronized() && !matches!(self, Self::TimeWait)
    }

    /// Whether the peer has acknowledged all but our FIN, or may have to.
    pub(super) const fn may_have_fin_in_flight(self) -> bool {
        matches!(self, Self::FinWait1 | Self::Closing | Self::LastAck)
    }
}

impl Tcb {
    /// The connection, or the socket without one, as it is at `now`.
    ///
    /// Errors: `InvalidState` while it is being made, and when it is over; `NoBuffers`.
    pub(super) fn snapshot(&self, now: Instant) -> Result<TcpSnapshot, Error> {
        let is_fresh = self.state == State::Closed && self.receiver.queue.is_empty();
        if !is_fresh && !self.state.is_portable() {
            return Err(Error::InvalidState);
        }
        let micros = |time: base::Duration| u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        Ok(TcpSnapshot {
            local: self.tuple.local,
            remote: self.tuple.remote,
            state: self.state,
            options: self.options,
            sending: self.send_snapshot()?,
            receiving: self.receive_snapshot()?,
            clocks: self.clocks.map(|clocks| ClockSnapshot {
                own: self.clock(now),
                recent: clocks.recent,
            }),
            has_sack: self.is_sack_ok,
            has_ecn: self.ecn.is_on,
            rtt_micros: (micros(self.rtt.smoothed()), micros(self.rtt.variation())),
        })
    }

    fn send_snapshot(&self) -> Result<SendSnapshot, Error> {
        let sender = &self.sender;
        let options = if self.clocks.is_some() {
            TIMESTAMPS_BYTES
        } else {
            0
        };
        Ok(SendSnapshot {
            una: sender.una.0,
            unacked: bytes_of(&sender.flight)?,
            unsent: bytes_of(&sender.unsent)?,
            is_fin_sent: sender.fin == Fin::Sent && self.state.may_have_fin_in_flight(),
            window: sender.window,
            window_max: sender.window_max,
            // What came out of order may have changed it, and is forgotten.
            wl1: sender.wl1.min(self.receiver.nxt).0,
            scale: sender.scale,
            mss: sender.mss.saturating_add(options),
        })
    }

    fn receive_snapshot(&self) -> Result<ReceiveSnapshot, Error> {
        let receiver = &self.receiver;
        Ok(ReceiveSnapshot {
            nxt: receiver.nxt.0,
            window: receiver.edge.max(receiver.nxt).since(receiver.nxt),
            scale: receiver.scale,
            unread: bytes_of(&receiver.queue)?,
            is_shut: receiver.is_shut,
        })
    }
}

pub(super) fn bytes_of(chain: &Chain) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let room = bytes.try_reserve_exact(chain.len());
    room.map_err(|_| Error::NoBuffers)?;
    for piece in chain.slices() {
        push(&mut bytes, piece)?;
    }
    Ok(bytes)
}
