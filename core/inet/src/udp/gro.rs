//! Datagrams that wait are joined (Linux's UDP_GRO): a program reads many of one size at once.
//!
//! Those of one sender to one address join if only the last is shorter than the first, so that
//! the first's size says where each begins. What differs between two of them, as the hops left,
//! keeps them apart, for it is told once. They join in the socket's queue: as many as came since
//! the program last looked, so nothing waits for more.

use super::Datagram;

/// Bytes of what is joined at most: what a single datagram can have.
const JOINED_BYTES_MAX: usize = u16::MAX as usize - 28;
/// Datagrams that are joined at most, as in Linux (UDP_GRO_CNT_MAX).
const JOINED_MAX: usize = 64;

impl Datagram {
    /// Bytes of each datagram but the last.
    fn size(&self) -> usize {
        match self.segment_bytes {
            0 => self.payload.len(),
            size => size.into(),
        }
    }

    /// Whether `next` may join this one.
    pub(super) fn is_followed_by(&self, next: &Self) -> bool {
        let (len, more, size) = (self.payload.len(), next.payload.len(), self.size());
        let is_alike = (self.from, self.to, self.hop_limit, self.tos)
            == (next.from, next.to, next.hop_limit, next.tos);
        // A shorter one was the last.
        let is_open = size != 0 && len % size == 0 && len / size < JOINED_MAX;
        is_alike && is_open && (1..=size).contains(&more) && len + more <= JOINED_BYTES_MAX
    }

    /// Takes `next` in, which [`is_followed_by`](Self::is_followed_by) allows.
    pub(super) fn join(&mut self, next: Self) {
        // A payload has less than 64 KiB.
        self.segment_bytes = self.size() as u16;
        self.payload.append(next.payload);
    }
}
