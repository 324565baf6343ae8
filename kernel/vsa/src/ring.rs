//! A program's ring to its area: submissions become requests of the disk, and their ends completions.
//!
//! A submission is copied once, checked and translated (`core/vsa`), and becomes one request for each stretch of blocks and memory
//! that lies together; most often that is one. What a request needs is made with the ring and goes round.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};

use block::{Durability, Operation};
use kernel_block::lent::{self, Batch, LentPages, Order, Parcel};
use mach::mem::fallible::TryGrow;
use mach::sync::{Once, Spin};
use mm::pinned::Held;
use mm::shared_pages::{PageBudget, SharedPages};
use sync::poll::{Events, Pollee};
use sync::{Error, Result};
use vsa::ring::{Checked, Completer, Nonsense, Outcome, RingSize, Submission, Taker};
use vsa::{AREA_EXTENTS_MAX, Map};

use crate::area::{Area, Revocable};
use crate::pending::{self, Place, Served, Turn};

/// What all rings may take together: memory is the machine's.
static BUDGET: PageBudget = PageBudget::share_of_memory(8);

/// Submissions of one turn.
const TURN: u32 = 64;
/// Requests of one submission: its extents, and in each the memory's first page, whole pages, and the last page.
const PARTS_MAX: usize = AREA_EXTENTS_MAX * 3;
/// The tag of a request that is all of its submission.
const WHOLE: u64 = u64::MAX;

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
    me: Weak<Self>,
    _place: Place,
}

struct Taking {
    taker: Taker,
    /// Nothing once the area was made smaller or taken away.
    map: Option<Arc<Map>>,
    spare: Vec<Parcel>,
    is_awake: bool,
}

struct Putting {
    completer: Completer,
    idle: Vec<Parcel>,
    /// Submissions that became several requests.
    split: Vec<Split>,
}

