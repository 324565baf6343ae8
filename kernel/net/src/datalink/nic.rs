//! Network interfaces over links: each VNIC and VLAN has one, in one of the network stacks.
//!
//! A [`Nic`] is what links, lanes and a stack have in common: its hold on the link, the lanes by
//! which it sends, the inbox in which its frames arrive, and which shard of which stack they are
//! for. A stack knows it as a port like any other (`nic_port`), so it may move from stack to
//! stack while the link stays.
//!
//! Frames arrive while a lane is locked. Its shard is entered later, by the same CPU, once that
//! CPU has no lock (`device::batch_end`).
//!
//! Invariants: a NIC waits for that once at most; a NIC whose stack ended goes back to the
//! first one, as a zone gives its links back.
//!
//! Lock order: where the NIC is, then a shard; who waits is innermost.

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use base::{CpuId, CpuSet, SharedCpuSet};
use link::counters::Kstat;
use link::links::LinkInfo;
use link::promisc::Promiscuity;
use link::{LinkId, RxChain, StreamId, TxChain};
use linkctl::FilterRow;
use mach::mem::fallible::{self, TryGrow};
use mach::sync::Spin;
use mbuf::{RxFrame, TxFrame};
use sync::{Error, Result};

use super::control::{self, with_links};
use super::filters::Filters;
use super::inbox::Inbox;
use super::lanes::Lanes;
use super::nic_port::NicPort;
use super::onlooker::Onlooker;
use super::owner::{Doorbell, FrameOwner, OwnedLink};
use super::queues::{Admits, Departure, Gets, Owner, Owners, Redirected, Shared};
use crate::device::batch_end::{self, Station};
use crate::device::poll::{BATCH_FRAMES_MAX, facts_of, run_due, take_batch};
use crate::device::{alarm, config6};
use crate::packet;
use crate::stack::interface::CARD;
use crate::stack::locked::LockedShard;
use crate::stack::{self, NetStack};
use vfs::socket::InterfaceName;

/// See the module.
pub(super) struct Nic {
    pub link: LinkId,
    /// Its hold on the link.
    pub stream: StreamId,
    name: InterfaceName,
    /// Of its port; it sends by the first, so that its frames keep their order.
    lanes: Vec<Arc<Lanes>>,
    pub inbox: Inbox,
    /// Frames that programs with filters leave to the stack.
    pub left: Inbox,
    /// Filters that were made over its link.
    pub filters: Filters,
    /// Whether its frames wait for the end of a batch.
    is_waiting: AtomicBool,
    /// CPUs that may take them; none for any.
    cpus: SharedCpuSet,
    home: Spin<Home>,
    /// Who takes its frames in the stack's place.
    owners: Owners,
}

/// Where a NIC is.
#[derive(Clone, Default)]
struct Home {
    stack: Weak<NetStack>,
    shard: u16,
    /// Its number there.
    number: u32,
}

/// All of them; links are the machine's.
static NICS: Spin<Vec<Arc<Nic>>> = Spin::new(Vec::new());

impl Nic {
    /// Takes frames of a lane, which is locked.
    pub fn deliver(self: &Arc<Self>, frames: &mut RxChain) {
        self.inbox.put(frames);
        self.wait();
    }

    /// Has its shard run soon.
    fn wait(self: &Arc<Self>) {
        if !self.is_waiting.swap(true, Ordering::AcqRel) {
            batch_end::wait(self.clone(), self.cpu());
        }
    }

    /// The CPU that is to run its shard, if one is named: this one, if it may.
    fn cpu(&self) -> Option<CpuId> {
        let named = self.cpus.load(Ordering::Relaxed);
        let this = mach::cpu::id();
        if named.contains(this) {
            return Some(this);
        }
        let place = usize::from(self.link.place());
        named.iter().nth(place % named.len().max(1))
    }

