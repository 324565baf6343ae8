//! Putting fragmented packets together (RFC 791, RFC 8200 4.5, RFC 8900), within limits.
//!
//! A packet is given up when its time is over, or when too many are under way: the oldest
//! goes first, and one source has a share only. Overlapping pieces are an attack
//! (RFC 5722, which we follow for IPv4 too): such a packet is *spoiled*, so that pieces of
//! it that are still to come are refused as well. A piece that comes twice is not an
//! overlap (RFC 8200 4.5).
//!
//! Who sent a first piece and no rest is told so (RFC 792, RFC 4443 3.3), therefore the
//! first piece's headers are kept.

use alloc::vec::Vec;
use core::net::IpAddr;

use base::{Duration, Instant};
use mbuf::Chain;

use crate::addr::Addresses;

const PACKETS_MAX: usize = 32;
/// Of one source.
const PACKETS_PER_SOURCE_MAX: usize = 8;
/// A packet of 65535 bytes in pieces of 1280.
const PIECES_MAX: usize = 56;
/// Memory of all pieces, by their buffers.
const FOOTPRINT_MAX: usize = 1 << 20;
/// Linux's `ipfrag_time`.
const LIFETIME_V4: Duration = Duration::from_secs(30);
/// RFC 8200 4.5.
const LIFETIME_V6: Duration = Duration::from_secs(60);
const PAYLOAD_BYTES_MAX: usize = 65535;

/// What pieces of one packet have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FragmentKey {
    pub addresses: Addresses,
    /// IPv4 only; RFC 8200 leaves it out.
    pub protocol: u8,
    pub ident: u32,
}

/// A piece of a packet.
pub(crate) struct Piece<'a> {
    pub key: FragmentKey,
    /// In bytes.
    pub offset: usize,
    pub is_last: bool,
    /// IP header to fragment header.
    pub headers: &'a [u8],
    pub payload: Chain,
}

struct Packet {
    key: FragmentKey,
    started: Instant,
    /// Sorted by offset, without overlaps.
    pieces: Vec<(usize, Chain)>,
    total: Option<usize>,
    /// Of the first piece, once that is here.
    headers: Vec<u8>,
    /// Nothing of it is kept, and nothing more is taken.
    is_spoiled: bool,
}

/// Why a piece was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    /// It reaches beyond the longest packet.
    TooLong,
    /// Its length is not a multiple of eight although pieces follow.
    Uneven,
    /// It overlaps others or contradicts them, or others of its packet did.
    Overlap,
    /// More pieces or memory than we keep.
    Limit,
}

/// A packet that was given up for lack of pieces.
pub(crate) struct Expired {
    pub addresses: Addresses,
    /// The first piece from its IP header on, if it was here.
    pub first: Option<(Vec<u8>, Chain)>,
}

/// Packets under way.
#[derive(Default)]
pub(crate) struct Reassembly {
    packets: Vec<Packet>,
    footprint: usize,
    /// Given up before their time because there were too many.
    pub evicted: u64,
}

impl Reassembly {
    /// Adds a piece; returns the whole payload when it was the last one missing, with the
    /// first piece's headers.
    pub fn add(
        &mut self,
        piece: Piece<'_>,
        now: Instant,
    ) -> Result<Option<(Vec<u8>, Chain)>, Refused> {
        let end = piece.offset + piece.payload.len();
        if end > PAYLOAD_BYTES_MAX {
            return Err(Refused::TooLong);
        }
        if !piece.is_last && (piece.payload.is_empty() || !piece.payload.len().is_multiple_of(8)) {
            return Err(Refused::Uneven);
        }
        let at = match self
            .packets
            .iter()
            .position(|packet| packet.key == piece.key)
        {
            Some(at) => at,
            None => self.start(piece.key, now).ok_or(Refused::Limit)?,
        };
        let before = self.packets[at].footprint();
        let inserted = self.packets[at].insert(piece);
        let after = self.packets[at].footprint();
        self.footprint = self.footprint - before + after;
        inserted?;
        if self.packets[at].is_complete() {
            let packet = self.remove(at);
            let mut whole = Chain::new();
            for (_, piece) in packet.pieces {
                whole.append(piece);
            }
            return Ok(Some((packet.headers, whole)));
        }
        while self.footprint > FOOTPRINT_MAX {
            self.evict(|_| true);
        }
        Ok(None)
    }

    /// Takes away a packet whose rest did not come in time.
    pub fn pop_expired(&mut self, now: Instant) -> Option<Expired> {
        let is_late = |packet: &Packet| packet.deadline() <= now;
        let at = self.packets.iter().position(is_late)?;
        let packet = self.remove(at);
        let has_first = !packet.headers.is_empty();
        let first = packet.pieces.into_iter().next().map(|(_, first)| first);
        Some(Expired {
            addresses: packet.key.addresses,
            first: first
                .filter(|_| has_first)
                .map(|first| (packet.headers, first)),
        })
    }

