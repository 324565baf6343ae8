//! Which node a CPU belongs to, and which frames are near.

use core::ops::Range;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU8, AtomicU64};

use crate::{FrameNo, Layout, Node};

/// The node of one CPU, and a run of frames that are all that node's.
#[derive(Debug)]
pub(crate) struct Home {
    node: AtomicU8,
    start: AtomicU64,
    len: AtomicU64,
}

impl Home {
    /// All frames are near.
    pub const fn everywhere() -> Self {
        Self {
            node: AtomicU8::new(0),
            start: AtomicU64::new(0),
            len: AtomicU64::new(FrameNo::MAX),
        }
    }

    pub fn settle(&self, node: Node, frames: Range<FrameNo>) {
        self.node.store(node.0, Relaxed);
        self.start.store(frames.start, Relaxed);
        self.len.store(frames.end - frames.start, Relaxed);
    }

    #[inline]
    pub fn node(&self) -> Node {
        Node(self.node.load(Relaxed))
    }

    /// Whether a frame lies in the run, hence is near.
    #[inline]
    pub fn holds(&self, frame: FrameNo) -> bool {
        frame.wrapping_sub(self.start.load(Relaxed)) < self.len.load(Relaxed)
    }

    /// Whether a frame is another node's.
    pub fn is_far(&self, layout: &Layout, frame: FrameNo) -> bool {
        !self.holds(frame) && layout.node_of(frame) != self.node()
    }
}