    /// Goes to the first stack, because its own has ended; once, whoever notices. Without memory it
    /// stays out of reach.
    fn return_to_first_stack(self: &Arc<Self>) {
        let left = core::mem::take(&mut *self.home.lock());
        self.revoke_owners();
        self.inbox.clear();
        self.left.clear();
        self.listen_to_all(false);
        if left.number != 0 && self.settle(stack::first()).is_err() {
            mach::klog!(
                "net interface={} error=no memory to take it back",
                self.name
            );
        }
    }

    /// Gives it to a stack.
    ///
    /// Errors: `NoBuffers` if that can have no more, `OutOfMemory`.
    fn settle(self: &Arc<Self>, of: &Arc<NetStack>) -> Result<()> {
        let link = with_links(|links| links.info(self.link));
        let link = link.ok_or(Error::WrongDevice)?;
        let first = self.lanes.first().ok_or(Error::WrongDevice)?.clone();
        let port = NicPort::new(&link, first, self.clone());
        let facts = facts_of(&port);
        let (number, shard) = of.add_interface(self.name, facts, Box::new(port))?;
        *self.home.lock() = Home {
            stack: Arc::downgrade(of),
            shard,
            number,
        };
        if number == CARD {
            config6::configure6(of, config6::Config6::Auto);
        } else {
            config6::start_further(of, shard);
        }
        self.wait();
        Ok(())
    }

    /// Its stack wants all frames that the link may see, or no longer. A card that cannot bring
    /// them brings those of the other links.
    pub fn listen_to_all(&self, on: bool) {
        let _ = with_links(|links| match on {
            true => links.promisc_on(self.stream, Promiscuity::PHYS),
            // It may not be on.
            false => links.promisc_off(self.stream, Promiscuity::PHYS),
        });
    }

    /// Takes it out of its stack.
    fn leave(&self) {
        self.listen_to_all(false);
        let home = core::mem::take(&mut *self.home.lock());
        if let Some(of) = home.stack.upgrade() {
            of.remove_interface(home.number);
        }
        self.inbox.clear();
        self.left.clear();
    }

    /// Frames that came before it moved are not for its stack.
    fn is_in(&self, of: &Arc<NetStack>, number: u32) -> bool {
        let home = self.home.lock();
        home.number == number && home.stack.as_ptr() == Arc::as_ptr(of)
    }
}

impl Station for Nic {
    fn run(self: Arc<Self>) {
        let cpu = self.cpu();
        if cpu.is_some_and(|cpu| cpu != mach::cpu::id()) {
            // It was bound while it waited.
            return batch_end::wait(self, cpu);
        }
        self.is_waiting.store(false, Ordering::Release);
        match self.owners.now() {
            Owner::Stack => {}
            Owner::Alone(queue, owner) => return self.run_owner(queue, &*owner),
            Owner::Shared(shared) => {
                self.run_shared(&shared);
                if self.left.len() == 0 {
                    return;
                }
            }
        }
        let home = self.home.lock().clone();
        let Some(of) = home.stack.upgrade() else {
            return self.return_to_first_stack();
        };
        let Some(mut shard) = LockedShard::new(&of, home.shard) else {
            return;
        };
        let has_more = take_batch(&mut shard) >= BATCH_FRAMES_MAX;
        let (stack, link) = shard.parts();
        let deadline = run_due(&of, stack, link);
        alarm::arm(link, deadline);
        drop(shard);
        of.follow_addresses();
        if has_more || self.waiting() != 0 {
            self.wait();
        }
    }
}

impl Nic {
    /// Gives its stack the first `budget` frames that are the stack's; returns how many there were.
    pub fn drain(&self, budget: usize, sink: &mut dyn FnMut(RxFrame)) -> usize {
        let count = self.left.drain(budget, sink);
        match self.owners.is_shared() {
            true => count,
            false => count + self.inbox.drain(budget - count, sink),
        }
    }

    /// How many there are.
    pub fn waiting(&self) -> usize {
        match self.owners.is_shared() {
            true => self.left.len(),
            false => self.left.len() + self.inbox.len(),
        }
    }

