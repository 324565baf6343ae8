//! A port to which no frame comes, for tests: it counts how often it is looked at and how often frames leave.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use base::Instant;
use hal::{Capabilities, FramePort, PortCounters, Stall};
use mbuf::{RxFrame, TxFrame};

/// See the module.
#[derive(Clone, Default)]
pub struct Quiet {
    pub looks: Arc<AtomicUsize>,
    pub kicks: Arc<AtomicUsize>,
    /// The look that finds a frame all the same, counted from one; none does if it is zero.
    pub finding_look: usize,
}

impl FramePort for Quiet {
    fn mac(&self) -> [u8; 6] {
        [2; 6]
    }
    fn mtu(&self) -> u16 {
        1500
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }
    fn transmit(&mut self, _: TxFrame) -> Result<(), TxFrame> {
        Ok(())
    }
    fn kick(&mut self) {
        self.kicks.fetch_add(1, Relaxed);
    }
    fn receive(&mut self, _: usize, _: &mut dyn FnMut(RxFrame)) -> usize {
        0
    }
    fn unsent(&mut self) -> usize {
        0
    }
    fn reclaim(&mut self) {}
    fn has_received(&mut self) -> bool {
        self.looks.fetch_add(1, Relaxed) + 1 == self.finding_look
    }
    fn arm(&mut self) -> bool {
        false
    }
    fn disarm(&mut self) {}
    fn counters(&mut self) -> PortCounters {
        PortCounters::default()
    }
    fn watch(&mut self, _: Instant) -> Option<Stall> {
        None
    }
}