    /// When the oldest packet is given up.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.packets.iter().map(Packet::deadline).min()
    }

    fn remove(&mut self, at: usize) -> Packet {
        let packet = self.packets.swap_remove(at);
        self.footprint -= packet.footprint();
        packet
    }

    fn evict(&mut self, is_candidate: impl Fn(&Packet) -> bool) {
        let oldest = (0..self.packets.len())
            .filter(|at| is_candidate(&self.packets[*at]))
            .min_by_key(|at| self.packets[*at].started);
        if let Some(oldest) = oldest {
            self.remove(oldest);
            self.evicted += 1;
        }
    }

    /// A place for a new packet; `None` without memory.
    fn start(&mut self, key: FragmentKey, now: Instant) -> Option<usize> {
        let src = key.addresses.src();
        let is_of_source = |packet: &Packet| packet.key.addresses.src() == src;
        let of_source = self.packets.iter().filter(|packet| is_of_source(packet));
        if of_source.count() >= PACKETS_PER_SOURCE_MAX {
            self.evict(is_of_source);
        } else if self.packets.len() >= PACKETS_MAX {
            self.evict(|_| true);
        }
        self.packets.try_reserve(1).ok()?;
        self.packets.push(Packet {
            key,
            started: now,
            pieces: Vec::new(),
            total: None,
            headers: Vec::new(),
            is_spoiled: false,
        });
        Some(self.packets.len() - 1)
    }
}

impl Packet {
    fn deadline(&self) -> Instant {
        let lifetime = match self.key.addresses.dst() {
            IpAddr::V4(_) => LIFETIME_V4,
            IpAddr::V6(_) => LIFETIME_V6,
        };
        self.started + lifetime
    }

    fn footprint(&self) -> usize {
        let pieces = self.pieces.iter().map(|(_, piece)| piece.footprint());
        pieces.sum::<usize>() + self.headers.len()
    }

    fn spoil(&mut self, why: Refused) -> Refused {
        (self.pieces, self.headers) = (Vec::new(), Vec::new());
        self.is_spoiled = true;
        why
    }

    fn insert(&mut self, piece: Piece<'_>) -> Result<(), Refused> {
        let (start, end) = (piece.offset, piece.offset + piece.payload.len());
        if self.is_spoiled {
            return Err(Refused::Overlap);
        }
        let at = self.pieces.partition_point(|(other, _)| *other < start);
        if let Some((other, held)) = self.pieces.get(at)
            && (*other, held.len()) == (start, piece.payload.len())
        {
            return Ok(());
        }
        let is_behind_total = self.total.is_some_and(|total| match piece.is_last {
            true => total != end,
            false => end > total,
        });
        let ends = |(start, held): &(usize, Chain)| start + held.len();
        let before_ends = at.checked_sub(1).map_or(0, |i| ends(&self.pieces[i]));
        let next_starts = self.pieces.get(at).map_or(usize::MAX, |(start, _)| *start);
        let last_ends = self.pieces.last().map_or(0, ends);
        let is_short = piece.is_last && last_ends > end;
        if is_behind_total || is_short || before_ends > start || end > next_starts {
            return Err(self.spoil(Refused::Overlap));
        }
        let headers = if start == 0 { piece.headers } else { &[] };
        let has_room = self.pieces.try_reserve(1).is_ok()
            && self.headers.try_reserve_exact(headers.len()).is_ok();
        if self.pieces.len() >= PIECES_MAX || !has_room {
            return Err(self.spoil(Refused::Limit));
        }
        if piece.is_last {
            self.total = Some(end);
        }
        self.headers.extend_from_slice(headers);
        self.pieces.insert(at, (start, piece.payload));
        Ok(())
    }

    fn is_complete(&self) -> bool {
        let bytes: usize = self.pieces.iter().map(|(_, piece)| piece.len()).sum();
        self.total == Some(bytes) && !self.is_spoiled
    }
}

#[cfg(test)]
mod tests {
    use core::net::Ipv6Addr;

    use alloc::vec;

    use mbuf::{HeapPool, Pool};

    use super::*;

    const NOW: Instant = Instant::from_millis(1000);

