//! A mounted image, and the transactions that change it.
//!
//! All operations take `&mut`: who binds the file system holds one lock around it, and may read
//! and write file data outside of it by [`Volume::map`].
//!
//! # Transactions
//! Each operation is a handle in the running transaction ([`Volume::transact`]); it reserves how
//! many blocks it may change, so that the transaction fits into the log. An operation that fails
//! is undone. A commit ([`Volume::commit`]) takes all operations so far together; `commit` is about those that run without
//! the lock.
//!
//! # Errors
//! Damage that is found turns the volume read-only at once ([`Volume::failure`]), and the image is
//! marked so that e2fsck looks at all of it. So does a disk that failed to write the log or to flush.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::commit::UnderWay;
use crate::error::{Corrupt, Error, Result};
use crate::freed::Freed;
use crate::journal::Log;
use crate::layout::superblock::{Geometry, Totals};
use crate::promise::Promises;
use crate::recent::Recent;
use crate::seal::{Context, Seal};
use crate::store::{Sealed, Store};

/// The number of the directory at the top.
pub const ROOT_INODE: u32 = 2;
/// Blocks that wait for a checkpoint at most: they are memory.
const AWAITING_MAX: usize = 8192;
/// Blocks that a commit itself adds to a transaction.
const COMMIT_CREDITS: usize = 64;

/// How much room an operation needs in a transaction, in blocks.
pub(crate) type Credits = usize;

/// What a commit writes, and the blocks that were freed.
type Transaction = (Vec<Sealed>, Vec<u64>);

/// How full a volume is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Usage {
    /// Bytes of a block.
    pub block_bytes: u32,
    /// All blocks, without the volume's own.
    pub blocks: u64,
    /// Free ones.
    pub free_blocks: u64,
    /// All inodes.
    pub inodes: u32,
    /// Free ones.
    pub free_inodes: u32,
}

/// A mounted image.
pub struct Volume {
    pub(crate) geometry: Geometry,
    pub(crate) totals: Totals,
    pub(crate) store: Store,
    pub(crate) log: Option<Log>,
    pub(crate) is_writable: bool,
    pub(crate) failure: Option<Error>,
    pub(crate) freed: Freed,
    pub(crate) recent: Recent,
    /// Inodes that the running transaction changes, and those whose data needs that change.
    pub(crate) changed: BTreeSet<u32>,
    pub(crate) resized: BTreeSet<u32>,
    /// Writes past the log, and how many of them a flush has covered.
    pub(crate) writes: u64,
    pub(crate) flushed: u64,
    /// The number of the last transaction that is committed.
    pub(crate) committed: u64,
    pub(crate) under_way: Option<UnderWay>,
    pub(crate) promises: Arc<Promises>,
    /// Blocks are for data that room was promised to.
    pub(crate) spends_promises: bool,
    pub(crate) overhead: u64,
}

impl Volume {
    /// What made it read-only, if anything was found wrong.
    pub fn failure(&self) -> Option<Error> {
        self.failure
    }

    /// Whether anything can be changed.
    pub fn is_writable(&self) -> bool {
        self.is_writable && self.failure.is_none()
    }

    /// How full it is.
    pub fn usage(&self) -> Usage {
        Usage {
            block_bytes: self.geometry.block_bytes as u32,
            blocks: self.geometry.blocks - self.overhead,
            free_blocks: (self.totals.free_blocks).saturating_sub(self.promises.promised()),
            inodes: self.geometry.inodes,
            free_inodes: self.totals.free_inodes,
        }
    }

    /// Room for data that a cache of pages will bring.
    pub fn promises(&self) -> Arc<Promises> {
        self.promises.clone()
    }

    /// Bytes of a block.
    pub fn block_bytes(&self) -> usize {
        self.geometry.block_bytes
    }

    /// Sectors of a block.
    pub(crate) fn block_sectors(&self) -> u64 {
        self.geometry.block_bytes as u64 / 512
    }