    /// Frames that there was no room for.
    pub fn overflowed(&self) -> u64 {
        self.inbox.dropped() + self.left.dropped()
    }
}

impl Nic {
    /// Gives a queue's frames to `owner`, all if it is the only one, and flows that no queue has if it `is_taker`. Not to
    /// be called by two at once.
    ///
    /// Errors: `Busy` if the queue has one, `Invalid` for one that cannot be, `OutOfMemory`.
    pub fn own(&self, queue: u16, owner: Arc<dyn FrameOwner>, is_taker: bool) -> Result<()> {
        let gets = match is_taker {
            true => Gets::Everything,
            false => Gets::NoNewFlows,
        };
        self.owners.add(queue, owner, gets)?;
        self.take_all(true);
        Ok(())
    }

    /// The same for one who gets what a filter admits: IP, which a stack takes anyway.
    ///
    /// Errors: those of [`own`](Self::own).
    pub fn own_filtered(
        &self,
        queue: u16,
        owner: Arc<dyn FrameOwner>,
        filter: Admits,
    ) -> Result<()> {
        self.owners.add(queue, owner, Gets::Admitted(filter))
    }

    /// A queue gets from now on what a filter admits. Not to be called by two at once.
    ///
    /// Errors: `NetworkDown` if its owner has lost the link, `OutOfMemory`.
    pub fn narrow(&self, queue: u16, owner: &Arc<dyn FrameOwner>, filter: Admits) -> Result<()> {
        self.owners.narrow(queue, owner, filter)?;
        self.take_all(self.owners.takes_all());
        Ok(())
    }

    /// Takes a filter from whoever holds it; false if the link has none of that number. Not to be called by two
    /// at once.
    fn revoke(self: &Arc<Self>, id: u32) -> bool {
        let is_there = self.filters.revoke(id);
        if let Some((queue, owner)) = self.owners.of_filter(id) {
            self.disown(queue, &owner);
            owner.link_gone();
        }
        is_there
    }

    /// Its number in the stack where it is.
    pub fn number(&self) -> u32 {
        self.home.lock().number
    }

    /// Its frames are the stack's again if this was the last owner that has them: one whose link is gone, or
    /// has moved, has not.
    pub fn disown(self: &Arc<Self>, queue: u16, old: &Arc<dyn FrameOwner>) {
        match self.owners.remove(queue, old) {
            Departure::NotAnOwner => {}
            Departure::OthersRemain => {
                self.take_all(self.owners.takes_all());
                self.wait();
            }
            Departure::Last => {
                self.take_all(false);
                self.wait();
            }
        }
    }

    /// Whether a queue gets new flows. Not to be called by two at once.
    ///
    /// Errors: `NetworkDown` if its owner has lost the link, `OutOfMemory`.
    pub fn take_new_flows(
        &self,
        queue: u16,
        owner: &Arc<dyn FrameOwner>,
        is_taker: bool,
    ) -> Result<()> {
        self.owners.take_new_flows(queue, owner, is_taker)
    }

    /// Gives a flow or a port to another queue, or the stack ([`Owners::redirect`]). Not to be called by two at once.
    ///
    /// Errors: those of [`Owners::redirect`].
    pub fn redirect(
        self: &Arc<Self>,
        of: (u16, &Arc<dyn FrameOwner>),
        what: Redirected,
        to: u16,
    ) -> Result<()> {
        self.owners.redirect(self, of, what, to)
    }

    /// Its stack sends a frame.
    #[inline]
    pub fn learn_of_stack(&self, frame: &TxFrame) {
        self.owners.learn_of_stack(&frame.chain);
    }

    /// Its owners, if it has any, lose the link.
    fn revoke_owners(&self) {
        self.filters.revoke_all();
        if self.owners.is_owned() {
            self.take_all(false);
            self.owners.take().link_gone();
        }
    }

