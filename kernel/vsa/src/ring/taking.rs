//! Submissions become requests.
//!
//! A turn takes what the program has shown, up to [`TURN`], under one lock of the disk's queue, and shows the device all of it
//! at once. Each submission is copied, and the copy is checked and translated: most are transfers of a part of one page in the extent
//! that was used last, which go straight to the disk's driver, and the others become requests as anybody's.

use alloc::sync::Arc;
use core::result::Result as CoreResult;
use core::sync::atomic::Ordering;

use kernel_block::lent::{self, Batch, LentPages, Loan, Taker as _, WHOLE};
use sync::Error;
use vsa::ring::{Checked, Nonsense, Outcome, Submission, Taker, Translation};

use super::Ring;
use super::parts::{Part, Parts, operation_of};
use crate::pending::{self, Served};

/// Submissions of one turn.
const TURN: u32 = 64;

pub(super) struct Taking {
    pub taker: Taker,
    /// Without a map once the area was made smaller or taken away.
    pub translation: Translation,
    pub is_awake: bool,
}

/// What a turn has left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Turn {
    /// Nothing, or the end of a request leads to it.
    Done,
    /// There is more, and nobody else will look.
    More,
}

impl Ring {
    /// Takes a turn's submissions, and shows what has ended by itself.
    pub(super) fn serve(self: &Arc<Self>) {
        if self.is_broken.load(Ordering::Relaxed) {
            return;
        }
        let turn = self.take_turn(&mut self.taking.lock());
        match turn {
            Ok(Turn::Done) => {}
            Ok(Turn::More) => self.pend(),
            Err(Nonsense) => self.break_off(),
        }
    }

    /// Has another turn, whoever else has one first.
    fn pend(self: &Arc<Self>) {
        if !self.is_pending.swap(true, Ordering::AcqRel) {
            pending::push_and_raise(self.clone());
        }
    }

    fn take_turn(self: &Arc<Self>, taking: &mut Taking) -> CoreResult<Turn, Nonsense> {
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
    fn take_some(self: &Arc<Self>, taking: &mut Taking, count: u32) -> u32 {
        if !taking.is_awake {
            taking.is_awake = true;
            taking.taker.wake(&*self.memory);
        }
        self.area.count_in(count as usize);
        let pages = self.pages.get().map(|(pages, _)| pages);
        let taken = self.area.store.batch(|batch| {
            let mut taken = 0;
            while taken != count && self.begin(taking, pages, batch) {
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
            if !self.is_pending.swap(true, Ordering::AcqRel) {
                pending::push(self.clone());
            }
        }
        taken
    }

    /// Begins what the next submission asks for, or refuses it; false if there is no room for it.
    #[inline]
    fn begin(
        self: &Arc<Self>,
        taking: &mut Taking,
        pages: Option<&Arc<LentPages>>,
        batch: &mut Batch<'_>,
    ) -> bool {
        let bytes = taking.taker.peek(&*self.memory);
        let Some(page) = taking.translation.page(&bytes) else {
            return self.begin_other(taking, pages, batch);
        };
        let memory = page.memory..page.memory_end;
        let is_begun = pages.is_some_and(|pages| {
            let taker = || self.clone() as Arc<dyn lent::Taker>;
            batch.submit_page(
                page.is_write,
                page.first,
                (pages, memory),
                page.cookie,
                taker,
            )
        });
        is_begun || self.begin_other(taking, pages, batch)
    }

    /// Begins what is not a transfer of a part of one page, or has to wait for its turn at the disk, or cannot be. It goes by a copy of
    /// its own, which the program may have changed.
    #[inline(never)]
    fn begin_other(
        self: &Arc<Self>,
        taking: &Taking,
        pages: Option<&Arc<LentPages>>,
        batch: &mut Batch<'_>,
    ) -> bool {
        let map = taking.translation.map();
        let bytes = taking.taker.peek(&*self.memory);
        let checked = Submission::decode(&bytes).and_then(|asked| {
            let map = map.ok_or((Outcome::Revoked, asked.cookie))?;
            let shared = pages.map_or(0, |pages| pages.bytes());
            let checked = asked.check(map, self.block_bytes, shared);
            checked.map_err(|outcome| (outcome, asked.cookie))
        });
        match checked {
            Ok(checked) => self.hand_in(&checked, pages, batch),
            Err((outcome, cookie)) => {
                let mut putting = self.putting.lock();
                putting.completer.put(&*self.memory, cookie, outcome);
                true
            }
        }
    }

    /// Begins a request for each of its parts.
    fn hand_in(
        self: &Arc<Self>,
        checked: &Checked<'_>,
        pages: Option<&Arc<LentPages>>,
        batch: &mut Batch<'_>,
    ) -> bool {
        let mut parts = Parts::of(checked, self.block_bytes);
        let count = parts.count_all();
        if batch.room() < count {
            return false;
        }
        let slot = match count {
            1 => WHOLE,
            _ => self.putting.lock().split(count),
        };
        for _ in 0..count {
            let part = parts.next().unwrap_or(Part::NOTHING);
            self.submit(checked, part, pages, slot, batch);
        }
        true
    }

    fn submit(
        self: &Arc<Self>,
        checked: &Checked<'_>,
        part: Part,
        pages: Option<&Arc<LentPages>>,
        slot: u64,
        batch: &mut Batch<'_>,
    ) {
        let tag = [checked.cookie, slot];
        let loan = match pages.filter(|_| !part.memory.is_empty()) {
            Some(pages) => Loan::new(pages, &part.memory, self.clone(), tag),
            None => Some(Loan::of_nothing(self.clone(), tag)),
        };
        match loan {
            Some(loan) => batch.submit(operation_of(checked.operation), part.bytes, loan),
            // The check has seen that they are there.
            None => self.clone().ended(tag, Err(Error::Io)),
        }
    }
}

impl Served for Ring {
    fn go_on(self: Arc<Self>) {
        self.is_pending.store(false, Ordering::Release);
        self.serve();
        self.show();
    }
}