/// A submission that became several requests.
struct Split {
    left: usize,
    outcome: Outcome,
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
        let memory = SharedPages::new(size.bytes(), &BUDGET, "/dev/vsa")?;
        let parcels = (size.entries() as usize).max(PARTS_MAX);
        let (mut idle, mut spare, mut split) = (Vec::new(), Vec::new(), Vec::new());
        idle.make_room(parcels)?;
        spare.make_room(parcels)?;
        split.make_room(size.entries() as usize)?;
        for _ in 0..parcels {
            idle.push(Parcel::new()?);
        }
        for _ in 0..size.entries() {
            split.push(Split {
                left: 0,
                outcome: Outcome::Done,
            });
        }
        let taker = Taker::new(size);
        taker.sleep(&*memory);
        Ok(Arc::new_cyclic(|me| Self {
            block_bytes: area.block_bytes() as u32,
            area,
            memory,
            pages: Once::new(),
            taking: Spin::new(Taking {
                taker,
                map: Some(map),
                spare,
                is_awake: false,
            }),
            putting: Spin::new(Putting {
                completer: Completer::new(size),
                idle,
                split,
            }),
            is_pending: AtomicBool::new(false),
            is_broken: AtomicBool::new(false),
            pollee,
            me: me.clone(),
            _place: place,
        }))
    }

    /// What the program maps.
    pub fn memory(&self) -> &Arc<SharedPages> {
        &self.memory
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
        self.taking.lock().map = None;
    }

    /// The area has this map now.
    pub fn renew(&self, map: Arc<Map>) {
        self.taking.lock().map = Some(map);
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
    pub fn bell(&self) -> Result<()> {
        if self.serve() == Turn::More {
            self.pend();
            sched::raise(sched::Softirq::Block);
        }
        match self.is_broken.load(Ordering::Relaxed) {
            true => Err(Error::Io),
            false => Ok(()),
        }
    }

    fn break_off(&self) {
        self.is_broken.store(true, Ordering::Relaxed);
        self.pollee.notify(Events::ERR);
    }

    /// Takes a turn's submissions.
    fn serve(&self) -> Turn {
        if self.is_broken.load(Ordering::Relaxed) {
            return Turn::Done;
        }
        let turn = self.take_turn(&mut self.taking.lock());
        turn.unwrap_or_else(|Nonsense| {
            self.break_off();
            Turn::Done
        })
    }

    fn take_turn(&self, taking: &mut Taking) -> core::result::Result<Turn, Nonsense> {
        let filled = taking.taker.filled(&*self.memory)?;
        let count = match filled {
            0 => 0,
            _ => {
                let mut putting = self.putting.lock();
                putting.completer.reserve(&*self.memory, filled.min(TURN))?
            }
        };
        let taken = match count {
            0 => 0,
            _ => self.take_some(taking, count),
        };
        let under_way = self.putting.lock().completer.reserved();
        if under_way != 0 {
            return Ok(Turn::Done);
        }
        // Nothing is under way. Without room for completions it is the program's turn, without room at the disk that of others.
        taking.is_awake = false;
        let is_stuck = filled != 0 && taken == 0;
        match taking.taker.sleep(&*self.memory) && !is_stuck {
            true => Ok(Turn::More),
            false => Ok(Turn::Done),
        }
    }

    /// Takes so many submissions, whose completions have their places, unless the disk has no room.
    fn take_some(&self, taking: &mut Taking, count: u32) -> u32 {
        if !taking.is_awake {
            taking.is_awake = true;
            taking.taker.wake(&*self.memory);
        }
        self.area.count_in(count as usize);
        let taken = self.area.store.batch(|batch| {
            let mut taken = 0;
            while taken != count && self.begin(taking, batch) {
                taking.taker.take();
                taken += 1;
            }
            taken
        });
        taking.taker.show(&*self.memory);
        if taken != count {
            self.putting.lock().completer.release(count - taken);
            self.area.count_out((count - taken) as usize);
            // Others' requests fill the disk's queue; their ends make room.
            self.pend();
        }
        taken
    }

    /// Begins what the next submission asks for, or refuses it; false if there is no room for it.
    fn begin(&self, taking: &mut Taking, batch: &mut Batch<'_>) -> bool {
        let bytes = taking.taker.peek(&*self.memory);
        let Taking { map, spare, .. } = taking;
        let checked = Submission::decode(&bytes).and_then(|asked| {
            let map = map.as_ref().ok_or((Outcome::Revoked, asked.cookie))?;
            let shared = self.pages.get().map_or(0, |(pages, _)| pages.bytes());
            let checked = asked.check(map, self.block_bytes, shared);
            checked.map_err(|outcome| (outcome, asked.cookie))
        });
        match checked {
            Ok(checked) => self.hand_in(&checked, spare, batch),
            Err((outcome, cookie)) => {
                self.put(cookie, outcome);
                true
            }
        }
    }

    fn hand_in(
        &self,
        checked: &Checked<'_>,
        spare: &mut Vec<Parcel>,
        batch: &mut Batch<'_>,
    ) -> bool {
        let block = u64::from(self.block_bytes);
        let parts = self.parts(checked);
        if spare.len() < parts {
            spare.append(&mut self.putting.lock().idle);
        }
        if spare.len() < parts || batch.room() < parts {
            return false;
        }
        let slot = match parts {
            1 => WHOLE,
            _ => self.split(parts),
        };
        if checked.operation == vsa::ring::Operation::Flush {
            self.submit(checked, 0..0, 0..0, slot, spare, batch);
            return true;
        }
        let mut memory = checked.memory.clone();
        for piece in checked.pieces.clone() {
            let mut bytes = piece.first() * block..piece.end() * block;
            while !bytes.is_empty() {
                let len = part_len(&bytes, &memory);
                let (here, place) = (
                    memory.start..memory.end.min(memory.start + len),
                    bytes.start..bytes.start + len,
                );
                bytes.start += len;
                memory.start = here.end;
                self.submit(checked, place, here, slot, spare, batch);
            }
        }
        true
    }

    /// How many requests it becomes.
    fn parts(&self, checked: &Checked<'_>) -> usize {
        let block = u64::from(self.block_bytes);
        let mut memory = checked.memory.clone();
        let mut parts = 0;
        for piece in checked.pieces.clone() {
            let mut bytes = piece.first() * block..piece.end() * block;
            while !bytes.is_empty() {
                let len = part_len(&bytes, &memory);
                bytes.start += len;
                memory.start = memory.end.min(memory.start + len);
                parts += 1;
            }
        }
        parts.max(1)
    }

    fn split(&self, parts: usize) -> u64 {
        let mut putting = self.putting.lock();
        // There are as many as submissions under way.
        let free = putting
            .split
            .iter_mut()
            .enumerate()
            .find(|(_, split)| split.left == 0);
        free.map_or(WHOLE, |(slot, split)| {
            *split = Split {
                left: parts,
                outcome: Outcome::Done,
            };
            slot as u64
        })
    }

    fn submit(
        &self,
        checked: &Checked<'_>,
        bytes: Range<u64>,
        memory: Range<u64>,
        slot: u64,
        spare: &mut Vec<Parcel>,
        batch: &mut Batch<'_>,
    ) {
        let (Some(parcel), Some(taker)) = (spare.pop(), self.me.upgrade()) else {
            return;
        };
        let pages = self.pages.get().filter(|_| !memory.is_empty());
        let order = Order {
            operation: operation_of(checked.operation),
            bytes,
            memory: pages.map(|(pages, _)| (pages, memory)),
            taker,
            tag: [checked.cookie, slot],
        };
        batch.submit(order, parcel);
    }

    /// A submission is over that never became a request.
    fn put(&self, cookie: u64, outcome: Outcome) {
        self.putting
            .lock()
            .completer
            .put(&*self.memory, cookie, outcome);
        self.area.count_out(1);
        self.pend();
    }
}

