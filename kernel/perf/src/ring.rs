//! The ring that an event shares with a program: a page of numbers (`struct perf_event_mmap_page`)
//! and a power of two of pages of records.
//!
//! The kernel writes behind its own `head`, and only tells it to the program. The program says in
//! `data_tail` up to where it has read; whatever it says is only used to see how much room there
//! is. Where there is none a record is lost, and counted: a record of that comes before the next.
//!
//! The pages belong to the mappings: with the last of them the ring ends.

use alloc::sync::Weak;
use alloc::vec::Vec;

use base::PAGE_BYTES;
use cred::{Account, Capability, Charge, Counted, Resource};
use mach::mem::Page;
use mach::mem::fallible::TryGrow;
use mach::sync::Spin;
use mm::{FaultError, MemoryObject, Sharing};
use sched::resched_point;
use sync::{Error, Result};
use task::current;

use crate::attributes::Wakeup;
use crate::limits::USER_RING_KIBIBYTES;

// Where the program looks for what in the first page.
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;
const DATA_OFFSET: usize = 1040;
const DATA_SIZE: usize = 1048;

/// No ring has more than this share of memory.
const MEMORY_SHARE: usize = 8;

#[derive(Default)]
struct State {
    head: u64,
    lost: u64,
    /// Records since somebody was woken.
    unannounced: u32,
    /// Where `head` was when somebody was woken.
    announced: u64,
}

/// A ring of an `Owner`'s.
pub(super) struct Ring<Owner> {
    pages: Vec<Page>,
    state: Spin<State>,
    /// The event that it was mapped by; a ring does nothing with it.
    pub owner: Weak<Owner>,
    _charge: Charge,
}

impl<Owner> Ring<Owner> {
    /// A ring of so many pages, with that of the numbers.
    ///
    /// Errors: `Invalid` for another number than 1 + 2^n, `NotPermitted` where the user has
    /// too many, `OutOfMemory`.
    pub fn new(count: usize, owner: Weak<Owner>) -> Result<Self> {
        let data = count.checked_sub(1).ok_or(Error::Invalid)?;
        if data != 0 && !data.is_power_of_two() {
            return Err(Error::Invalid);
        }
        if count > mach::mem::stats().total as usize / MEMORY_SHARE {
            return Err(Error::OutOfMemory);
        }
        let charge = charge(count as u64)?;
        let mut pages = Vec::new();
        pages.make_room(count)?;
        for _ in 0..count {
            pages.push(Page::zeroed().ok_or(Error::OutOfMemory)?);
            resched_point();
        }
        let ring = Self {
            pages,
            state: Spin::default(),
            owner,
            _charge: charge,
        };
        ring.tell(DATA_OFFSET, PAGE_BYTES as u64);
        ring.tell(DATA_SIZE, ring.bytes());
        Ok(ring)
    }

    /// Bytes for records.
    fn bytes(&self) -> u64 {
        (self.pages.len().saturating_sub(1) * PAGE_BYTES) as u64
    }

    fn tell(&self, at: usize, value: u64) {
        if let Some(page) = self.pages.first() {
            page.store_u64(at, value);
        }
    }

    /// Up to where the program says that it has read.
    fn tail(&self) -> u64 {
        self.pages
            .first()
            .map_or(0, |page| page.load_u64(DATA_TAIL))
    }

    /// Whether the program has something to read of which it was told.
    pub fn is_readable(&self) -> bool {
        let unread = self.state.lock().announced.wrapping_sub(self.tail());
        (1..=self.bytes()).contains(&unread)
    }

    /// So many records could not even be made.
    pub fn lose(&self, count: u64) {
        self.state.lock().lost += count;
    }

    /// How many records are lost that nobody was told of; who asks is to write it down.
    pub fn take_losses(&self) -> u64 {
        core::mem::take(&mut self.state.lock().lost)
    }

    /// Adds the records, all or none. Whether the program is to be told.
    ///
    /// Errors: `NoSpace`.
    pub fn write(&self, records: [&[u64]; 2], wakeup: Wakeup) -> Result<bool> {
        let mut state = self.state.lock();
        let unread = state.head.wrapping_sub(self.tail());
        let room = self.bytes().saturating_sub(unread);
        let bytes: usize = records.iter().map(|words| size_of_val(*words)).sum();
        if bytes as u64 >= room {
            return Err(Error::NoSpace);
        }
        for word in records.into_iter().flatten() {
            self.put(state.head, *word);
            state.head = state.head.wrapping_add(size_of::<u64>() as u64);
        }
        self.tell(DATA_HEAD, state.head);
        Ok(self.announces(&mut state, wakeup))
    }

    /// Records are whole words, so none of them lies in two pages.
    fn put(&self, at: u64, word: u64) {
        let at = (at % self.bytes()) as usize;
        if let Some(page) = self.pages.get(1 + at / PAGE_BYTES) {
            page.store_u64(at % PAGE_BYTES, word);
        }
    }

    fn announces(&self, state: &mut State, wakeup: Wakeup) -> bool {
        state.unannounced += 1;
        let half = self.bytes() / 2;
        let is_due = match wakeup {
            Wakeup::Records(count @ 1..) => state.unannounced >= count,
            Wakeup::Records(0) => state.head.wrapping_sub(state.announced) >= half,
            Wakeup::Bytes(count) => {
                state.head.wrapping_sub(state.announced) >= u64::from(count).clamp(1, half.max(1))
            }
        };
        if is_due {
            state.unannounced = 0;
            state.announced = state.head;
        }
        is_due
    }
}

/// What one user may have of these pages: a share for each CPU, and what the process may lock.
fn charge(count: u64) -> Result<Charge> {
    let me = current();
    let is_free = me
        .credentials
        .with(|who| who.has(Capability::IpcLock) || who.has(Capability::Perfmon));
    let shared = USER_RING_KIBIBYTES * 1024 * mach::cpu::count() as u64;
    let own = me.process.limits.soft(Resource::LockedBytes);
    let limit = match is_free {
        true => u64::MAX,
        false => shared.saturating_add(own) / PAGE_BYTES as u64,
    };
    let uid = me.credentials.with(|who| who.user.real);
    let charged = Account::of(uid)?.charge_many(Counted::RingPages, count, limit);
    charged.map_err(|_| Error::NotPermitted)
}

impl<Owner: Send + Sync> MemoryObject for Ring<Owner> {
    fn page(&self, index: u64, sharing: Sharing) -> core::result::Result<Page, FaultError> {
        self.ready_page(index, sharing).ok_or(FaultError::Bus)
    }

    fn ready_page(&self, index: u64, _: Sharing) -> Option<Page> {
        self.pages.get(usize::try_from(index).ok()?).cloned()
    }

    fn size(&self) -> u64 {
        (self.pages.len() * PAGE_BYTES) as u64
    }

    fn label(&self) -> &'static str {
        "anon_inode:[perf_event]"
    }
}
