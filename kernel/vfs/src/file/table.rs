//! Descriptors: small numbers for open files.
//!
//! A table is also what owns the record locks of fcntl(2) (`fs::locks`): they end when the
//! table gives up any of its descriptors of the file.
//!
//! Invariant: every number below `first_free` is taken.
//! Lock order: the table's lock is released before a file is used or closed.

use alloc::sync::Arc;
use alloc::vec::Vec;

use mach::mem::fallible::TryGrow;
use mach::sync::RwSpin;
use sched::resched_point;
use sync::{Error, Result};

use super::{OpenFile, StatusFlags};

/// A descriptor's number.
pub type Fd = u32;

#[derive(Clone)]
struct Entry {
    open: Arc<OpenFile>,
    close_on_exec: bool,
}

#[derive(Default)]
struct State {
    entries: Vec<Option<Entry>>,
    first_free: usize,
}

impl State {
    fn get(&self, fd: Fd) -> Result<&Entry> {
        match self.entries.get(fd as usize) {
            Some(Some(entry)) => Ok(entry),
            _ => Err(Error::BadFile),
        }
    }

    fn copy(&self) -> Result<Self> {
        let mut entries = Vec::new();
        entries
            .make_room(self.entries.len())
            .map_err(|_| Error::OutOfMemory)?;
        entries.extend_from_slice(&self.entries);
        Ok(Self {
            entries,
            first_free: self.first_free,
        })
    }

    /// The slot of a number, which comes into being.
    fn slot(&mut self, fd: usize) -> Result<&mut Option<Entry>> {
        if self.entries.len() <= fd {
            let more = fd + 1 - self.entries.len();
            self.entries
                .make_room(more)
                .map_err(|_| Error::OutOfMemory)?;
            self.entries.resize(fd + 1, None);
        }
        Ok(&mut self.entries[fd])
    }

    fn lowest_free(&self, least: usize) -> usize {
        let start = self.first_free.max(least);
        let taken = self
            .entries
            .iter()
            .skip(start)
            .take_while(|entry| entry.is_some());
        start + taken.count()
    }
}

/// The descriptors of a program. Numbers below the limit, lowest free first.
pub struct FdTable {
    state: RwSpin<State>,
}

impl Default for FdTable {
    fn default() -> Self {
        Self {
            state: RwSpin::new(State::default()),
        }
    }
}

impl FdTable {
    /// The open file that `fd` stands for; to most calls one that only names a place is none.
    pub fn get(&self, fd: Fd) -> Result<Arc<OpenFile>> {
        let state = self.state.read();
        let open = &state.get(fd)?.open;
        match open.flags().contains(StatusFlags::PATH) {
            true => Err(Error::BadFile),
            false => Ok(open.clone()),
        }
    }

    /// The same with those that only name a place.
    pub fn get_any(&self, fd: Fd) -> Result<Arc<OpenFile>> {
        self.state.read().get(fd).map(|entry| entry.open.clone())
    }

    /// Gives the lowest free number from `least` on; it stays below `limit` (RLIMIT_NOFILE).
    pub fn insert(
        &self,
        open: Arc<OpenFile>,
        close_on_exec: bool,
        least: Fd,
        limit: u32,
    ) -> Result<Fd> {
        let mut state = self.state.write();
        let fd = state.lowest_free(least as usize);
        if fd >= limit as usize {
            return Err(Error::TooManyFiles);
        }
        // Found first: an opening that gets no place is closed without the lock.
        let slot = state.slot(fd)?;
        *slot = Some(Entry {
            open,
            close_on_exec,
        });
        if least as usize <= state.first_free {
            state.first_free = fd + 1;
        }
        Ok(fd as Fd)
    }

    /// Makes `fd` stand for `open`; gives back what it stood for (dup2).
    pub fn replace(
        &self,
        fd: Fd,
        open: Arc<OpenFile>,
        close_on_exec: bool,
        limit: u32,
    ) -> Result<Option<Arc<OpenFile>>> {
        if fd >= limit {
            return Err(Error::BadFile);
        }
        let old = self.state.write().slot(fd as usize)?.replace(Entry {
            open,
            close_on_exec,
        });
        Ok(old.map(|entry| self.give_up(entry)))
    }

    /// Frees `fd`; the caller drops the open file, which may block.
    pub fn remove(&self, fd: Fd) -> Result<Arc<OpenFile>> {
        let entry = {
            let mut state = self.state.write();
            let entry = state.entries.get_mut(fd as usize).and_then(Option::take);
            state.first_free = state.first_free.min(fd as usize);
            entry.ok_or(Error::BadFile)?
        };
        Ok(self.give_up(entry))
    }

    /// The program's record locks on the file end with the first descriptor that does.
    fn give_up(&self, entry: Entry) -> Arc<OpenFile> {
        entry.open.flush(self.lock_owner());
        entry.open
    }

    /// What stands for this table as the owner of record locks: its address, which no
    /// other table has while this one lives.
    pub fn lock_owner(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// Whether exec closes `fd`.
    pub fn close_on_exec(&self, fd: Fd) -> Result<bool> {
        self.state.read().get(fd).map(|entry| entry.close_on_exec)
    }

    /// Says whether exec closes `fd`.
    pub fn set_close_on_exec(&self, fd: Fd, close: bool) -> Result<()> {
        match self.state.write().entries.get_mut(fd as usize) {
            Some(Some(entry)) => {
                entry.close_on_exec = close;
                Ok(())
            }
            _ => Err(Error::BadFile),
        }
    }

    /// A copy for a forked process: same open files, same numbers.
    ///
    /// Errors: `OutOfMemory`; tables can be large.
    pub fn fork(&self) -> Result<Self> {
        let copy = self.state.read().copy()?;
        Ok(Self {
            state: RwSpin::new(copy),
        })
    }

    /// Closes what exec closes; may block.
    pub fn close_on_exec_now(&self) {
        let mut next = 0;
        while let Some(entry) = self.take_from(&mut next, |entry| entry.close_on_exec) {
            drop(self.give_up(entry));
            resched_point();
        }
    }

    /// Takes out the first open file that `matches` from number `next` on, which moves on.
    /// One at a time: a list of all would need memory when there may be none.
    fn take_from(&self, next: &mut usize, matches: impl Fn(&Entry) -> bool) -> Option<Entry> {
        let mut state = self.state.write();
        let slots = state.entries.iter().skip(*next);
        let found = slots
            .take_while(|slot| !slot.as_ref().is_some_and(&matches))
            .count()
            + *next;
        *next = found + 1;
        let entry = state.entries.get_mut(found)?.take();
        state.first_free = state.first_free.min(found);
        entry
    }

    /// The lowest number in use from `least` on.
    pub fn next_number(&self, least: Fd) -> Option<Fd> {
        let state = self.state.read();
        let slots = (least..).zip(state.entries.iter().skip(least as usize));
        slots
            .filter(|(_, slot)| slot.is_some())
            .map(|(fd, _)| fd)
            .next()
    }
}

/// Openings may block when they are closed, so whoever drops a table holds no spin lock.
impl Drop for FdTable {
    fn drop(&mut self) {
        let entries = core::mem::take(&mut self.state.write().entries);
        for entry in entries.into_iter().flatten() {
            drop(self.give_up(entry));
            resched_point();
        }
    }
}
