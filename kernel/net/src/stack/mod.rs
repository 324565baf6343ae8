//! A network stack as a value: what a network namespace is made of (network_namespaces(7)).
//!
//! Everything that a program can reach by one socket hangs on one [`NetStack`]: shards with
//! their connections, ports and neighbours, interfaces with their names and addresses, routes,
//! settings, counters, the journal, and who sniffs. A thread holds one, and its children
//! inherit it ([`task::Thread`]); a socket holds the one in which it was made. A stack
//! ends when nobody holds it any more.
//!
//! # What is not in it, and why
//! The physical card, with its rings and inboxes, exists once ([`crate::device::ring`]): it belongs to
//! the [`first`] stack, which the softirq and the idle loop serve without a process. Packet
//! memory is one pool, because the card's buffers become the sockets' without a copy
//! ([`crate::device::memory`]). How long polling may wait is a property of the machine
//! ([`crate::device::poll`]).
//!
//! # Ownership
//! A stack owns its shards; a shard's environment holds what all shards look at ([`Shared`])
//! and knows its stack weakly, so that the two do not keep each other alive.

mod attach;
pub(crate) mod changes;
pub mod egress;
pub mod env;
mod filter;
pub mod interface;
pub mod location;
pub mod locked;
pub mod loopback;
pub mod member;
pub(crate) mod member_list;
mod new_shard;
pub mod plan;
pub mod raw_listener;
pub(crate) mod routes;
mod settings;
pub(crate) mod shard;
pub mod waiter;
mod wake;

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use core::any::Any;
use core::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, AtomicUsize, Ordering};

use mach::mem::fallible;
use mach::sync::{Once, Spin};
use sync::Result;
use task::current;
use task::net_namespace::NetNamespace;

use self::interface::Interfaces;
use self::locked::Slot;
use self::raw_listener::RawListener;
use self::routes::Published;
use crate::packet::Listener;
use sockets::Listeners;
use vfs::file::next_namespace_number;

/// Shards of one stack at most: those of CPUs, and one for each further interface.
pub(crate) const SHARDS_MAX: usize = 256;
/// The first port that anybody may take, unless an administrator says otherwise.
const FIRST_FREE_PORT: u16 = 1024;

/// See the module.
pub struct NetStack {
    /// The namespace's inode number.
    pub number: u64,
    me: Weak<Self>,
    /// Made as they are needed; one that was made stays in its place.
    pub(crate) shards: Box<[Once<Box<Slot>>]>,
    /// Shards that the card has: one until a card with several rings is attached.
    pub(crate) cpu_shards: AtomicU16,
    /// Shards that serve loopback: those, and in the first stack one for each further CPU.
    loopback_shards: AtomicU16,
    /// Held while interfaces come and go.
    changing: Spin<()>,
    /// Shards that were made.
    pub(crate) shard_count: AtomicU16,
    pub(crate) shared: Arc<Shared>,
    /// See [`self::settings`].
    pub(crate) settings: Spin<inet::Config>,
    /// The first port that anybody may take.
    pub first_free_port: AtomicU16,
}

/// What all shards of a stack look at while they are locked; its own locks are inner ones.
pub(crate) struct Shared {
    pub interfaces: Interfaces,
    pub routes: Published,
    /// What each interface has and reaches.
    pub(crate) egress: Spin<inet::Egress>,
    /// By which of them packets left last.
    pub(crate) choices: inet::Choices,
    /// Whether a shard's interface has an address that sockets may wait for.
    pub(crate) has_new_address: AtomicBool,
    /// Packet sockets that listen.
    pub sniffers: Listeners<Listener>,
    /// Raw sockets.
    pub raw: Listeners<RawListener>,
    /// Frames for the card's shards that had no room on their way there.
    pub(crate) lost: AtomicU64,
    /// Netlink sockets that hear of changes.
    pub change_listeners: AtomicUsize,
    /// The number of the next event in any shard's journal.
    pub event_numbers: Arc<inet::EventNumbers>,
    /// What limits of the stack count in all shards.
    pub totals: inet::Totals,
}

/// The stack of the first program, which has the card.
#[inline]
pub fn first() -> &'static Arc<NetStack> {
    /// The stack of the machine's first program; others are held by their programs alone.
    static FIRST: Once<Arc<NetStack>> = Once::new();
    FIRST.call_once(|| NetStack::without_shards(inet::Config::default()))
}

/// The stack of the program that runs.
pub fn current_stack() -> Arc<NetStack> {
    of_namespace(current().net.get())
}

/// The stack that a network namespace is; there is no other kind.
pub fn of_namespace(namespace: Arc<dyn NetNamespace>) -> Arc<NetStack> {
    let network: Arc<dyn Any + Send + Sync> = namespace;
    network.downcast().unwrap_or_else(|_| first().clone())
}

impl NetNamespace for NetStack {
    fn number(&self) -> u64 {
        self.number
    }

    fn create_another(&self) -> Result<Arc<dyn NetNamespace>> {
        Ok(Self::create()?)
    }
}

impl NetStack {
    /// One that has no shard, and so no loopback, yet.
    fn without_shards(settings: inet::Config) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            number: next_namespace_number(),
            me: me.clone(),
            shards: (0..SHARDS_MAX).map(|_| Once::new()).collect(),
            cpu_shards: AtomicU16::new(1),
            loopback_shards: AtomicU16::new(1),
            changing: Spin::new(()),
            shard_count: AtomicU16::new(0),
            shared: Arc::new(Shared::new()),
            settings: Spin::new(settings),
            first_free_port: AtomicU16::new(FIRST_FREE_PORT),
        })
    }

    /// A new stack with the settings of the first one at its start, and nothing but loopback.
    ///
    /// Errors: `OutOfMemory`.
    pub fn create() -> Result<Arc<Self>> {
        fallible::room_for_arc::<Self>()?;
        let first = first().settings();
        let stack = Self::without_shards(inet::Config {
            tcp_memory: first.tcp_memory,
            udp_memory: first.udp_memory,
            buffer_growth_max: first.buffer_growth_max,
            ..inet::Config::default()
        });
        stack.add_shard()?;
        Ok(stack)
    }

    /// Whether it has the card.
    pub(crate) fn is_first(&self) -> bool {
        core::ptr::eq(self, &raw const **first())
    }

    /// For who must find it later without keeping it.
    pub(crate) fn downgrade(&self) -> Weak<Self> {
        self.me.clone()
    }

    /// Shards that the card has, or would have: at least one, at most one for each CPU.
    #[inline]
    pub fn count(&self) -> u16 {
        self.cpu_shards.load(Ordering::Acquire)
    }

    /// All shards, those of further interfaces included.
    #[inline]
    pub fn shard_count(&self) -> u16 {
        self.shard_count.load(Ordering::Acquire)
    }

    /// The shard by which this CPU sends to the card.
    #[inline]
    pub fn own(&self) -> u16 {
        match self.count() {
            1 => 0,
            count => mach::cpu::id().0 as u16 % count,
        }
    }
}

impl Shared {
    fn new() -> Self {
        Self {
            interfaces: Interfaces::new(),
            routes: Published::new(),
            egress: Spin::new(inet::Egress::new()),
            choices: inet::Choices::new(),
            has_new_address: AtomicBool::new(false),
            sniffers: Listeners::default(),
            raw: Listeners::default(),
            lost: AtomicU64::new(0),
            change_listeners: AtomicUsize::new(0),
            event_numbers: Arc::default(),
            totals: inet::Totals::default(),
        }
    }
}
