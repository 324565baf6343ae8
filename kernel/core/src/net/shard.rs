//! The shards: stacks, each behind a lock ([`super::entered`]).
//!
//! A shard is a stack of its own (`inet::Stack`: connections, ports, neighbours, timers)
//! behind a lock of its own. There is one until a card with several pairs of queues is
//! attached, then one for each pair; shard `n` belongs to CPU `n`, and CPUs beyond share.
//! Belonging means: that CPU polls the shard's ring, is interrupted for it, and runs its
//! timers. Any CPU may enter any shard for a program's call.
//!
//! Each connection is in one shard for all its life, the one that `steer` names. A socket
//! without a connection is in the first shard, where all names are (`handle`).
//!
//! Invariant: nobody holds the locks of two shards.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU16, AtomicU64, Ordering};

use inet::{Share, Stack};

use super::entered::Entered;
use super::surroundings::{Link, Port, Way};
use super::{CARD, ring, steer};

/// One stack with its surroundings.
pub struct Shard {
    pub(super) stack: Stack,
    pub(super) link: Link,
}

static COUNT: AtomicU16 = AtomicU16::new(1);
/// The number of the next event in any stack's journal.
static EVENT_NUMBERS: AtomicU64 = AtomicU64::new(0);

/// Creates the first shard; once at boot.
pub(super) fn init(limits: inet::Config) {
    create(0, limits);
}

fn create(number: u16, limits: inet::Config) {
    let shard = Shard::new(CARD, number, limits);
    Entered::to_look(number).install(shard);
}

impl Shard {
    /// A stack without a way, for an interface.
    pub(super) fn new(interface: u32, number: u16, limits: inet::Config) -> Self {
        let link = Link::new(interface, number);
        let secret = [crate::random::next_u64(), crate::random::next_u64()];
        let mut stack = Stack::new(limits, secret);
        stack.share_memory(&super::memory::HELD);
        Self { stack, link }
    }

    /// The stack and its surroundings, which are told the time.
    pub(super) fn enter(&mut self) -> (&mut Stack, &mut Link) {
        self.link.now = mach::time::now();
        (&mut self.stack, &mut self.link)
    }
}

/// Makes `count` shards in place of the first one, which nobody uses yet, with `limits`
/// each and the rings that were made for them; once, when the card is attached.
pub(super) fn split(count: u16, facts: inet::Port, limits: inet::Config) {
    for number in 0..count {
        create(number, limits);
        with_shard(number, |stack, link| {
            stack.attach(facts);
            stack.set_share(Share {
                number,
                owner_of: steer::owner_of_connection,
                event_numbers: &EVENT_NUMBERS,
            });
            link.way = ring::of_shard(number).map_or(Way::None, Way::Ring);
        });
    }
    COUNT.store(count, Ordering::Release);
}

/// How many shards there are: at least one, at most one for each CPU.
#[inline]
pub(super) fn count() -> u16 {
    COUNT.load(Ordering::Acquire)
}

/// The shard that belongs to this CPU.
#[inline]
pub(super) fn own() -> u16 {
    match count() {
        1 => 0,
        count => mach::cpu::id().0 as u16 % count,
    }
}

/// Calls `work` with a stack and its surroundings; `None` before [`init`].
///
/// `work` must not block, nor enter another shard.
#[inline]
pub(super) fn with_shard<R>(
    number: u16,
    work: impl FnOnce(&mut Stack, &mut Link) -> R,
) -> Option<R> {
    let mut entered = Entered::new(number)?;
    let (stack, link) = entered.parts()?;
    Some(work(stack, link))
}

/// Calls `work` with the pair of queues of a shard, which it may exchange; `None` without one.
pub(super) fn with_port<R>(number: u16, work: impl FnOnce(&mut Port) -> R) -> Option<R> {
    let done = with_shard(number, |_, link| match &mut link.way {
        Way::None => None,
        Way::Own(port) => Some(work(port)),
        Way::Ring(ring) => Some(ring.with_port(work)),
    });
    done.flatten()
}

/// What `look` sees of each stack in turn.
pub fn each_stack<R>(mut look: impl FnMut(&Stack) -> R) -> Vec<R> {
    (0..count())
        .filter_map(|number| with_shard(number, |stack, _| look(stack)))
        .collect()
}

/// The first stack, which knows what all know: addresses, routes.
pub fn with_first_stack<R>(look: impl FnOnce(&Stack) -> R) -> Option<R> {
    with_shard(0, |stack, _| look(stack))
}

/// The last events of all stacks (`inet::Event`), the oldest first. Their numbers have no
/// gaps: older ones are left out where a stack has forgotten one.
pub fn journal() -> Vec<inet::Event> {
    // Those with lower numbers are in their journals when these are unlocked.
    let end = match count() {
        1 => u64::MAX,
        _ => EVENT_NUMBERS.load(Ordering::SeqCst),
    };
    let mut events = Vec::with_capacity(inet::JOURNAL_EVENTS_MAX * usize::from(count()));
    for number in 0..count() {
        with_shard(number, |stack, _| {
            events.extend(stack.journal().filter(|event| event.serial < end));
        });
    }
    events.sort_unstable_by_key(|event: &inet::Event| event.serial);
    let is_gap = |at: &usize| events[at - 1].serial + 1 != events[*at].serial;
    let first = (1..events.len()).rev().find(is_gap).unwrap_or(0);
    events.split_off(first)
}

/// The counters of all stacks together.
pub fn stats() -> inet::Stats {
    let mut sum = inet::Stats::default();
    for number in 0..count() {
        with_shard(number, |stack, _| sum.add(stack.stats()));
    }
    sum
}
