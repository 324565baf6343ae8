//! A lane: one queue pair of a port, and everything that its owner does with frames.
//!
//! ```text
//!   card ─▶ backlog ─▶ client ─▶ limits ─▶ stream ─▶ Env::deliver       receive.rs
//!                         ▲         ▲
//!                         └─ local ─┤                                    switch.rs
//!   Env's caller ─▶ protection ─▶ limits ─▶ neighbour or card            transmit.rs
//! ```
//!
//! One CPU owns a lane, or CPUs that share a queue pair own it in turn under a lock of
//! the shell; nothing here waits. A port that is an etherstub has lanes without a card.
//! A connection sends by one lane, so its frames keep their order.
//!
//! The shell calls [`Lane::interrupt`], [`Lane::run`] and [`Lane::transmit`]; each hands
//! what it has sorted to [`Env::deliver`], one call for each stream, and says in its
//! [`Outlook`] when to come back. Before each batch the shell compares generations.

use alloc::sync::Arc;
use alloc::vec::Vec;

use base::Instant;
use hal::FramePort;
use mbuf::{Chain, Pool, RxFrame, TxFrame};

use crate::chain::{Frame, FrameChain, RxChain, TxChain};
use crate::counters::{Counters, DropReason, Drops, RxCounts};
use crate::flow::FlowId;
use crate::moderation::{Moderation, Throttle};
use crate::poll::{Poller, Watermarks};
use crate::shaper::Shaper;
use crate::table::{Generation, LinkId, StreamId, Table};

pub(crate) mod direct;
mod fixups;
mod flows;
mod journal;
mod receive;
mod segments;
mod sorter;
mod switch;
mod transmit;

pub use direct::{Bypass, Place};
pub use fixups::complete_checksum;
pub use flows::FlowCounters;
pub use journal::{DropEvent, EVENTS_MAX};
pub use segments::cut_coalesced;
pub(crate) use transmit::HIGH as FRAMES_BEFORE_WAIT;
pub use transmit::{Blocked, TxFlags};

use flows::FlowAccounts;
use journal::Journal;
use sorter::Sorter;

/// What a lane needs of its shell. None of it may call back into the lane.
pub trait Env {
    /// The monotonic clock; may be cached for the batch.
    fn now(&self) -> Instant;

    /// Where buffers for rewritten headers come from.
    fn pool(&self) -> &dyn Pool;

    /// Frames for a stream, in order. What is left in the chain is dropped.
    fn deliver(&mut self, stream: StreamId, frames: &mut RxChain);

    /// Frames that [`deliver`](Self::deliver) took from this lane and that still wait.
    fn backlog(&self) -> usize;

    /// A client sends, or gets, a frame from which its addresses may be learned: show it
    /// to the control plane.
    fn learn(&mut self, link: LinkId, is_sent: bool, frame: &Chain);

    /// A link that was told to wait may send again.
    fn resume(&mut self, link: LinkId);
}

/// When to call a lane again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outlook {
    /// There is more to do at once.
    pub is_busy: bool,
    /// The card has no room: call when it has sent something.
    pub awaits_card: bool,
    /// At this time at the latest.
    pub at: Instant,
}

/// Per-client counters, kept while the client exists.
struct Account {
    link: LinkId,
    counters: Counters,
}

/// One queue pair of a port. See the module's text.
pub struct Lane {
    table: Arc<Table>,
    generation: Arc<Generation>,
    works: Works,
}

/// What a lane owns besides its table, which is lent to each call: counting references
/// to it for each frame would make all CPUs write to one place.
struct Works {
    group: u16,
    poller: Poller,
    throttle: Throttle,
    /// Pulled and not yet looked at.
    backlog: RxChain,
    /// Room for what one pull brings; empty between pulls.
    pulled: RxChain,
    rx: Shaper<RxFrame>,
    tx: Shaper<TxFrame>,
    sorter: Sorter,
    /// By slot of the table.
    accounts: Vec<Account>,
    flows: FlowAccounts,
    /// What the ring itself carried, whoever it was for.
    ring: RxCounts,
    /// Frames that no client can be charged with.
    drops: Drops,
    journal: Journal,
    /// Links that were told to wait.
    blocked: Vec<LinkId>,
    /// The card had no room at the last try.
    is_card_full: bool,
}

impl Lane {
    /// For a ring of `group`. `can_poll` is the card's word.
    pub fn new(group: u16, can_poll: bool, generation: Arc<Generation>, table: Arc<Table>) -> Self {
        let mut works = Works {
            group,
            poller: Poller::new(Watermarks::default(), can_poll),
            throttle: Throttle::new(Moderation::default()),
            backlog: RxChain::new(),
            pulled: RxChain::new(),
            rx: Shaper::new(false),
            tx: Shaper::new(true),
            sorter: Sorter::default(),
            accounts: Vec::new(),
            flows: FlowAccounts::default(),
            ring: RxCounts::default(),
            drops: Drops::default(),
            journal: Journal::default(),
            blocked: Vec::new(),
            is_card_full: false,
        };
        works.adopt(&table);
        Self {
            table,
            generation,
            works,
        }
    }

    /// Whether the control plane has a newer table: fetch it and [`adopt`](Self::adopt) it.
    #[inline]
    pub fn is_stale(&self) -> bool {
        self.generation.is_newer_than(&self.table)
    }

    /// Goes by a new table from now on. What waits is sorted anew, in its order; frames of
    /// links that are gone are dropped, as are their counters.
    pub fn adopt(&mut self, table: Arc<Table>) {
        self.works.adopt(&table);
        self.table = table;
    }

    /// Keeps interrupts apart where the card itself cannot.
    pub fn set_moderation(&mut self, limit: Moderation) {
        self.works.throttle = Throttle::new(limit);
    }

