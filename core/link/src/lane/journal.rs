//! The last frames that a lane dropped, so that somebody can watch drops as they happen.
//!
//! A counter says how many; this says which. An event has the frame's first bytes, from which
//! a reader learns whose it was. Each reason has a ring of its own, so that the many frames
//! for nobody that a promiscuous card takes do not push out the one that was forged; events of
//! a reason are numbered, so a reader knows how many it has missed.

use alloc::collections::VecDeque;

use base::Instant;
use mbuf::Chain;

use crate::counters::DropReason;
use crate::table::LinkId;

/// Events of one reason that a lane remembers.
pub const EVENTS_MAX: usize = 16;
/// Bytes of a frame that an event keeps: the headers of a tagged frame, up to the ports of an
/// IPv6 packet.
const HEAD_BYTES: usize = 64;

/// A frame, or a chain of them, went no further.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DropEvent {
    /// How many events of this reason there were before.
    pub serial: u64,
    /// When.
    pub at: Instant,
    /// Whose frame it was; `None` if it belonged to no client.
    pub link: Option<LinkId>,
    /// Why.
    pub reason: DropReason,
    /// How many frames; the rest is about the first.
    pub frames: u32,
    /// Bytes of the frame.
    pub len: u32,
    head: [u8; HEAD_BYTES],
}

impl DropEvent {
    /// The frame's first bytes.
    pub fn head(&self) -> &[u8] {
        &self.head[..(self.len as usize).min(HEAD_BYTES)]
    }
}

/// Bounded rings; in each the oldest event makes room.
#[derive(Debug, Default)]
pub(super) struct Journal {
    rings: [Ring; DropReason::ALL.len()],
}

#[derive(Debug, Default)]
struct Ring {
    events: VecDeque<DropEvent>,
    next: u64,
}

impl Journal {
    /// Remembers that `frames`, the first of which is `first`, were dropped.
    pub fn note(
        &mut self,
        at: Instant,
        link: Option<LinkId>,
        reason: DropReason,
        frames: usize,
        first: &Chain,
    ) {
        let ring = &mut self.rings[reason as usize];
        if ring.events.len() == EVENTS_MAX {
            ring.events.pop_front();
        }
        let mut head = [0; HEAD_BYTES];
        first.copy_to_slice(0, &mut head);
        ring.events.push_back(DropEvent {
            serial: ring.next,
            at,
            link,
            reason,
            frames: frames as u32,
            len: first.len() as u32,
            head,
        });
        ring.next += 1;
    }

    /// The events, of one reason after the other, the oldest first.
    pub fn events(&self) -> impl Iterator<Item = &DropEvent> {
        self.rings.iter().flat_map(|ring| &ring.events)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use mbuf::HeapPool;

    use super::*;
    use crate::testing::chain;

    #[test]
    fn a_flood_of_one_reason_leaves_the_events_of_the_others() {
        let (pool, mut journal) = (HeapPool::new(1), Journal::default());
        let frame = chain(&pool, &[7; 100]);
        journal.note(Instant::START, None, DropReason::MacSpoofed, 1, &frame);
        for _ in 0..1000 {
            journal.note(Instant::START, None, DropReason::NoClient, 1, &frame);
        }
        let events: Vec<_> = journal.events().collect();
        assert_eq!(events.len(), EVENTS_MAX + 1);
        let forged = events
            .iter()
            .find(|event| event.reason == DropReason::MacSpoofed);
        assert_eq!(
            forged.map(|event| (event.serial, event.head().len())),
            Some((0, 64))
        );
        let last = events.iter().map(|event| event.serial).max();
        assert_eq!(last, Some(999));
    }

    #[test]
    fn the_head_of_a_short_frame_is_the_frame() {
        let (pool, mut journal) = (HeapPool::new(1), Journal::default());
        let frame = chain(&pool, &[1, 2, 3]);
        journal.note(Instant::START, None, DropReason::Malformed, 2, &frame);
        let event = journal.events().next().expect("noted");
        assert_eq!((event.head(), event.frames), (&[1, 2, 3][..], 2));
    }
}