    /// An owner takes frames of any protocol, the stack those that it knows. The link may be
    /// gone already.
    fn take_all(&self, on: bool) {
        let _ = with_links(|links| links.take_all(self.stream, on));
    }

    fn run_owner(self: &Arc<Self>, queue: u16, owner: &dyn FrameOwner) {
        let has_more = owner.run(&OwnedLink::whole(self.clone(), queue));
        if has_more || self.inbox.len() != 0 {
            self.wait();
        }
    }

    fn run_shared(self: &Arc<Self>, shared: &Shared) {
        if shared.run(self) {
            self.wait();
        }
    }

    /// Its link was told to wait and may go on; a stack tries again by itself.
    pub fn resume(self: &Arc<Self>) {
        if self.owners.is_owned() {
            self.wait();
        }
    }

    /// Sends a queue's frames by its lane; false if they are left because the link was told to wait.
    pub fn send(&self, queue: u16, frames: &mut TxChain) -> bool {
        self.owners.learn(queue, frames);
        match self.onlooker() {
            None => self.send_unseen(frames),
            Some(onlooker) => {
                let copies = Onlooker::copies(frames);
                let is_sent = self.send_unseen(frames);
                if is_sent {
                    onlooker.sent(&copies);
                }
                is_sent
            }
        }
    }

    #[inline]
    fn send_unseen(&self, frames: &mut TxChain) -> bool {
        let first = self.lanes.first();
        first.is_none_or(|lanes| lanes.send_all(self.link, frames))
    }

    /// Who sees frames that pass between the link and its owners.
    #[inline]
    pub fn onlooker(&self) -> Option<Onlooker> {
        match packet::is_watched() {
            true => self.find_onlooker(),
            false => None,
        }
    }

    #[cold]
    fn find_onlooker(&self) -> Option<Onlooker> {
        let home = self.home.lock().clone();
        Some(Onlooker::new(home.stack.upgrade()?, home.number))
    }
}

/// The stack that has the port has ended, or the NIC left it.
pub(super) fn port_dropped(nic: &Arc<Nic>) {
    let is_homeless = {
        let home = nic.home.lock();
        home.number != 0 && home.stack.strong_count() == 0
    };
    if is_homeless {
        nic.wait();
    }
}

/// Sees to it that a link has its NIC, as the link is now.
///
/// Without effect where the link's name is too long for an interface.
///
/// Errors: `NoBuffers` if the first stack can have no more, `OutOfMemory`.
pub(super) fn ensure(link: &LinkInfo, lanes: &[Arc<Lanes>]) -> Result<()> {
    match of_link(link.id) {
        Some(nic) => {
            nic.follow(link);
            Ok(())
        }
        None => create(link, lanes),
    }
}

fn of_link(link: LinkId) -> Option<Arc<Nic>> {
    let all = NICS.lock();
    all.iter().find(|nic| nic.link == link).cloned()
}

/// Frames to a link that its inbox had no room for.
pub(super) fn overflowed(link: LinkId) -> u64 {
    of_link(link).map_or(0, |nic| nic.overflowed())
}

/// What the programs that take a link's frames have counted, by their queues; nothing without one.
pub(super) fn owner_counts(link: LinkId) -> Vec<(u16, Vec<Kstat>)> {
    of_link(link).map_or_else(Vec::new, |nic| nic.owners.counts())
}

/// A link's filters, as they are shown.
pub(super) fn filters(link: LinkId) -> Vec<FilterRow> {
    of_link(link).map_or_else(Vec::new, |nic| {
        nic.filters.rows(|queue| nic.owners.hits(queue))
    })
}

/// Takes a filter of a link from whoever holds it; false if there is none of that number.
pub(super) fn revoke(link: LinkId, id: u32) -> bool {
    of_link(link).is_some_and(|nic| nic.revoke(id))
}

