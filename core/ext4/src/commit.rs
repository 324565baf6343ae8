//! What fsync(2) waits for, and commits and flushes that run without the volume's lock.
//!
//! # Problem
//! A commit is three waits for the disk. Who holds the volume meanwhile keeps the next ones from bringing their data down, so each
//! of several threads that sync commits alone.
//!
//! # Idea
//! A commit begins under the lock ([`Volume::next_step`]): the running transaction gets its sums and its place in the log, and
//! an empty one takes its place. [`Commit::write`] needs the disk only. [`Volume::end_commit`] draws the consequences. Changes
//! meanwhile belong to the next transaction; blocks are shared copy-on-write, so the log gets them as they were.
//!
//! A file that is synced waits for a [`SyncPoint`]: the number of the transaction that has its last change, and how much had been
//! written in place. Whoever finds its point reached returns; who finds something under way waits for that and looks again;
//! any other is the leader of all that came by now.
//!
//! # Invariants
//! - **One at a time**: while a commit or a flush is under way no other begins, and nothing that needs one goes on: it fails
//!   with [`Error::Busy`], without a trace. A flush that fails may have dropped what the other has just promised.
//! - **Freed late**: blocks that a transaction freed are nobody's until its commit has ended.
//! - **Kept**: blocks of the transaction under way wait for a checkpoint, which comes after its end.
//!
//! Not here: who waits, and how (`kernel/fs-ext4`).

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::device::{Device, Durability};
use crate::error::{Error, Result};
use crate::journal::Laid;
use crate::volume::{Sync, Volume};

/// What has to be on the medium for a file to be synced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SyncPoint {
    /// The transaction with the last change; 0 if that is committed.
    transaction: u64,
    /// Writes in place.
    writes: u64,
}

/// What is to be done for a [`SyncPoint`].
#[derive(Debug)]
pub enum Step {
    /// Nothing: it is reached.
    Reached,
    /// To wait for what is under way.
    Wait,
    /// To write this, and [`Volume::end_commit`].
    Commit(Commit),
    /// To flush the disk, and [`Volume::end_flush`].
    Flush,
}

/// A transaction on its way into the log.
#[derive(Debug)]
#[must_use = "nothing is committed until it has been written"]
pub struct Commit(Laid);

/// What is under way, as far as the volume has to know.
#[derive(Debug)]
pub(crate) enum UnderWay {
    Commit(Committing),
    /// It covers so many writes in place.
    Flush(u64),
}

#[derive(Debug)]
pub(crate) struct Committing {
    /// Its number.
    transaction: u64,
    /// Writes in place that its flush covers.
    writes: u64,
    changed: BTreeSet<u32>,
    resized: BTreeSet<u32>,
    /// How many runs of blocks it freed.
    freed: usize,
    /// Blocks of metadata that it freed.
    revoked: Vec<u64>,
}

impl Commit {
    /// Writes it; then a loss of power does not undo the transaction.
    pub fn write(&self, device: &mut dyn Device) -> Result<()> {
        let Self(laid) = self;
        for (offset, blocks) in &laid.pieces {
            let mut parts: Vec<&[u8]> = Vec::new();
            let room = parts.try_reserve_exact(blocks.len());
            room.map_err(|_| Error::OutOfMemory)?;
            parts.extend(blocks.iter().map(|block| block.as_slice()));
            device.write_parts(*offset, &parts, Durability::Volatile)?;
        }
        if !planted::is("a commit block does not wait for its transaction") {
            device.flush()?;
        }
        let durability = match planted::is("a commit block is not forced") {
            true => Durability::Volatile,
            false => Durability::Forced,
        };
        let (offset, block) = &laid.commit_block;
        Ok(device.write(*offset, block, durability)?)
    }
}

impl Volume {
    /// What a file waits for that is synced now.
    pub fn sync_point(&self, number: u32, what: Sync) -> SyncPoint {
        let of = |changed: &BTreeSet<u32>, resized: &BTreeSet<u32>| match what {
            Sync::All => changed.contains(&number),
            Sync::Data => resized.contains(&number) && !planted::is("fdatasync forgets a new size"),
        };
        let transaction = match &self.under_way {
            _ if of(&self.changed, &self.resized) => self.committed + 1 + self.is_committing(),
            Some(UnderWay::Commit(it))
                if of(&it.changed, &it.resized)
                    && !planted::is("a sync does not wait for the commit under way") =>
            {
                it.transaction
            }
            _ => 0,
        };
        SyncPoint {
            transaction,
            writes: self.writes,
        }
    }