/// How many bytes the next request is of.
fn part_len(bytes: &Range<u64>, memory: &Range<u64>) -> u64 {
    let len = bytes.end - bytes.start;
    match memory.is_empty() {
        true => len,
        false => lent::one_request(&(memory.start..memory.end.min(memory.start + len))),
    }
}

fn operation_of(operation: vsa::ring::Operation) -> Operation {
    match operation {
        vsa::ring::Operation::Read => Operation::Read,
        vsa::ring::Operation::Write { is_forced: false } => Operation::Write(Durability::Volatile),
        vsa::ring::Operation::Write { is_forced: true } => Operation::Write(Durability::Forced),
        vsa::ring::Operation::Flush => Operation::Flush,
        vsa::ring::Operation::Discard => Operation::Discard,
    }
}

impl Revocable for Ring {
    fn revoke(&self) {
        self.taking.lock().map = None;
    }

    fn hang_up(&self) {
        self.break_off();
    }
}

impl Served for Ring {
    fn pend(&self) {
        if !self.is_pending.swap(true, Ordering::AcqRel)
            && let Some(ring) = self.me.upgrade()
        {
            pending::push(ring);
        }
    }

    fn go_on(&self) -> Turn {
        self.is_pending.store(false, Ordering::Release);
        let turn = self.serve();
        let rings_bell = self.putting.lock().completer.program_sleeps(&*self.memory);
        if rings_bell {
            self.pollee.notify(Events::READABLE);
        }
        turn
    }
}

impl lent::Taker for Ring {
    fn ended(self: Arc<Self>, [cookie, slot]: [u64; 2], result: Result<()>, parcel: Parcel) {
        let outcome = match result {
            Ok(()) => Outcome::Done,
            Err(Error::Unsupported) => Outcome::Unknown,
            Err(_) => Outcome::Failed,
        };
        {
            let mut putting = self.putting.lock();
            putting.idle.push(parcel);
            let Some(outcome) = putting.settle(slot, outcome) else {
                return;
            };
            putting.completer.put(&*self.memory, cookie, outcome);
        }
        self.area.count_out(1);
        if !self.is_pending.swap(true, Ordering::AcqRel) {
            pending::push(self);
        }
    }
}

impl Putting {
    /// How the submission ended, if this was the last of its requests.
    fn settle(&mut self, slot: u64, outcome: Outcome) -> Option<Outcome> {
        let Some(split) = self.split.get_mut(slot as usize) else {
            return Some(outcome);
        };
        if split.outcome == Outcome::Done {
            split.outcome = outcome;
        }
        split.left -= 1;
        (split.left == 0).then_some(split.outcome)
    }
}
