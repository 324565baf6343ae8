//! Locks that programs put on files: fcntl's record locks and flock.
//!
//! Record locks belong to a process (`F_SETLK`) or to an open file (`F_OFD_SETLK`); flock's
//! belong to an open file and cover the whole file. The arithmetic is `rangelock`'s. Who
//! waits is kept in one graph, so that a circle of processes is refused (EDEADLK).
//!
//! Lock order: a file's table, then the graph; both are short spin locks.

use alloc::sync::Arc;
use core::ops::Range;

use mach::sync::{Once, Spin};
pub use rangelock::Mode;
use rangelock::{RangeLocks, WaitGraph};
use sync::{Error, Result, Wait, WaitQueue};

/// Who holds a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// A program, by the address of its table of descriptors.
    Program {
        /// The address.
        table: usize,
        /// The process that took the lock, to be told to others.
        process: u32,
    },
    /// An open file description, by its address, which is unique as long as it lives.
    Description(usize),
}

/// A record lock that is in the way: what F_GETLK tells.
pub type Conflict = rangelock::Held<Owner>;

#[derive(Default)]
struct Table {
    records: Spin<RangeLocks<Owner>>,
    whole: Spin<RangeLocks<Owner>>,
    released: WaitQueue,
}

/// The locks of one file; no memory until the first. Each close looks whether there are any, on all
/// CPUs, and takes no lock for that.
#[derive(Default)]
pub struct FileLocks(Once<Arc<Table>>);

/// The two families of locks, which ignore each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// fcntl's.
    Record,
    /// flock's.
    Whole,
}

/// A circle of waits may lead through the locks of many files.
static WAITING: Spin<WaitGraph<Owner>> = Spin::new(WaitGraph::new());

impl FileLocks {
    fn table(&self) -> &Table {
        self.0.call_once(Arc::default)
    }

    /// Takes a lock; with `block` it waits for others to go.
    pub fn lock(
        &self,
        family: Family,
        owner: Owner,
        range: Range<u64>,
        mode: Mode,
        block: bool,
    ) -> Result<()> {
        let table = self.table();
        match table.try_lock(family, owner, &range, mode)? {
            None => Ok(()),
            Some(_) if !block => Err(Error::WouldBlock),
            Some(_) => table.wait_and_lock(family, owner, &range, mode),
        }
    }

    /// Gives a range back.
    pub fn unlock(&self, family: Family, owner: Owner, range: &Range<u64>) {
        if let Some(table) = self.0.get()
            && table.list(family).lock().remove(owner, range)
        {
            table.released.wake_all();
        }
    }

    /// Gives back all that an open file holds.
    pub fn release_description(&self, description: usize) {
        self.release(|owner| owner == Owner::Description(description));
    }

    /// Gives back all that a program holds, by the address of its table.
    pub fn release_program(&self, program: usize) {
        self.release(|owner| matches!(owner, Owner::Program { table, .. } if table == program));
    }

    fn release(&self, is_gone: impl Fn(Owner) -> bool) {
        let Some(table) = self.0.get() else { return };
        let records = table.records.lock().remove_owners(&is_gone);
        let whole = table.whole.lock().remove_owners(&is_gone);
        if records || whole {
            table.released.wake_all();
        }
    }

    /// Who is in the way of a record lock.
    pub fn conflict(&self, owner: Owner, range: &Range<u64>, mode: Mode) -> Option<Conflict> {
        let table = self.0.get()?;
        let records = table.records.lock();
        records.conflict(owner, range, mode).cloned()
    }
}

impl Table {
    fn list(&self, family: Family) -> &Spin<RangeLocks<Owner>> {
        match family {
            Family::Record => &self.records,
            Family::Whole => &self.whole,
        }
    }

    /// Takes the lock, or says who is in the way.
    fn try_lock(
        &self,
        family: Family,
        owner: Owner,
        range: &Range<u64>,
        mode: Mode,
    ) -> Result<Option<Owner>> {
        let mut list = self.list(family).lock();
        if let Some(held) = list.conflict(owner, range, mode) {
            return Ok(Some(held.owner));
        }
        list.insert(owner, range.clone(), mode)
            .map_err(|_| Error::NoLocks)?;
        drop(list);
        // A lock that became weaker may let others in.
        self.released.wake_all();
        Ok(None)
    }

    fn wait_and_lock(
        &self,
        family: Family,
        owner: Owner,
        range: &Range<u64>,
        mode: Mode,
    ) -> Result<()> {
        let mut edge = None;
        let outcome = self.released.wait(Wait::INTERRUPTIBLE, || {
            leave(owner, edge.take());
            match self.try_lock(family, owner, range, mode) {
                Err(error) => Some(Err(error)),
                Ok(None) => Some(Ok(())),
                Ok(Some(holder)) => {
                    edge = Some(holder);
                    enter(family, owner, holder).err().map(Err)
                }
            }
        });
        leave(owner, edge.take());
        outcome?
    }
}

/// Notes that `owner` waits, unless it would wait for itself.
fn enter(family: Family, owner: Owner, holder: Owner) -> Result<()> {
    let mut waiting = WAITING.lock();
    let checked = family == Family::Record && matches!(owner, Owner::Program { .. });
    if checked && waiting.would_deadlock(owner, holder) {
        return Err(Error::Deadlock);
    }
    waiting.add(owner, holder);
    Ok(())
}

fn leave(owner: Owner, holder: Option<Owner>) {
    if let Some(holder) = holder {
        WAITING.lock().remove(owner, holder);
    }
}
