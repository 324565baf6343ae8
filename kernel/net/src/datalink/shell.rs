//! What a lane sees of the kernel.

use alloc::sync::Arc;
use alloc::vec::Vec;

use base::Instant;
use link::{Env, LinkId, RxChain, StreamId};
use mbuf::{Chain, Pool};

use super::inbox::Inbox;
use super::nic::Nic;
use super::{control, wake, wire};
use crate::device::poll::BATCH_FRAMES_MAX;
use crate::device::runners;

/// What the lane sees.
pub(super) struct Shell {
    pub now: Instant,
    ring: u16,
    /// The stream of the card's stack, and its frames.
    own: Option<StreamId>,
    pub arrived: Inbox,
    pub nics: Vec<Arc<Nic>>,
    /// Links that were told to wait and not yet to go on.
    pub blocked: Vec<LinkId>,
}

impl Shell {
    /// Of the lane of `ring`; `own` is the stream of the card's stack.
    pub fn new(ring: u16, own: Option<StreamId>) -> Self {
        Self {
            now: mach::time::now(),
            ring,
            own,
            arrived: Inbox::default(),
            nics: Vec::new(),
            blocked: Vec::new(),
        }
    }
}

impl Env for Shell {
    fn now(&self) -> Instant {
        self.now
    }

    fn pool(&self) -> &dyn Pool {
        crate::device::memory::packet_pool()
    }

    fn deliver(&mut self, stream: StreamId, frames: &mut RxChain) {
        if self.own == Some(stream) {
            wire::stack_lost(self.arrived.put(frames));
            return runners::call(self.ring);
        }
        if let Some(nic) = self.nics.iter().find(|nic| nic.stream == stream) {
            nic.deliver(frames);
        }
    }

    fn backlog(&self) -> usize {
        // A batch waits for nothing but the end of the card's.
        let behind = |nic: &Arc<Nic>| nic.inbox.len().saturating_sub(BATCH_FRAMES_MAX);
        let waiting = self.nics.iter().map(behind);
        self.arrived.len() + waiting.sum::<usize>()
    }

    fn learn(&mut self, link: LinkId, is_sent: bool, frame: &Chain) {
        control::with_links(|links| links.learn(self.now, link, is_sent, frame));
        // A lease has an end, which may be the next thing to happen.
        wake::now();
    }

    fn resume(&mut self, link: LinkId) {
        self.blocked.retain(|blocked| *blocked != link);
        if let Some(nic) = self.nics.iter().find(|nic| nic.link == link) {
            nic.resume();
        }
    }
}