    /// All that was done by now.
    pub fn whole_point(&self) -> SyncPoint {
        let running = u64::from(self.store.running_len() != 0);
        SyncPoint {
            transaction: self.committed + running + self.is_committing(),
            writes: self.writes,
        }
    }

    fn is_committing(&self) -> u64 {
        u64::from(matches!(self.under_way, Some(UnderWay::Commit(_))))
    }

    /// Whether a commit or a flush has begun and not ended.
    pub fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// What brings a point nearer. What it begins, the caller carries out and ends, whatever came of it.
    ///
    /// Errors: the volume has failed.
    pub fn next_step(&mut self, point: &SyncPoint) -> Result<Step> {
        if let Some(error) = self.failure {
            return Err(error);
        }
        let is_committed = self.committed >= point.transaction;
        let is_flushed = self.flushed >= point.writes
            || planted::is("fsync does not flush what is written in place");
        if is_committed && is_flushed || planted::is("fsync returns at once") {
            return Ok(Step::Reached);
        }
        if self.under_way.is_some() {
            return Ok(Step::Wait);
        }
        match (is_committed, self.log.is_some()) {
            (true, _) => {
                self.under_way = Some(UnderWay::Flush(self.writes));
                Ok(Step::Flush)
            }
            (false, true) => self.begin_commit().map(Step::Commit),
            // Without a log blocks go to their places, which only the volume knows.
            (false, false) => self.commit().map(|()| Step::Reached),
        }
    }

    /// The running transaction becomes one that is under way.
    pub(crate) fn begin_commit(&mut self) -> Result<Commit> {
        let begun = self.lay_out();
        if let Err(error) = &begun {
            // What is half laid out must not be followed by more.
            self.failure.get_or_insert(*error);
        }
        begun
    }

    fn lay_out(&mut self) -> Result<Commit> {
        let (blocks, revoked) = self.seal_running()?;
        let log = self.log.as_mut().ok_or(Error::Invalid)?;
        let laid = log.lay_out(&mut self.store, &blocks, &revoked, self.totals.written)?;
        self.store.close_running();
        if planted::is("freed blocks are used before the commit has ended") {
            self.freed.clear();
        }
        self.under_way = Some(UnderWay::Commit(Committing {
            transaction: self.committed + 1,
            writes: self.writes,
            changed: core::mem::take(&mut self.changed),
            resized: core::mem::take(&mut self.resized),
            freed: self.freed.mark(),
            revoked,
        }));
        Ok(Commit(laid))
    }

    /// The commit under way has ended so. Its failure is the volume's: what is half written must not be followed by more.
    pub fn end_commit(&mut self, written: Result<()>) -> Result<()> {
        let Some(UnderWay::Commit(it)) = self.under_way.take() else {
            return Err(Error::Invalid);
        };
        if let Err(error) = written {
            self.failure.get_or_insert(error);
            return Err(error);
        }
        self.store.forget_revoked(&it.revoked);
        self.freed.forget_first(it.freed);
        self.committed = it.transaction;
        self.flushed = match planted::is("a commit covers what was written after it began") {
            true => self.writes,
            false => self.flushed.max(it.writes),
        };
        Ok(())
    }

    /// The flush under way has ended so.
    pub fn end_flush(&mut self, flushed: Result<()>) -> Result<()> {
        let Some(UnderWay::Flush(writes)) = self.under_way.take() else {
            return Err(Error::Invalid);
        };
        if let Err(error) = flushed {
            return Err(self.lost_writes(error));
        }
        self.flushed = self.flushed.max(writes);
        Ok(())
    }

    /// Waits for a point where nobody else works with the volume.
    fn reach(&mut self, point: &SyncPoint) -> Result<()> {
        loop {
            match self.next_step(point)? {
                Step::Reached => return Ok(()),
                Step::Wait => return Err(Error::Busy),
                Step::Commit(commit) => {
                    let written = commit.write(&mut *self.store.device);
                    self.end_commit(written)?;
                }
                Step::Flush => {
                    let flushed = self.store.device.flush().map_err(Error::from);
                    self.end_flush(flushed)?;
                }
            }
        }
    }

    /// fsync(2) of an inode, or with `Sync::Data` fdatasync(2).
    ///
    /// Errors: `Busy` while something is under way.
    pub fn sync_file(&mut self, number: u32, what: Sync) -> Result<()> {
        let point = self.sync_point(number, what);
        self.reach(&point)
    }
}
