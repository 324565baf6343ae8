//! A program's ring to its area: submissions become requests of the disk, and their ends completions.
//!
//! A submission is copied once, checked and translated (`core/vsa`), and becomes one request for each stretch of blocks and memory
//! that lies together; most often that is one, of one page, which the disk's driver is told at once. A request lies by value in the
//! disk's queue, so none allocates.

mod parts;
mod putting;
mod taking;
mod waiting;

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};

use kernel_block::lent::LentPages;
use mach::mem::fallible;
use mach::sync::{Once, Spin};
use mm::pinned::Held;
use mm::shared_pages::{PageBudget, SharedPages};
use sync::poll::{Events, Pollee};
use sync::{Error, Result};
use vsa::Map;
use vsa::ring::{Nonsense, RingSize, Taker, Translation};

use crate::area::{Area, Revocable};
use crate::pending::Place;
use putting::Putting;
use taking::Taking;

/// What all rings may take together: memory is the machine's.
static BUDGET: PageBudget = PageBudget::share_of_memory(8);

/// See the module.
pub struct Ring {
    area: Arc<Area>,
    memory: Arc<SharedPages>,
    block_bytes: u32,
    pages: Once<(Arc<LentPages>, Held)>,
    taking: Spin<Taking>,
    putting: Spin<Putting>,
    is_pending: AtomicBool,
    /// An index of the program's made no sense, or the area was taken away.
    is_broken: AtomicBool,
    pollee: Arc<Pollee>,
    _place: Place,
}

impl Ring {
    /// An empty one.
    ///
    /// Errors: `NoBuffers`, `OutOfMemory`.
    pub fn new(
        area: Arc<Area>,
        map: Arc<Map>,
        size: RingSize,
        pollee: Arc<Pollee>,
    ) -> Result<Arc<Self>> {
        let place = Place::new()?;
        let block_bytes = area.block_bytes() as u32;
        let memory = SharedPages::new(size.bytes(), &BUDGET, "/dev/vsa")?;
        let putting = Putting::new(size)?;
        let taker = Taker::new(size);
        taker.sleep(&*memory);
        Ok(fallible::arc(Self {
            block_bytes,
            area,
            memory,
            pages: Once::new(),
            taking: Spin::new(Taking {
                taker,
                translation: Translation::new(map, block_bytes),
                is_awake: false,
            }),
            putting: Spin::new(putting),
            is_pending: AtomicBool::new(false),
            is_broken: AtomicBool::new(false),
            pollee,
            _place: place,
        })?)
    }

    /// What the program maps.
    pub fn memory(&self) -> &Arc<SharedPages> {
        &self.memory
    }

    /// Whether its memory was said.
    pub fn has_pages(&self) -> bool {
        self.pages.get().is_some()
    }

    /// Says which memory the program's numbers mean, once.
    ///
    /// Errors: `Busy`.
    pub fn set_pages(&self, pages: Arc<LentPages>, held: Held) -> Result<()> {
        self.pages.set((pages, held)).map_err(|_| Error::Busy)
    }

    /// Nothing is taken any more, whatever the program does; what is under way ends.
    pub fn end(&self) {
        self.is_broken.store(true, Ordering::Relaxed);
        // Whoever is at it has looked before.
        self.taking.lock().translation.set(None);
    }

    /// The area has this map now.
    pub fn renew(&self, map: Arc<Map>) {
        self.taking.lock().translation.set(Some(map));
    }

    /// What the program need not wait for.
    pub fn ready(&self) -> Events {
        let mut events = Events::empty();
        match self.putting.lock().completer.filled(&*self.memory) {
            Ok(0) => {}
            Ok(_) => events |= Events::READABLE,
            Err(Nonsense) => events |= Events::ERR,
        }
        if self.is_broken.load(Ordering::Relaxed) {
            events |= Events::ERR;
        }
        events
    }

    /// The program has rung.
    ///
    /// Errors: `Io` if the ring is not used any more.
    pub fn bell(self: &Arc<Self>) -> Result<()> {
        self.serve();
        self.show();
        match self.is_broken.load(Ordering::Relaxed) {
            true => Err(Error::Io),
            false => Ok(()),
        }
    }

    fn break_off(&self) {
        self.is_broken.store(true, Ordering::SeqCst);
        self.wake_waiter();
        self.pollee.notify(Events::ERR);
    }
}

impl Revocable for Ring {
    fn revoke(&self) {
        self.taking.lock().translation.set(None);
    }

    fn hang_up(&self) {
        self.break_off();
    }
}
