//! What one segment tells about delivery: which bytes arrived, and when the last of them
//! that we can place had left.

use base::Instant;
use wire::Seq;

use super::scoreboard::{Fate, Sent};

/// Gathered while the scoreboard takes in an acknowledgement and its blocks.
pub(super) struct Delivery {
    now: Instant,
    /// In microseconds.
    min_rtt: u32,
    /// The clock that the peer echoes, in milliseconds of ours.
    pub echo: Option<u32>,
    /// Bytes that had not been reported before.
    pub bytes: u32,
    /// Bytes that the acknowledgement has moved over.
    pub acked: u32,
    /// The stretch that left last, of those whose last copy has surely arrived.
    pub newest: Option<Sent>,
    /// The stretch that left last, of those that were sent once (Karn's rule).
    pub timed: Option<Instant>,
    /// The same as `foremost` before any of this arrived.
    had: Seq,
    /// End of what has arrived anywhere in the stream.
    pub foremost: Seq,
    /// A stretch sent once arrived behind one that left later.
    pub is_reordered: bool,
    /// What was sent again is now acknowledged.
    pub is_resent_acked: bool,
    /// The peer reports that something arrived twice (RFC 2883), so many bytes.
    pub doubled: u32,
}

impl Delivery {
    pub fn new(now: Instant, min_rtt: u32, echo: Option<u32>, foremost: Seq) -> Self {
        Self {
            now,
            min_rtt,
            echo,
            bytes: 0,
            acked: 0,
            newest: None,
            timed: None,
            had: foremost,
            foremost,
            is_reordered: false,
            is_resent_acked: false,
            doubled: 0,
        }
    }

    /// A stretch is acknowledged.
    #[inline]
    pub fn note_acknowledged(&mut self, sent: &Sent) {
        self.acked += sent.len();
        if sent.fate != Fate::Held {
            self.is_resent_acked |= sent.times > 0;
            let departed = sent.at.as_millis() as u32;
            let is_echo_older = self
                .echo
                .is_some_and(|echo| (echo.wrapping_sub(departed) as i32) < 0);
            self.place(sent, is_echo_older);
        }
    }

    /// A stretch is reported for the first time. What arrives out of order is not what the
    /// clock echoes (RFC 7323 4.3).
    pub fn note(&mut self, sent: &Sent) {
        self.place(sent, false);
    }

    #[inline]
    fn place(&mut self, sent: &Sent, is_echo_older: bool) {
        self.bytes += sent.len();
        self.foremost = self.foremost.max(sent.end);
        self.is_reordered |= sent.times == 0 && !sent.end.after(self.had);
        let is_later = |than: &Sent| sent.is_after(than.at, than.end);
        if sent.times == 0 {
            self.timed = self.timed.max(Some(sent.at));
        }
        if self.is_last_copy(sent, is_echo_older) && self.newest.as_ref().is_none_or(is_later) {
            self.newest = Some(*sent);
        }
    }

    /// Microseconds since `departure`.
    pub fn micros_since(&self, departure: Instant) -> u32 {
        u32::try_from(self.now.since(departure).as_micros()).unwrap_or(u32::MAX)
    }

    /// RFC 8985 6.2 step 2: whether the copy that arrived may be the last one sent. A single
    /// segment is an eighth faster than the shortest time that a flight has shown.
    fn is_last_copy(&self, sent: &Sent, is_echo_older: bool) -> bool {
        let is_possible = self.micros_since(sent.at) >= self.min_rtt - self.min_rtt / 8;
        sent.times == 0 || !is_echo_older && is_possible
    }
}
