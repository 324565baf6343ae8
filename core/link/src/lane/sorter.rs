//! Turns frames in order into one chain for each stream, in order.

use mbuf::RxFrame;

use alloc::vec::Vec;

use super::Env;
use crate::chain::RxChain;
use crate::table::StreamId;

/// Chains of a batch; their room is kept for the next one.
#[derive(Default)]
pub(super) struct Sorter {
    chains: Vec<(StreamId, RxChain)>,
    used: usize,
    /// Where the last frame went: frames come in runs.
    last: usize,
}

impl Sorter {
    pub fn push(&mut self, stream: StreamId, frame: RxFrame) {
        let is_run = self.last < self.used && self.chains[self.last].0 == stream;
        if !is_run {
            self.last = self.place_of(stream);
        }
        self.chains[self.last].1.push(frame);
    }

    fn place_of(&mut self, stream: StreamId) -> usize {
        let used = &self.chains[..self.used];
        if let Some(at) = used.iter().position(|(id, _)| *id == stream) {
            return at;
        }
        let at = self.used;
        match self.chains.get_mut(at) {
            Some(chain) => chain.0 = stream,
            None => self.chains.push((stream, RxChain::new())),
        }
        self.used += 1;
        at
    }

    pub fn deliver(&mut self, env: &mut impl Env) {
        for (stream, chain) in &mut self.chains[..self.used] {
            env.deliver(*stream, chain);
            chain.clear();
        }
        self.used = 0;
    }
}
