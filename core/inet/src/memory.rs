//! Packet memory: who holds it, how much there may be, and what is done as it runs short.
//!
//! # Problem
//! A peer that does not read what it asked for, one whose bytes no program reads, and a
//! program that fills its own sockets all make us keep packet buffers for as long as they
//! like. If these are all there are, the next frame finds none to be received in: not even the
//! acknowledgement that would free some.
//!
//! # Idea
//! What stays is billed to a [`Ledger`], one for TCP and one for UDP, as Linux's `tcp_mem` and
//! `udp_mem` mean it. Below `pressure` nothing is asked. From there on until less than `low`
//! is held, a socket may hold a fair share of `high`, and above `high` nothing more, unless
//! it holds nothing yet. Under pressure windows do not open beyond that share, what arrives
//! out of order is not kept, buffers do not grow, and a sender beyond its share waits; what
//! arrives in order is refused last, after its acknowledgement was taken.
//!
//! The shell's pool has a reserve besides, for what passes through (`mbuf::FreeList`): while no
//! more than that is left ([`Env::is_scarce`]), nothing is kept at all, whatever the ledgers
//! say.
//!
//! Stacks that serve one machine together have [`MemoryTotals`] in common. Each tells them of
//! [`QUANTUM`] bytes at a time, so that a packet costs no shared write, and the limits hold up
//! to a quantum a stack.
//!
//! # Relief
//! Who was refused must be woken when there is memory again, though nothing happens to its own
//! connection. While memory is tight the stack walks over its sockets, [`SLOTS_AT_ONCE`] every
//! [`PACE`] (`Stack::relieve`), and once more, without a pause, when that is over.
//!
//! Invariants: `held` is the sum of what the ledger's sockets were billed with. Whenever
//! somebody was refused, `Relief::due` is set.

use core::sync::atomic::{AtomicUsize, Ordering};

use base::{Duration, Instant};

use crate::context::Context;
use crate::counters::Count;
use crate::env::Env;
use crate::net::Net;
use crate::stack::Stack;
use crate::table::Socket;

/// Bytes that a stack holds or gives back before it tells the others.
const QUANTUM: usize = 32 << 10;
/// Slots of the table that are looked at in one go.
const SLOTS_AT_ONCE: u32 = 256;
/// How long memory that is tight stays unwatched.
const PACE: Duration = Duration::from_millis(10);

/// How much packet memory a protocol may hold, in bytes, on the whole machine (Linux:
/// `tcp_mem`, `udp_mem`, in pages).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryLimits {
    /// Below this pressure ends.
    pub low: usize,
    /// Above this it begins.
    pub pressure: usize,
    /// Nothing more is kept above this.
    pub high: usize,
}

impl MemoryLimits {
    /// Limits that leave an eighth between each two.
    pub const fn below(high: usize) -> Self {
        Self {
            low: high / 8 * 6,
            pressure: high / 8 * 7,
            high,
        }
    }
}

/// What one protocol holds on all stacks of a machine.
#[derive(Debug, Default)]
pub struct Total {
    bytes: AtomicUsize,
    holders: AtomicUsize,
}

impl Total {
    const fn new() -> Self {
        Self {
            bytes: AtomicUsize::new(0),
            holders: AtomicUsize::new(0),
        }
    }
}

/// What all stacks of a machine hold together.
#[derive(Debug, Default)]
pub struct MemoryTotals {
    tcp: Total,
    udp: Total,
}

impl MemoryTotals {
    /// Nothing is held.
    pub const fn new() -> Self {
        Self {
            tcp: Total::new(),
            udp: Total::new(),
        }
    }
}

/// What the sockets of one protocol hold.
pub(crate) struct Ledger {
    limits: MemoryLimits,
    held: usize,
    /// Sockets that hold something.
    holders: usize,
    /// What the others know of `held` and `holders`.
    told: (usize, usize),
    all: Option<&'static Total>,
    /// From `pressure` on until `low` is reached.
    is_pressed: bool,
}

impl Ledger {
    pub fn new(limits: MemoryLimits) -> Self {
        Self {
            limits,
            held: 0,
            holders: 0,
            told: (0, 0),
            all: None,
            is_pressed: false,
        }
    }

    /// Others from now on.
    pub fn set_limits(&mut self, limits: MemoryLimits) {
        self.limits = limits;
        self.look();
    }