    /// The ring's interrupt came.
    pub fn interrupt<P: FramePort + ?Sized>(
        &mut self,
        mut card: Option<&mut P>,
        env: &mut impl Env,
    ) -> Outlook {
        if let Some(card) = card.as_deref_mut() {
            self.works.interrupt(card, env);
        }
        self.run(card, env)
    }

    /// The worker's pass: takes what waits up, polls while that is called for, and sends
    /// what may go.
    pub fn run<P: FramePort + ?Sized>(
        &mut self,
        card: Option<&mut P>,
        env: &mut impl Env,
    ) -> Outlook {
        self.works.run(&self.table, card, env)
    }

    /// Sends frames of `link` in order. Frames that are left in `frames` were not sent.
    pub fn transmit<P: FramePort + ?Sized>(
        &mut self,
        link: LinkId,
        frames: &mut TxChain,
        flags: TxFlags,
        card: Option<&mut P>,
        env: &mut impl Env,
    ) -> Result<Outlook, Blocked> {
        let sent = self
            .works
            .transmit(&self.table, link, frames, flags, card, env);
        sent.map(|()| self.works.outlook(false))
    }

    /// What one client's frames did here.
    pub fn counters(&self, link: LinkId) -> Option<&Counters> {
        let mut accounts = self.works.accounts.iter();
        Some(&accounts.find(|account| account.link == link)?.counters)
    }

    /// What one flow's frames did here.
    pub fn flow_counters(&self, flow: FlowId) -> Option<&FlowCounters> {
        self.works.flows.get(flow)
    }

    /// What the ring received, whoever it was for.
    pub fn ring_counts(&self) -> &RxCounts {
        &self.works.ring
    }

    /// Frames dropped that belong to no client.
    pub fn drops(&self) -> &Drops {
        &self.works.drops
    }

    /// The last frames dropped, the oldest first.
    pub fn dropped(&self) -> impl Iterator<Item = &DropEvent> {
        self.works.journal.events()
    }

    /// Frames that were taken from the card and still wait, here or above: B.
    pub fn waiting(&self, env: &impl Env) -> usize {
        self.works.waiting(env)
    }

    /// Frames that wait to be sent.
    pub fn unsent(&self) -> usize {
        self.works.tx.waiting()
    }

    /// Whether the ring is polled with its interrupt masked.
    pub fn is_polling(&self) -> bool {
        self.works.poller.is_polling()
    }
}

impl Works {
    fn adopt(&mut self, table: &Table) {
        let mut old = core::mem::take(&mut self.accounts);
        let account = |link| {
            let mut all = old.iter();
            let at = all.position(|account: &Account| account.link == link);
            let counters = at.map(|at| old.swap_remove(at).counters);
            Account {
                link,
                counters: counters.unwrap_or_default(),
            }
        };
        let clients = table.clients.iter().map(|client| client.link);
        self.accounts = clients.map(account).collect();
        self.flows.adopt(&table.queues);
        let mut queues = table.queues.iter();
        self.poller
            .set_limited(queues.any(|queue| queue.is_limited(false)));
        let lost = requeue(&mut self.rx, table) + requeue(&mut self.tx, table);
        self.drops.add(DropReason::LinkGone, lost);
        self.blocked.retain(|link| table.slot_of(*link).is_some());
    }

    fn waiting(&self, env: &impl Env) -> usize {
        self.backlog.len() + self.rx.waiting() + env.backlog()
    }

    /// Counts and remembers a frame of a client that goes no further.
    #[cold]
    fn drop_for(&mut self, slot: usize, reason: DropReason, frame: &Chain, now: Instant) {
        let account = self.accounts.get_mut(slot);
        let link = account.as_ref().map(|account| account.link);
        match account {
            Some(account) => account.counters.drops.count(reason),
            None => self.drops.count(reason),
        }
        self.journal.note(now, link, reason, 1, frame);
    }

    /// The same of frames that no client can be charged with.
    #[cold]
    fn drop_orphans<F: Frame>(&mut self, frames: &FrameChain<F>, reason: DropReason, now: Instant) {
        let Some(first) = frames.iter().next() else {
            return;
        };
        self.drops.add(reason, frames.len() as u64);
        self.journal
            .note(now, None, reason, frames.len(), first.bytes());
    }

    /// The same of one frame.
    #[cold]
    fn drop_orphan(&mut self, frame: &Chain, reason: DropReason, now: Instant) {
        self.drops.count(reason);
        self.journal.note(now, None, reason, 1, frame);
    }

    fn outlook(&self, is_busy: bool) -> Outlook {
        let tx = match self.is_card_full {
            true => Instant::NEVER,
            false => self.tx.next_deadline(),
        };
        Outlook {
            is_busy,
            awaits_card: self.is_card_full,
            at: tx.min(self.rx.next_deadline()),
        }
    }
}

/// Sorts what waits by a new table; returns how many frames have no place any more.
fn requeue<F: Frame>(shaper: &mut Shaper<F>, table: &Table) -> u64 {
    let mut lost = 0;
    for waiting in shaper.replace_queues(&table.queues) {
        let client = table.slot_of(waiting.link).map(|slot| &table.clients[slot]);
        let queue = client.map(|client| {
            let packet = || switch::packet_in(waiting.frame.bytes());
            client.queue_of(packet, shaper.is_sent())
        });
        let open =
            queue.filter(|queue| !table.queues[usize::from(*queue)].is_shut(shaper.is_sent()));
        let queued = open.map(|queue| shaper.push(queue, waiting.link, waiting.frame));
        lost += u64::from(!matches!(queued, Some(Ok(()))));
    }
    lost
}
