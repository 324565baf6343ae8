//! What each flow's frames did at one ring.
//!
//! A flow has a queue of its own, so its account is found by the queue's number. Frames
//! that no flow matches are counted with their client only.

use alloc::vec::Vec;

use crate::flow::FlowId;
use crate::table::QueueSpec;

/// Counters of one flow at one ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FlowCounters {
    /// Frames received.
    pub rx_frames: u64,
    /// Their bytes.
    pub rx_bytes: u64,
    /// Received frames that the flow's limit dropped.
    pub rx_dropped: u64,
    /// Frames sent.
    pub tx_frames: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    /// Frames that were to be sent and waited too long, or may not go at all.
    pub tx_dropped: u64,
}

impl FlowCounters {
    /// Adds what another ring counted for the same flow.
    pub fn add(&mut self, other: &Self) {
        self.rx_frames += other.rx_frames;
        self.rx_bytes += other.rx_bytes;
        self.rx_dropped += other.rx_dropped;
        self.tx_frames += other.tx_frames;
        self.tx_bytes += other.tx_bytes;
        self.tx_dropped += other.tx_dropped;
    }

    pub(super) fn received(&mut self, bytes: usize) {
        self.rx_frames += 1;
        self.rx_bytes += bytes as u64;
    }

    pub(super) fn sent(&mut self, bytes: usize) {
        self.tx_frames += 1;
        self.tx_bytes += bytes as u64;
    }
}

/// By number of the queue; `None` where it is no flow's.
#[derive(Default)]
pub(super) struct FlowAccounts(Vec<Option<(FlowId, FlowCounters)>>);

impl FlowAccounts {
    /// Goes by new queues; flows that stay keep their counters.
    pub fn adopt(&mut self, queues: &[QueueSpec]) {
        let old = core::mem::take(&mut self.0);
        let counters = |flow| {
            let mut old = old.iter().flatten();
            let found = old.find(|(id, _)| *id == flow);
            found.map_or_else(FlowCounters::default, |(_, counters)| *counters)
        };
        let account = |queue: &QueueSpec| queue.flow.map(|flow| (flow, counters(flow)));
        self.0 = queues.iter().map(account).collect();
    }

    /// Counts for the flow of a queue, if it is one's.
    #[inline]
    pub fn count(&mut self, queue: u16, count: impl FnOnce(&mut FlowCounters)) {
        if let Some(Some((_, counters))) = self.0.get_mut(usize::from(queue)) {
            count(counters);
        }
    }

    pub fn get(&self, flow: FlowId) -> Option<&FlowCounters> {
        let mut accounts = self.0.iter().flatten();
        accounts
            .find(|(id, _)| *id == flow)
            .map(|(_, counters)| counters)
    }
}