    /// Bytes held by this stack's sockets.
    pub fn held(&self) -> usize {
        self.held
    }

    /// A socket that held `before` bytes holds `now`.
    #[inline]
    pub fn bill(&mut self, before: usize, now: usize) {
        self.held = self.held - before + now;
        if (now == 0) != (before == 0) {
            self.holders = self.holders + usize::from(now != 0) - usize::from(before != 0);
        }
        if self.held.abs_diff(self.told.0) >= QUANTUM {
            self.tell();
        }
    }

    #[cold]
    fn tell(&mut self) {
        if let Some(all) = self.all {
            let (bytes, holders) = self.told;
            let add = |to: &AtomicUsize, before: usize, now: usize| {
                to.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
            };
            add(&all.bytes, bytes, self.held);
            add(&all.holders, holders, self.holders);
        }
        self.told = (self.held, self.holders);
        self.look();
    }

    /// Bytes and holders on all stacks.
    fn total(&self) -> (usize, usize) {
        let Some(all) = self.all else {
            return (self.held, self.holders);
        };
        let sum = |all: &AtomicUsize, told: usize, own: usize| {
            let others = all.load(Ordering::Relaxed).wrapping_sub(told);
            others.wrapping_add(own)
        };
        (
            sum(&all.bytes, self.told.0, self.held),
            sum(&all.holders, self.told.1, self.holders),
        )
    }

    /// Finds out whether there is pressure.
    fn look(&mut self) {
        let bytes = self.total().0;
        self.is_pressed = match self.is_pressed {
            true => bytes >= self.limits.low,
            false => bytes > self.limits.pressure,
        };
    }

    /// Bytes more that a socket may hold that holds `held`.
    #[inline]
    fn room(&self, held: usize) -> usize {
        match self.is_pressed {
            false => usize::MAX,
            true => self.room_under_pressure(held),
        }
    }

    #[cold]
    fn room_under_pressure(&self, held: usize) -> usize {
        let (bytes, holders) = self.total();
        let left = self.limits.high.saturating_sub(bytes);
        let share = self.limits.high / (holders + usize::from(held == 0)).max(1);
        let room = share.saturating_sub(held).min(left);
        match held {
            0 => room.max(mbuf::BLOCK_BYTES),
            _ => room,
        }
    }
}

/// A stack that ends gives back what its sockets held; their buffers end with it.
impl Drop for Ledger {
    fn drop(&mut self) {
        (self.held, self.holders) = (0, 0);
        self.tell();
    }
}

/// The walk over those whom tight memory has refused something.
pub(crate) struct Relief {
    /// When it goes on; `NEVER` while memory is plentiful.
    due: Instant,
    next_slot: u32,
}

impl Relief {
    pub const NONE: Self = Self {
        due: Instant::NEVER,
        next_slot: 0,
    };
}

impl Net {
    /// Takes in what the shell says of its pool: before anything is kept or refused.
    #[inline]
    pub fn look_at_supply<E: Env>(&mut self, env: &E) {
        self.is_scarce = env.is_scarce();
        self.is_heap_short = env.is_heap_short();
        if self.is_tight() && self.relief.due == Instant::NEVER {
            self.begin_relief();
        }
    }

    #[cold]
    fn begin_relief(&mut self) {
        self.relief.due = Instant::START;
        self.count(Count::MemoryPressures);
    }

    /// The shell had no buffer for what a program sends.
    #[cold]
    pub fn note_scarcity(&mut self) {
        self.is_scarce = true;
        if self.relief.due == Instant::NEVER {
            self.begin_relief();
        }
    }

    /// Whether anybody may be refused anything.
    #[inline]
    pub fn is_tight(&self) -> bool {
        self.is_scarce || self.tcp_memory.is_pressed || self.udp_memory.is_pressed
    }

    /// Whether connections keep only what they must.
    #[inline]
    pub fn is_tcp_tight(&self) -> bool {
        self.is_scarce || self.tcp_memory.is_pressed
    }

    /// Bytes more that a connection may keep that holds `held`.
    #[inline]
    pub fn tcp_room(&self, held: usize) -> usize {
        match self.is_scarce {
            true => 0,
            false => self.tcp_memory.room(held),
        }
    }

    /// The same of a datagram socket.
    #[inline]
    pub fn udp_room(&self, held: usize) -> usize {
        match self.is_scarce {
            true => 0,
            false => self.udp_memory.room(held),
        }
    }