    /// Runs `operation` as one handle: all its changes, or none.
    ///
    /// A full disk may be full of what this transaction freed: then that is committed first.
    pub(crate) fn transact<T>(
        &mut self,
        credits: Credits,
        mut operation: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<T> {
        match self.attempt(credits, &mut operation) {
            Err(Error::NoSpace) if !self.freed.is_empty() => {
                self.commit()?;
                self.attempt(credits, &mut operation)
            }
            result => result,
        }
    }

    fn attempt<T>(
        &mut self,
        credits: Credits,
        operation: &mut impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.reserve(credits)?;
        let (totals, mark) = (self.totals, self.freed.mark());
        self.store.begin();
        let result = operation(self);
        match result {
            Ok(_) => self.store.finish(),
            Err(error) => {
                self.store.undo();
                self.totals = totals;
                self.freed.rewind(mark);
                self.recent.clear();
                self.note(error);
            }
        }
        self.promises.set_free(self.totals.free_blocks);
        result
    }

    /// Makes room for a handle in the running transaction.
    fn reserve(&mut self, credits: Credits) -> Result<()> {
        if !self.is_writable() {
            return Err(Error::ReadOnly);
        }
        let max = self.log.as_ref().map_or(1024, Log::transaction_max);
        if credits > max {
            return Err(Error::TooLarge);
        }
        self.store.running_max = max + COMMIT_CREDITS;
        if self.store.running_len() + credits > max {
            self.commit()?;
        }
        let is_short = self.log.as_ref().is_some_and(Log::is_short);
        if self.store.running_len() == 0 && (is_short || self.store.awaiting_len() > AWAITING_MAX) {
            self.checkpoint()?;
        }
        match is_short {
            true if self.store.running_len() != 0 => {
                self.commit()?;
                self.checkpoint()
            }
            _ => Ok(()),
        }
    }

    /// Notes damage: nothing is changed from now on.
    pub(crate) fn note(&mut self, error: Error) {
        if matches!(error, Error::Corrupt(_)) && self.failure.is_none() {
            self.failure = Some(error);
            self.mark_errors();
        }
    }

    /// Tells the next mount, and e2fsck, that something is wrong.
    fn mark_errors(&mut self) {
        self.totals.has_errors = true;
        if !self.is_writable {
            return;
        }
        let (block, _) = self.geometry.superblock_place();
        let Some(bytes) = self.store.cached(block, Seal::Superblock) else {
            return;
        };
        let mut copy = bytes.as_ref().clone();
        let context = Context {
            geometry: &self.geometry,
            totals: &self.totals,
        };
        Seal::Superblock.apply(block, &mut copy, 0, &context);
        // Whatever the disk says, there is nothing more that could be done.
        let _ = self
            .store
            .write_data(block, &copy, crate::device::Durability::Forced);
    }

    /// Makes everything so far survive a loss of power.
    ///
    /// Errors: `Busy` while another commit or a flush is under way.
    pub fn commit(&mut self) -> Result<()> {
        if self.under_way.is_some() {
            return Err(Error::Busy);
        }
        if self.store.running_len() == 0 {
            return self.flush_data();
        }
        if self.log.is_some() {
            let commit = self.begin_commit()?;
            let written = commit.write(&mut *self.store.device);
            return self.end_commit(written);
        }
        let result = self.write_without_log();
        if let Err(error) = result {
            // What is half written must not be followed by more.
            self.failure.get_or_insert(error);
        }
        result
    }

    fn flush_data(&mut self) -> Result<()> {
        let is_left_out = planted::is("fsync does not flush what is written in place");
        if self.flushed != self.writes && !is_left_out {
            if let Err(error) = self.store.device.flush() {
                return Err(self.lost_writes(error.into()));
            }
            self.flushed = self.writes;
        }
        Ok(())
    }

    /// A flush has failed: whatever was written since the last one may be gone, whosever it was, and the next flush
    /// would not say so. Nobody is promised anything any more.
    pub(crate) fn lost_writes(&mut self, error: Error) -> Error {
        if !planted::is("a flush that failed is forgotten") {
            self.failure.get_or_insert(error);
        }
        error
    }

    /// The blocks of the running transaction with their sums, and those that the log must not bring back.
    pub(crate) fn seal_running(&mut self) -> Result<Transaction> {
        self.store.begin_final();
        let sealed = self.seal_bitmaps().and_then(|()| {
            if planted::is("a transaction lacks the superblock") {
                return Ok(());
            }
            self.change_superblock()
        });
        self.store.finish();
        sealed?;
        let context = Context {
            geometry: &self.geometry,
            totals: &self.totals,
        };
        let (blocks, revoked) = self.store.sealed(&context);
        if planted::is("blocks are in their places before they are in the log") {
            self.store.close_running();
            self.store.write_home()?;
        }
        Ok((blocks, revoked))
    }

    /// The superblock is part of the running transaction: [`Seal::apply`] stores the totals in it.
    fn change_superblock(&mut self) -> Result<()> {
        let (block, at) = self.geometry.superblock_place();
        for part in Totals::CHANGES {
            let range = at + part.start..at + part.end;
            (self.store).modify_part(block, Seal::Superblock, &self.geometry, range)?;
        }
        Ok(())
    }

    fn write_without_log(&mut self) -> Result<()> {
        let (_, revoked) = self.seal_running()?;
        self.store.device.flush()?;
        self.store.close_running();
        self.store.forget_revoked(&revoked);
        self.freed.clear();
        self.changed.clear();
        self.resized.clear();
        (self.committed, self.flushed) = (self.committed + 1, self.writes);
        self.store.write_home()
    }

    /// Commits, and brings everything committed to its place.
    pub fn checkpoint(&mut self) -> Result<()> {
        self.commit()?;
        let result = self.store.write_home().and_then(|()| match &mut self.log {
            Some(log) => log.move_tail(&mut self.store),
            None => Ok(()),
        });
        if let Err(error) = result {
            self.failure.get_or_insert(error);
        }
        result
    }

    /// Ends: everything is in its place and the journal is empty.
    pub fn unmount(mut self) -> Result<()> {
        if !self.is_writable() {
            return Ok(());
        }
        self.checkpoint()?;
        self.totals.is_clean = true;
        self.transact(1, |volume| volume.change_superblock())?;
        // By the log, as everything: a superblock of which a half is written is repaired.
        self.checkpoint()?;
        match &mut self.log {
            Some(log) => log.close(&mut self.store),
            None => Ok(()),
        }
    }

    /// An inode number that names something that a program may use.
    pub(crate) fn check_number(&self, number: u32) -> Result<(), Corrupt> {
        let is_usable = number == ROOT_INODE
            || (self.geometry.first_inode..=self.geometry.inodes).contains(&number);
        if is_usable {
            Ok(())
        } else {
            Err(Corrupt::Inode(number))
        }
    }
}

/// What has to survive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sync {
    /// Everything of the inode.
    All,
    /// Its data, and what is needed to find them.
    Data,
}