/// The programs that have queues of a link, and how their rings are.
pub(super) fn doorbells(link: LinkId) -> Vec<(u16, Doorbell)> {
    of_link(link).map_or_else(Vec::new, |nic| nic.owners.doorbells())
}

/// From now on only these CPUs take a link's frames; any do if there are none.
pub(super) fn bind(link: LinkId, cpus: CpuSet) {
    if let Some(nic) = of_link(link) {
        nic.cpus.store(cpus, Ordering::Relaxed);
    }
}

/// Frames to a link, by the CPUs that took them.
pub(super) fn taken(link: LinkId) -> Vec<u64> {
    let home = of_link(link).map(|nic| nic.home.lock().clone());
    let home = home.unwrap_or_default();
    let of = home.stack.upgrade();
    of.map_or_else(Vec::new, |of| of.taken(home.shard..home.shard + 1))
}

impl Nic {
    /// Takes its link's address and MTU.
    fn follow(&self, link: &LinkInfo) {
        let home = self.home.lock().clone();
        if let Some(of) = home.stack.upgrade() {
            of.change_interface(home.number, link.mac, link.mtu);
        }
    }
}

fn create(link: &LinkInfo, lanes: &[Arc<Lanes>]) -> Result<()> {
    let Some(name) = InterfaceName::new(&link.name) else {
        return Ok(());
    };
    let mut own = Vec::new();
    own.make_room(lanes.len())?;
    own.extend(lanes.iter().cloned());
    let stream = with_links(|links| control::open(links, link.id)).map_err(|_| Error::Busy)?;
    let nic = fallible::arc(Nic {
        link: link.id,
        stream,
        name,
        lanes: own,
        inbox: Inbox::default(),
        left: Inbox::default(),
        filters: Filters::default(),
        is_waiting: AtomicBool::new(false),
        cpus: SharedCpuSet::default(),
        home: Spin::new(Home::default()),
        owners: Owners::default(),
    })?;
    let listed = make_room().and_then(|()| nic.settle(stack::first()));
    if let Err(error) = listed {
        // It was opened a moment ago.
        let _ = with_links(|links| links.close(stream));
        return Err(error);
    }
    NICS.lock().push(nic.clone());
    nic.lanes
        .iter()
        .for_each(|lanes| lanes.lead_to(nic.clone()));
    Ok(())
}

/// Room for one more in the list, and among those who wait.
fn make_room() -> Result<()> {
    let count = {
        let mut all = NICS.lock();
        all.make_room(1)?;
        all.len() + 1
    };
    batch_end::make_room(count)
}

/// Takes a link's NIC away, and from its stack all that was its.
pub(super) fn remove(link: LinkId) {
    let Some(nic) = of_link(link) else { return };
    NICS.lock().retain(|other| !Arc::ptr_eq(other, &nic));
    let lanes = nic.lanes.iter();
    lanes.for_each(|lanes| lanes.lead_no_more_to(nic.stream));
    nic.leave();
    nic.revoke_owners();
    // The link may be gone already.
    let _ = with_links(|links| links.close(nic.stream));
}

/// The NIC that is the interface `number` of a stack.
pub(super) fn find(of: &Arc<NetStack>, number: u32) -> Option<Arc<Nic>> {
    let all = NICS.lock();
    all.iter().find(|nic| nic.is_in(of, number)).cloned()
}

/// Moves the interface `number` of one stack into another, where a program that has its frames may
/// not be.
///
/// Errors: `Unsupported` for what is no NIC over a link, `NoBuffers` if the other can have no
/// more, in which case it stays; `OutOfMemory`.
pub(super) fn move_to(from: &Arc<NetStack>, number: u32, to: &Arc<NetStack>) -> Result<()> {
    let nic = find(from, number).ok_or(Error::Unsupported)?;
    nic.revoke_owners();
    nic.leave();
    let moved = nic.settle(to);
    if moved.is_err() {
        // There was room a moment ago.
        let _ = nic.settle(from);
    }
    moved
}