    /// When the walk over those who were refused goes on.
    pub fn relief_due(&self) -> Instant {
        self.relief.due
    }
}

impl Stack {
    /// From now on the limits are those of all stacks that say the same.
    pub fn share_memory(&mut self, totals: &'static MemoryTotals) {
        self.net.tcp_memory.all = Some(&totals.tcp);
        self.net.udp_memory.all = Some(&totals.udp);
    }

    /// Bytes of packet memory that connections hold.
    pub fn tcp_memory(&self) -> usize {
        self.net.tcp_memory.held()
    }

    /// Bytes of packet memory that datagram sockets hold.
    pub fn udp_memory(&self) -> usize {
        self.net.udp_memory.held()
    }

    /// Goes on with the walk if it is due.
    #[inline]
    pub(crate) fn relieve<E: Env>(&mut self, env: &mut E, now: Instant) {
        if self.net.relief.due <= now {
            self.walk(env, now);
        }
    }

    #[cold]
    fn walk<E: Env>(&mut self, env: &mut E, now: Instant) {
        self.net.is_scarce = env.is_scarce();
        self.net.tcp_memory.look();
        self.net.udp_memory.look();
        let first = self.net.relief.next_slot;
        let slots = self.sockets.slots() as u32;
        let end = slots.min(first + SLOTS_AT_ONCE);
        for index in first..end {
            if let Some(Socket::Tcp(tcb)) = self.sockets.at_mut(index) {
                let mut cx = Context {
                    now,
                    env,
                    net: &mut self.net,
                };
                tcb.on_relief(&mut cx);
                self.settle(env, index);
            }
        }
        let (is_tight, is_through) = (self.net.is_tight(), end == slots);
        let relief = &mut self.net.relief;
        relief.next_slot = if is_through { 0 } else { end };
        relief.due = match (is_tight, is_through) {
            (true, _) => now + PACE,
            (false, false) => now,
            (false, true) => Instant::NEVER,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: MemoryLimits = MemoryLimits {
        low: 1 << 20,
        pressure: 2 << 20,
        high: 4 << 20,
    };

    #[test]
    fn without_pressure_nobody_is_asked() {
        let mut ledger = Ledger::new(LIMITS);
        ledger.bill(0, LIMITS.pressure);
        assert_eq!(ledger.room(LIMITS.pressure), usize::MAX);
    }

    #[test]
    fn pressure_lasts_until_the_low_mark() {
        let mut ledger = Ledger::new(LIMITS);
        ledger.bill(0, LIMITS.pressure + 1);
        assert!(ledger.is_pressed);
        ledger.bill(LIMITS.pressure + 1, LIMITS.low);
        assert!(ledger.is_pressed);
        ledger.bill(LIMITS.low, LIMITS.low - QUANTUM);
        assert!(!ledger.is_pressed);
    }

    #[test]
    fn under_pressure_each_has_a_fair_share_and_above_the_limit_only_who_has_nothing() {
        let mut ledger = Ledger::new(LIMITS);
        ledger.bill(0, 2 << 20);
        ledger.bill(0, 1 << 20);
        assert_eq!(ledger.room(2 << 20), 0, "half of the limit is its share");
        assert_eq!(ledger.room(1 << 20), 1 << 20);
        assert_eq!(ledger.room(0), 1 << 20, "what is left");
        ledger.bill(1 << 20, 2 << 20);
        assert_eq!(ledger.room(1 << 20), 0);
        assert_eq!(ledger.room(0), mbuf::BLOCK_BYTES);
    }

    #[test]
    fn stacks_of_one_machine_press_each_other() {
        static ALL: Total = Total::new();
        let ledger = || Ledger {
            all: Some(&ALL),
            ..Ledger::new(LIMITS)
        };
        let (mut one, mut other) = (ledger(), ledger());
        one.bill(0, 3 << 20);
        other.bill(0, QUANTUM);
        assert!(one.is_pressed && other.is_pressed);
        one.bill(3 << 20, 0);
        other.look();
        assert!(!one.is_pressed && !other.is_pressed);
        other.bill(QUANTUM, 0);
        assert_eq!(ALL.bytes.load(Ordering::Relaxed), 0);
        assert_eq!(ALL.holders.load(Ordering::Relaxed), 0);
    }
}
