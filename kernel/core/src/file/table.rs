//! Descriptors: small numbers for openings.
//!
//! Lock order: the table's lock is released before a file is used or closed.

use alloc::sync::Arc;
use alloc::vec::Vec;

use mach::sync::Spin;

use super::OpenFile;
use crate::error::{Error, Result};

/// A descriptor's number.
pub type Fd = u32;

#[derive(Clone)]
struct Entry {
    open: Arc<OpenFile>,
    close_on_exec: bool,
}

/// The descriptors of a program. Numbers below the limit, lowest free first.
#[derive(Default)]
pub struct FdTable {
    entries: Spin<Vec<Option<Entry>>>,
}

impl FdTable {
    /// The opening that `fd` stands for.
    pub fn get(&self, fd: Fd) -> Result<Arc<OpenFile>> {
        match self.entries.lock().get(fd as usize) {
            Some(Some(entry)) => Ok(entry.open.clone()),
            _ => Err(Error::BadFile),
        }
    }

    /// Gives the lowest free number from `least` on; it stays below `limit` (RLIMIT_NOFILE).
    pub fn insert(
        &self,
        open: Arc<OpenFile>,
        close_on_exec: bool,
        least: Fd,
        limit: u32,
    ) -> Result<Fd> {
        let mut entries = self.entries.lock();
        let taken = entries.iter().skip(least as usize).take_while(|e| e.is_some()).count();
        let fd = least as usize + taken;
        if fd >= limit as usize {
            return Err(Error::TooManyFiles);
        }
        if entries.len() <= fd {
            entries.resize(fd + 1, None);
        }
        entries[fd] = Some(Entry { open, close_on_exec });
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
        let mut entries = self.entries.lock();
        if entries.len() <= fd as usize {
            entries.resize(fd as usize + 1, None);
        }
        let old = entries[fd as usize].replace(Entry { open, close_on_exec });
        Ok(old.map(|entry| entry.open))
    }

    /// Frees `fd`; the caller drops the opening, which may block.
    pub fn remove(&self, fd: Fd) -> Result<Arc<OpenFile>> {
        let mut entries = self.entries.lock();
        let entry = entries.get_mut(fd as usize).and_then(Option::take);
        entry.map(|entry| entry.open).ok_or(Error::BadFile)
    }

    /// Whether exec closes `fd`.
    pub fn close_on_exec(&self, fd: Fd) -> Result<bool> {
        match self.entries.lock().get(fd as usize) {
            Some(Some(entry)) => Ok(entry.close_on_exec),
            _ => Err(Error::BadFile),
        }
    }

    /// Says whether exec closes `fd`.
    pub fn set_close_on_exec(&self, fd: Fd, close: bool) -> Result<()> {
        match self.entries.lock().get_mut(fd as usize) {
            Some(Some(entry)) => {
                entry.close_on_exec = close;
                Ok(())
            }
            _ => Err(Error::BadFile),
        }
    }

    /// A copy for a forked process: same openings, same numbers.
    pub fn fork(&self) -> Self {
        Self { entries: Spin::new(self.entries.lock().clone()) }
    }

    /// Frees what exec closes; the caller drops the openings.
    pub fn take_close_on_exec(&self) -> Vec<Arc<OpenFile>> {
        self.take_where(|entry| entry.close_on_exec)
    }

    /// Frees everything; the caller drops the openings.
    pub fn take_all(&self) -> Vec<Arc<OpenFile>> {
        self.take_where(|_| true)
    }

    fn take_where(&self, matches: impl Fn(&Entry) -> bool) -> Vec<Arc<OpenFile>> {
        let mut entries = self.entries.lock();
        let chosen = entries.iter_mut().filter(|slot| slot.as_ref().is_some_and(&matches));
        chosen.filter_map(|slot| slot.take().map(|entry| entry.open)).collect()
    }

    /// The numbers in use, in order.
    pub fn numbers(&self) -> Vec<Fd> {
        let entries = self.entries.lock();
        (0..).zip(entries.iter()).filter(|(_, slot)| slot.is_some()).map(|(fd, _)| fd).collect()
    }
}
