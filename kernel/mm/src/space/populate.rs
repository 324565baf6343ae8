//! Making pages resident before the program touches them: `MAP_POPULATE`, `MADV_POPULATE_READ`
//! and `MADV_POPULATE_WRITE`, mlock(2).
//!
//! Pages are faulted in as if the program had touched them, area by area, with a chance to
//! reschedule after each page. Nothing is locked in between: an area that others change
//! meanwhile is met as it is then.

use core::ops::Range;

use base::{PAGE_BYTES, VirtAddr};
use sched::{Flags, resched_point};
use sync::{Error, Restart};

use super::{Access, AddressSpace, FaultError, Rights};

/// How pages are touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Touch {
    /// As by a load.
    Read,
    /// As by a store.
    Write,
    /// So that a permitted access finds them: private memory that may be stored to is stored to.
    Usual,
}

/// Why pages did not become resident.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unpopulated {
    /// Nothing is mapped at some address.
    Hole,
    /// An area does not permit the touch.
    Forbidden,
    /// A fault was not resolved.
    Fault(FaultError),
    /// The program ends: nobody waits for what it has asked for.
    Ending,
}

impl From<Unpopulated> for Error {
    /// As madvise(2) says it.
    fn from(why: Unpopulated) -> Self {
        match why {
            Unpopulated::Forbidden => Self::Invalid,
            Unpopulated::Hole | Unpopulated::Fault(FaultError::OutOfMemory) => Self::OutOfMemory,
            Unpopulated::Fault(_) => Self::BadAddress,
            Unpopulated::Ending => Self::Interrupted(Restart::Never),
        }
    }
}

/// A part of a range that lies in one area.
struct Part {
    range: Range<VirtAddr>,
    rights: Rights,
    is_shared: bool,
}

impl Touch {
    fn access(self, part: &Part) -> Option<Access> {
        let rights = part.rights;
        let choices = match self {
            Self::Read => [(rights.read, Access::Read); 3],
            Self::Write => [(rights.write, Access::Write); 3],
            Self::Usual => [
                (rights.write && !part.is_shared, Access::Write),
                (rights.read || rights.write, Access::Read),
                (rights.exec, Access::Execute),
            ],
        };
        let permitted = choices.iter().find(|(is_permitted, _)| *is_permitted);
        permitted.map(|&(_, access)| access)
    }
}

impl AddressSpace {
    /// Makes all pages of a range resident, up to the first that cannot be.
    pub(super) fn populate(&self, range: Range<VirtAddr>, touch: Touch) -> Result<(), Unpopulated> {
        let mut at = range.start;
        while at < range.end {
            let part = self.first_part(at..range.end);
            let part = part.filter(|part| part.range.start == at);
            let part = part.ok_or(Unpopulated::Hole)?;
            self.populate_part(&part, touch)?;
            at = part.range.end;
        }
        Ok(())
    }

    /// Makes pages of a range resident, in each area as far as that works.
    pub(super) fn populate_possible(&self, range: Range<VirtAddr>) {
        let mut at = range.start;
        while let Some(part) = self.first_part(at..range.end) {
            if self.populate_part(&part, Touch::Usual) == Err(Unpopulated::Ending) {
                return;
            }
            at = part.range.end;
        }
    }

    fn first_part(&self, range: Range<VirtAddr>) -> Option<Part> {
        let state = self.lock();
        let area = state.areas.overlapping(range.clone()).next()?;
        Some(Part {
            range: area.clip(&range),
            rights: area.access,
            is_shared: area.traits.shared,
        })
    }

    fn populate_part(&self, part: &Part, touch: Touch) -> Result<(), Unpopulated> {
        let access = touch.access(part).ok_or(Unpopulated::Forbidden)?;
        for at in (part.range.start.0..part.range.end.0).step_by(PAGE_BYTES) {
            self.fault(VirtAddr(at), access)
                .map_err(Unpopulated::Fault)?;
            if sched::current().flags().contains(Flags::EXIT) {
                return Err(Unpopulated::Ending);
            }
            resched_point();
        }
        Ok(())
    }
}
