//! How RAM is divided, and who asks whom.

use std::vec::Vec;

use super::{LOW_END, distance};
use crate::{FrameNo, Layout, Node, PAGES_MAX, ZONES_MAX};

const MIB_256: FrameNo = 1 << 16;

fn borders(layout: &Layout) -> Vec<(Node, FrameNo)> {
    let zones = 0..layout.len();
    zones
        .map(|zone| (layout.node(zone), layout.span(zone).end))
        .collect()
}

#[test]
fn a_machine_of_one_node_is_cut_at_4_gib() {
    let layout = Layout::new(&[], distance);
    let ends: Vec<_> = borders(&layout).iter().map(|&(_, end)| end).collect();
    assert_eq!(ends, [LOW_END, FrameNo::MAX]);
    assert_eq!(layout.order(Node(0)).collect::<Vec<_>>(), [1, 0]);
    assert_eq!(layout.home_of(Node(0)), 0..FrameNo::MAX);
}

#[test]
fn every_frame_has_a_zone_and_the_borders_are_those_of_the_largest_block() {
    let starts = [(5, Node(0)), (MIB_256 + 7, Node(1)), (2 * LOW_END, Node(0))];
    let layout = Layout::new(&starts, distance);
    let expected = [
        (Node(0), MIB_256),
        (Node(1), LOW_END),
        (Node(1), 2 * LOW_END),
        (Node(0), FrameNo::MAX),
    ];
    assert_eq!(borders(&layout), expected);
    for (frame, node) in [
        (0, 0),
        (MIB_256 - 1, 0),
        (MIB_256, 1),
        (LOW_END, 1),
        (u64::MAX, 0),
    ] {
        assert_eq!(layout.node_of(frame), Node(node), "frame {frame}");
    }
    assert_eq!(layout.home_of(Node(1)), MIB_256..2 * LOW_END);
    assert!(layout.home_of(Node(2)).is_empty());
}

#[test]
fn a_node_asks_itself_then_the_others_by_distance_and_high_before_low() {
    let starts = [
        (0, Node(0)),
        (MIB_256, Node(1)),
        (LOW_END + MIB_256, Node(2)),
    ];
    let ring = |from: Node, to: Node| match (from.0, to.0) {
        (0, 2) | (2, 0) => 15,
        _ => 30,
    };
    let layout = Layout::new(&starts, ring);
    // Zones: 0 and 1 are below 4 GiB, of nodes 0 and 1; then node 1 again, then node 2.
    assert_eq!(layout.order(Node(0)).collect::<Vec<_>>(), [0, 3, 2, 1]);
    assert_eq!(layout.order(Node(1)).collect::<Vec<_>>(), [2, 1, 3, 0]);
    assert_eq!(layout.order(Node(2)).collect::<Vec<_>>(), [3, 0, 2, 1]);
}

#[test]
fn distances_that_make_no_sense_do_not_take_a_node_its_own_memory() {
    let starts = [(0, Node(0)), (MIB_256, Node(1))];
    let upside_down = |from, to| u8::MAX - distance(from, to);
    let layout = Layout::new(&starts, upside_down);
    assert_eq!(layout.order(Node(1)).next(), Some(2));
    assert_eq!(layout.order(Node(0)).next(), Some(0));
}

#[test]
fn what_exceeds_the_zones_or_nodes_is_left_out_but_never_the_cut_at_4_gib() {
    let starts: Vec<_> = (0..40)
        .map(|step| (step * PAGES_MAX, Node((step % 2) as u8)))
        .chain([(LOW_END + PAGES_MAX, Node(77))])
        .collect();
    let layout = Layout::new(&starts, distance);
    assert_eq!(layout.len(), ZONES_MAX);
    assert!(borders(&layout).iter().any(|&(_, end)| end == LOW_END));
    assert!(borders(&layout).iter().all(|(node, _)| node.0 < 2));
}