    fn key(host: u16, ident: u32) -> FragmentKey {
        FragmentKey {
            addresses: Addresses::V6 {
                src: Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, host),
                dst: Ipv6Addr::LOCALHOST,
            },
            protocol: 0,
            ident,
        }
    }

    fn payload(pool: &mut HeapPool, len: usize, fill: u8) -> Chain {
        let mut buffer = pool.alloc().expect("a buffer");
        buffer.append(&vec![fill; len]);
        Chain::from(buffer)
    }

    fn piece(key: FragmentKey, offset: usize, is_last: bool, payload: Chain) -> Piece<'static> {
        Piece {
            key,
            offset,
            is_last,
            headers: b"headers",
            payload,
        }
    }

    #[test]
    fn pieces_in_any_order_make_the_packet_and_duplicates_do_no_harm() {
        let pool = &mut HeapPool::new(16);
        let mut reassembly = Reassembly::default();
        let key = key(1, 7);
        let tail = payload(pool, 5, 3);
        assert_eq!(
            reassembly
                .add(piece(key, 32, true, tail), NOW)
                .map(|whole| whole.is_some()),
            Ok(false)
        );
        for _ in 0..2 {
            let middle = payload(pool, 16, 2);
            assert!(
                reassembly
                    .add(piece(key, 16, false, middle), NOW)
                    .is_ok_and(|whole| whole.is_none())
            );
        }
        let head = payload(pool, 16, 1);
        let whole = reassembly.add(piece(key, 0, false, head), NOW);
        let (headers, whole) = whole.expect("no fault").expect("all of it");
        assert_eq!((headers.as_slice(), whole.len()), (&b"headers"[..], 37));
        drop(whole);
        assert_eq!((pool.used(), reassembly.footprint), (0, 0));
    }

    #[test]
    fn an_overlap_spoils_the_packet_for_pieces_to_come_too() {
        let pool = &mut HeapPool::new(16);
        let mut reassembly = Reassembly::default();
        let key = key(1, 7);
        let mut add = |offset, is_last, len| {
            let payload = payload(pool, len, 0);
            let added = reassembly.add(piece(key, offset, is_last, payload), NOW);
            added.map(|whole| whole.is_some())
        };
        assert_eq!(add(0, false, 16), Ok(false));
        assert_eq!(add(8, false, 16), Err(Refused::Overlap));
        assert_eq!(add(16, true, 8), Err(Refused::Overlap));
        assert_eq!(add(0, false, 16), Err(Refused::Overlap));
        assert_eq!(reassembly.footprint, 0);
        assert!(
            reassembly
                .pop_expired(NOW + LIFETIME_V6)
                .is_some_and(|late| late.first.is_none())
        );
        assert_eq!(pool.used(), 0);
    }

    #[test]
    fn a_piece_beyond_the_end_contradicts_it() {
        let pool = &mut HeapPool::new(16);
        let mut reassembly = Reassembly::default();
        let last = payload(pool, 8, 0);
        assert!(
            reassembly
                .add(piece(key(1, 1), 16, true, last), NOW)
                .is_ok()
        );
        let beyond = payload(pool, 8, 0);
        let refused = reassembly.add(piece(key(1, 1), 24, false, beyond), NOW);
        assert_eq!(refused.err(), Some(Refused::Overlap));
        let far = payload(pool, 8, 0);
        assert!(
            reassembly
                .add(piece(key(1, 2), 24, false, far), NOW)
                .is_ok()
        );
        let early = payload(pool, 8, 0);
        let refused = reassembly.add(piece(key(1, 2), 8, true, early), NOW);
        assert_eq!(refused.err(), Some(Refused::Overlap));
    }

    #[test]
    fn pieces_that_cannot_be_are_refused() {
        let pool = &mut HeapPool::new(16);
        let mut reassembly = Reassembly::default();
        let mut add = |offset, is_last, len| {
            let payload = payload(pool, len, 0);
            reassembly
                .add(piece(key(1, 1), offset, is_last, payload), NOW)
                .err()
        };
        assert_eq!(add(65528, true, 16), Some(Refused::TooLong));
        assert_eq!(add(0, false, 12), Some(Refused::Uneven));
        assert_eq!(add(0, false, 0), Some(Refused::Uneven));
    }

    #[test]
    fn one_source_cannot_displace_the_packets_of_another() {
        let pool = &mut HeapPool::new(256);
        let mut reassembly = Reassembly::default();
        let head = payload(pool, 8, 0);
        reassembly
            .add(piece(key(2, 1), 0, false, head), NOW)
            .expect("kept");
        for ident in 0..100 {
            let head = payload(pool, 8, 0);
            reassembly
                .add(piece(key(1, ident), 0, false, head), NOW)
                .expect("kept");
        }
        assert_eq!(reassembly.packets.len(), 1 + PACKETS_PER_SOURCE_MAX);
        assert_eq!(reassembly.evicted, 100 - PACKETS_PER_SOURCE_MAX as u64);
        let tail = payload(pool, 3, 0);
        let whole = reassembly.add(piece(key(2, 1), 8, true, tail), NOW);
        assert!(whole.is_ok_and(|whole| whole.is_some()));
    }

    #[test]
    fn a_packet_whose_rest_does_not_come_is_given_up_with_its_first_piece() {
        let pool = &mut HeapPool::new(16);
        let mut reassembly = Reassembly::default();
        let head = payload(pool, 8, 9);
        reassembly
            .add(piece(key(1, 1), 0, false, head), NOW)
            .expect("kept");
        let due = reassembly.next_deadline().expect("a deadline");
        assert!(
            reassembly
                .pop_expired(due - Duration::from_millis(1))
                .is_none()
        );
        let late = reassembly.pop_expired(due).expect("late");
        assert!(
            late.first
                .is_some_and(|(headers, first)| headers == b"headers" && first.len() == 8)
        );
        assert_eq!(reassembly.next_deadline(), None);
    }
}
