//! Where zones lie, and in which order each node asks them.
//!
//! Zones divide all frame numbers without a gap, so that every frame has one, whatever the
//! firmware left out. Their borders are multiples of [`PAGES_MAX`]: no block of the buddy
//! crosses one. Fixed when the machine starts, so it needs no lock.

use core::ops::Range;

use crate::{FrameNo, PAGES_MAX};

/// Zones of a machine at most.
pub const ZONES_MAX: usize = 12;
/// Nodes of a machine at most.
pub const NODES_MAX: usize = 8;
/// First frame that 32 address bits do not reach.
const LOW_END: FrameNo = 1 << (32 - base::PAGE_SHIFT);
/// Behind all frames.
const END: FrameNo = FrameNo::MAX;

/// A part of the machine whose CPUs are nearer to some RAM than to other, below
/// [`NODES_MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Node(pub u8);

#[derive(Clone, Copy, Debug)]
struct Place {
    node: Node,
    start: FrameNo,
    end: FrameNo,
}

/// The zones of a machine.
#[derive(Debug)]
pub struct Layout {
    places: [Place; ZONES_MAX],
    len: usize,
    /// For each node, the zones from the nearest on.
    orders: [[u8; ZONES_MAX]; NODES_MAX],
}

impl Layout {
    /// Zones where the frames from each of `starts`, which ascend, to the next belong to
    /// its node. Each node asks its own zones first, then those of others by `distance`,
    /// and above 4 GiB before below, to keep the rest for devices that reach no further.
    ///
    /// Starts are rounded down to [`PAGES_MAX`]. Where there would be more than
    /// [`ZONES_MAX`] zones, some starts are left out.
    pub fn new(starts: &[(FrameNo, Node)], distance: impl Fn(Node, Node) -> u8) -> Self {
        let known = |&(_, node): &(FrameNo, Node)| usize::from(node.0) < NODES_MAX;
        let starts = || {
            let starts = starts.iter().copied().filter(known);
            starts.map(|(start, node)| (start / PAGES_MAX * PAGES_MAX, node))
        };
        let first = starts().next().map_or(Node(0), |(_, node)| node);
        let at_line = starts().rfind(|&(start, _)| start <= LOW_END);
        let at_line = at_line.map_or(first, |(_, node)| node);
        let mut layout = Self::whole(first);
        let below = starts().filter(|&(start, _)| start < LOW_END);
        let above = starts().filter(|&(start, _)| start > LOW_END);
        for (start, node) in below.chain([(LOW_END, at_line)]).chain(above) {
            layout.cut(start, node);
        }
        layout.sort(distance);
        layout
    }

    /// One zone.
    fn whole(node: Node) -> Self {
        let whole = Place {
            node,
            start: 0,
            end: END,
        };
        Self {
            places: [whole; ZONES_MAX],
            len: 1,
            orders: [[0; ZONES_MAX]; NODES_MAX],
        }
    }

    /// What lies from `start` on is `node`'s. Keeps room for the cut at 4 GiB.
    fn cut(&mut self, start: FrameNo, node: Node) {
        let room = ZONES_MAX - usize::from(start < LOW_END);
        let last = &mut self.places[self.len - 1];
        if start == last.start {
            last.node = node;
        } else if start > last.start && (node != last.node || start == LOW_END) && self.len < room {
            last.end = start;
            self.places[self.len] = Place {
                node,
                start,
                end: END,
            };
            self.len += 1;
        }
    }

    fn sort(&mut self, distance: impl Fn(Node, Node) -> u8) {
        for (order, node) in self.orders.iter_mut().zip(0..) {
            let order = &mut order[..self.len];
            order
                .iter_mut()
                .zip(0..)
                .for_each(|(slot, zone)| *slot = zone);
            order.sort_unstable_by_key(|&zone| {
                let place = self.places[usize::from(zone)];
                let is_far = place.node != Node(node);
                (
                    is_far,
                    distance(Node(node), place.node),
                    place.start < LOW_END,
                    zone,
                )
            });
        }
    }

    /// How many zones there are.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// The zones, nearest to `node` first.
    #[inline]
    pub(crate) fn order(&self, node: Node) -> impl Iterator<Item = usize> {
        let order = &self.orders[usize::from(node.0) % NODES_MAX];
        order[..self.len].iter().map(|&zone| usize::from(zone))
    }

    /// The zone of a frame.
    #[inline]
    pub(crate) fn zone_of(&self, frame: FrameNo) -> usize {
        let borders = &self.places[..self.len - 1];
        borders
            .iter()
            .take_while(|place| place.end <= frame)
            .count()
    }

    /// Whose frame it is.
    pub fn node_of(&self, frame: FrameNo) -> Node {
        self.node(self.zone_of(frame))
    }

    pub(crate) fn node(&self, zone: usize) -> Node {
        self.places[zone].node
    }

    /// The frames of a zone.
    #[inline]
    pub(crate) fn span(&self, zone: usize) -> Range<FrameNo> {
        self.places[zone].start..self.places[zone].end
    }

    /// Whether 32 address bits reach all of a zone.
    #[inline]
    pub(crate) fn is_low(&self, zone: usize) -> bool {
        self.places[zone].end <= LOW_END
    }

    /// The longest run of frames that are all `node`'s.
    pub fn home_of(&self, node: Node) -> Range<FrameNo> {
        let runs = self.places[..self.len].chunk_by(|place, next| place.node == next.node);
        let own = runs.filter(|run| run[0].node == node);
        let spans = own.map(|run| run[0].start..run[run.len() - 1].end);
        spans
            .max_by_key(|span| span.end - span.start)
            .unwrap_or(0..0)
    }
}
