//! Putting fragmented IPv4 packets together (RFC 791, RFC 8900), within strict limits.
//!
//! We never send fragments; some peers send large datagrams so. A packet is given up
//! after 30 s, at the first overlap (RFC 5722's rule, for IPv4 too), or when too many
//! are under way: the oldest goes first.

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use base::{Duration, Instant};
use mbuf::Chain;

const PACKETS_MAX: usize = 16;
const PIECES_MAX: usize = 48;
const LIFETIME: Duration = Duration::from_secs(30);
const PACKET_BYTES_MAX: usize = 65535;

/// What pieces of one packet have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FragmentKey {
    pub src: Ipv4Addr,
    pub dst: Ipv4Addr,
    pub protocol: u8,
    pub ident: u16,
}

struct Packet {
    key: FragmentKey,
    started: Instant,
    /// Sorted by offset, without overlaps.
    pieces: Vec<(usize, Chain)>,
    total: Option<usize>,
}

/// Packets under way.
#[derive(Default)]
pub(crate) struct Reassembly {
    packets: Vec<Packet>,
}

/// A piece could not be kept, and its packet with it.
pub(crate) struct GivenUp;

impl Reassembly {
    /// Adds a piece; returns the whole payload when it was the last one missing.
    pub fn add(
        &mut self,
        key: FragmentKey,
        offset: usize,
        is_last: bool,
        payload: Chain,
        now: Instant,
    ) -> Result<Option<Chain>, GivenUp> {
        self.packets
            .retain(|packet| now.since(packet.started) < LIFETIME);
        let at = match self.packets.iter().position(|packet| packet.key == key) {
            Some(at) => at,
            None => self.start(key, now),
        };
        let end = offset + payload.len();
        let packet = &mut self.packets[at];
        if end > PACKET_BYTES_MAX || !packet.insert(offset, is_last, payload) {
            self.packets.swap_remove(at);
            return Err(GivenUp);
        }
        if !packet.is_complete() {
            return Ok(None);
        }
        let mut whole = Chain::new();
        for (_, piece) in self.packets.swap_remove(at).pieces {
            whole.append(piece);
        }
        Ok(Some(whole))
    }

    /// Forgets packets whose rest did not come in time; says how many.
    pub fn expire(&mut self, now: Instant) -> usize {
        let before = self.packets.len();
        self.packets
            .retain(|packet| packet.started + LIFETIME > now);
        before - self.packets.len()
    }

    /// When the oldest packet is given up.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.packets
            .iter()
            .map(|packet| packet.started + LIFETIME)
            .min()
    }

    fn start(&mut self, key: FragmentKey, now: Instant) -> usize {
        if self.packets.len() >= PACKETS_MAX {
            let oldest = (0..self.packets.len()).min_by_key(|at| self.packets[*at].started);
            if let Some(oldest) = oldest {
                self.packets.swap_remove(oldest);
            }
        }
        self.packets.push(Packet {
            key,
            started: now,
            pieces: Vec::new(),
            total: None,
        });
        self.packets.len() - 1
    }
}

impl Packet {
    /// `false` if the piece contradicts others or is one too many.
    fn insert(&mut self, offset: usize, is_last: bool, payload: Chain) -> bool {
        let end = offset + payload.len();
        if is_last {
            if self.total.is_some_and(|total| total != end) {
                return false;
            }
            self.total = Some(end);
        } else if payload.is_empty() || !payload.len().is_multiple_of(8) {
            return false;
        }
        let at = self.pieces.partition_point(|(start, _)| *start < offset);
        let before_ends = at
            .checked_sub(1)
            .map_or(0, |i| self.pieces[i].0 + self.pieces[i].1.len());
        let next_starts = self.pieces.get(at).map_or(usize::MAX, |(start, _)| *start);
        let fits = before_ends <= offset && end <= next_starts && self.pieces.len() < PIECES_MAX;
        if fits {
            self.pieces.insert(at, (offset, payload));
        }
        fits
    }

    fn is_complete(&self) -> bool {
        let bytes: usize = self.pieces.iter().map(|(_, piece)| piece.len()).sum();
        self.total == Some(bytes)
    }
}
