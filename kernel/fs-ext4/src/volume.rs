//! A mounted image: its lock, its nodes, and its end.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::mem::take;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use base::Instant;
use ext4::{
    Access, Device, MountError, Promises, ROOT_INODE, Step, SyncPoint, Time, Unlinked, Volume,
};
use kernel_block::Store;
use kernel_pagecache::{self as pagecache, Flush};
use mach::klog;
use mach::sync::Spin;
use sync::{Error, Mutex, Result, Wait, WaitQueue};
use vfs::{FileSystem, InodeRef, Timestamp, Usage};

use crate::commits::Commits;
use crate::disk::Disk;
use crate::errors::{error_of, mount_error};
use crate::node::Node;

/// Linux's number of ext4 (statfs(2)).
const MAGIC: u64 = 0xef53;
/// Nodes known at which the forgotten ones are dropped.
const KNOWN_MAX: usize = 1024;

/// What the nodes of one image share.
pub(super) struct Shared {
    /// `None` once it is over.
    volume: Mutex<Option<Volume>>,
    /// Commits and flushes without the volume's lock.
    commits: Commits,
    /// So that an inode that is found twice has one node.
    known: Spin<BTreeMap<u32, Weak<Node>>>,
    /// Inodes without names whose node is gone.
    unused: Spin<Vec<u32>>,
    /// The disk's number.
    pub(super) device: u64,
    /// The disk, for data, which are moved without the volume's lock.
    pub(super) store: Arc<Store>,
    /// Bytes of a block.
    pub(super) block_bytes: u64,
    /// The node at which pages are looked for that are given up.
    hand: AtomicU32,
    /// Bytes that a file can have.
    pub(super) size_max: u64,
    /// It can be changed, or could when last seen.
    pub(super) is_writable: AtomicBool,
    /// Room for pages that have none yet.
    pub(super) promises: Arc<Promises>,
    /// Nodes with something to be brought down, which stay until it is.
    listed: Spin<BTreeMap<u32, Arc<Node>>>,
}

/// An image with its top, as it is mounted.
pub(super) struct Tree {
    shared: Arc<Shared>,
    root: Arc<Node>,
}

/// The images that are mounted or are being brought to their end, of the machine's disks: one for each disk.
static MOUNTED: Mutex<Vec<(u64, Weak<Tree>)>> = Mutex::new(Vec::new());
/// How many have ended, of the machine's disks.
static ENDS: AtomicU32 = AtomicU32::new(0);
/// Who waits for one more of the machine's disks to be free.
static ENDED: WaitQueue = WaitQueue::new();

/// The image on the disk whose node is `source`. One that somebody has let go of is waited for: until all is in its place the
/// disk is no whole.
pub(super) fn mount(source: &[u8]) -> Result<Arc<Tree>> {
    let store = Store::find(source)?;
    let number = store.number();
    loop {
        let ends = ENDS.load(Ordering::SeqCst);
        let mut mounted = MOUNTED.lock();
        match mounted.iter().find(|(same, _)| *same == number) {
            Some((_, tree)) => match tree.upgrade() {
                Some(tree) => return Ok(tree),
                None => {
                    drop(mounted);
                    let is_over = || (ENDS.load(Ordering::SeqCst) != ends).then_some(());
                    // Without a deadline it ends with what it waits for.
                    let _ = ENDED.wait(Wait::UNINTERRUPTIBLE, is_over);
                }
            },
            None => {
                mounted.try_reserve(1).map_err(|_| Error::OutOfMemory)?;
                let tree = open(source, store)?;
                mounted.push((number, Arc::downgrade(&tree)));
                return Ok(tree);
            }
        }
    }
}

fn open(source: &[u8], store: Store) -> Result<Arc<Tree>> {
    let device = store.number();
    let store = Arc::new(store);
    let open = |access| Volume::mount(Box::new(Disk(store.clone())), access);
    let opened = match open(Access::ReadWrite) {
        Err(MountError::ReadOnlyFeature(name)) => {
            klog!("ext4: because of {name} the image is only read");
            open(Access::Read)
        }
        opened => opened,
    };
    let (volume, found) = opened.map_err(|error| mount_error(source, &error))?;
    if found.transactions + found.orphans != 0 {
        let (transactions, orphans) = (found.transactions, found.orphans);
        klog!("ext4: replayed {transactions} transactions, cleaned {orphans} orphans");
    }
    if found.has_errors {
        klog!("ext4: the image has errors; e2fsck should look at it");
    }
    let shared = Arc::new(Shared {
        block_bytes: volume.block_bytes() as u64,
        size_max: volume.size_max(),
        is_writable: AtomicBool::new(volume.is_writable()),
        promises: volume.promises(),
        listed: Spin::new(BTreeMap::new()),
        volume: Mutex::new(Some(volume)),
        commits: Commits::default(),
        known: Spin::new(BTreeMap::new()),
        unused: Spin::new(Vec::new()),
        device,
        store,
        hand: AtomicU32::new(0),
    });
    let flushed: Arc<dyn Flush> = shared.clone();
    pagecache::register(&flushed)?;
    let root = shared.node(ROOT_INODE)?;
    Ok(Arc::new(Tree { shared, root }))
}

/// The time of a change.
pub(super) fn now() -> Time {
    time_of(Timestamp::now())
}

pub(super) fn time_of(time: Timestamp) -> Time {
    Time {
        seconds: time.seconds,
        nanos: time.nanos,
    }
}

impl Shared {
    /// Does something with the volume, which may commit. No spin lock is held, and no program's memory touched.
    pub(super) fn with<T>(&self, act: impl FnOnce(&mut Volume) -> ext4::Result<T>) -> Result<T> {
        let (mut held, _turn) = self.commits.alone(|| self.volume.lock());
        let volume = held.as_mut().ok_or(Error::Io)?;
        self.evict_unused(volume);
        self.act(volume, act).map_err(error_of)
    }

    /// The same beside a commit or a flush: what reads, or is one handle in the running transaction. Tried again alone if it needs
    /// a commit itself.
    pub(super) fn beside<T>(
        &self,
        mut act: impl FnMut(&mut Volume) -> ext4::Result<T>,
    ) -> Result<T> {
        match self.locked(&mut act) {
            Err(ext4::Error::Busy) => self.with(act),
            done => done.map_err(error_of),
        }
    }

    fn locked<T>(&self, act: impl FnOnce(&mut Volume) -> ext4::Result<T>) -> ext4::Result<T> {
        let mut held = self.volume.lock();
        self.act(held.as_mut().ok_or(ext4::Error::Device)?, act)
    }

    fn act<T>(
        &self,
        volume: &mut Volume,
        act: impl FnOnce(&mut Volume) -> ext4::Result<T>,
    ) -> ext4::Result<T> {
        let was_sound = volume.failure().is_none();
        let result = act(volume);
        if let Some(failure) = volume.failure().filter(|_| was_sound) {
            klog!("ext4: {failure:?}: nothing is changed from now on");
            self.is_writable.store(false, Ordering::Release);
        }
        result
    }

    /// Waits until what `point` says is on the medium, or brings it there, for all that wait.
    pub(super) fn sync(
        &self,
        point: impl FnMut(&mut Volume) -> ext4::Result<SyncPoint>,
    ) -> Result<()> {
        let point = self.beside(point)?;
        while !self.go_on(&point).map_err(error_of)? {}
        Ok(())
    }

    /// Whether the point is reached; else something has ended meanwhile.
    fn go_on(&self, point: &SyncPoint) -> ext4::Result<bool> {
        let turn = self.commits.turn();
        let step = self.noted(|volume| volume.next_step(point))?;
        drop(turn);
        let mut disk = Disk(self.store.clone());
        let ended = match step {
            Step::Reached => return Ok(true),
            Step::Wait => {
                self.commits.wait();
                return Ok(false);
            }
            Step::Commit(commit) => {
                let written = commit.write(&mut disk);
                self.noted(|volume| volume.end_commit(written))
            }
            Step::Flush => {
                let flushed = disk.flush().map_err(Into::into);
                self.noted(|volume| volume.end_flush(flushed))
            }
        };
        self.commits.wake();
        ended.map(|()| false)
    }

    /// Does what begins or ends a commit or a flush.
    fn noted<T>(&self, act: impl FnOnce(&mut Volume) -> ext4::Result<T>) -> ext4::Result<T> {
        self.locked(|volume| {
            let result = act(volume);
            self.commits.note(volume.is_under_way());
            result
        })
    }

    /// Waits until all that was done by now is on the medium.
    fn sync_all(&self) -> Result<()> {
        // Inodes that nobody names or uses are freed with it.
        self.with(|_| Ok(()))?;
        self.sync(|volume| Ok(volume.whole_point()))
    }

    /// Frees inodes that nobody names or uses.
    fn evict_unused(&self, volume: &mut Volume) {
        for number in take(&mut *self.unused.lock()) {
            // It stays on the list of orphans, and the next mount tries again.
            let _ = volume.evict(number, now());
        }
    }

    /// The node of an inode that has a name: the known one, if somebody knows it.
    ///
    /// Errors: `NotFound` if it has lost its name meanwhile.
    pub(super) fn node(self: &Arc<Self>, number: u32) -> Result<Arc<Node>> {
        self.node_if(number, |inode| inode.links != 0)
    }

    /// The node of an inode that was made without a name.
    pub(super) fn nameless_node(self: &Arc<Self>, number: u32) -> Result<Arc<Node>> {
        self.node_if(number, |_| true)
    }

    /// A node begins with what the inode says, so nobody changes that before the node is known.
    fn node_if(
        self: &Arc<Self>,
        number: u32,
        is_wanted: impl Fn(&ext4::Inode) -> bool,
    ) -> Result<Arc<Node>> {
        if let Some(node) = self.known(number) {
            return Ok(node);
        }
        self.beside(|volume| {
            let inode = volume.inode(number)?;
            match is_wanted(&inode) {
                true => Ok(self.make_known(&inode)),
                false => Err(ext4::Error::NotFound),
            }
        })?
    }

    fn make_known(self: &Arc<Self>, inode: &ext4::Inode) -> Result<Arc<Node>> {
        // Somebody else was faster.
        if let Some(node) = self.known(inode.number) {
            return Ok(node);
        }
        let node = Node::new(self, inode)?;
        let mut known = self.known.lock();
        if known.len() >= KNOWN_MAX {
            known.retain(|_, node| node.strong_count() != 0);
        }
        known.insert(inode.number, Arc::downgrade(&node));
        Ok(node)
    }

    pub(super) fn known(&self, number: u32) -> Option<Arc<Node>> {
        self.known.lock().get(&number)?.upgrade()
    }

    /// Takes a name away by `act`, which says whose. An inode that has lost its last one goes with its node, or now; nobody
    /// has to bring down what will not survive it.
    pub(super) fn take_name(
        &self,
        act: impl FnOnce(&mut Volume) -> ext4::Result<Option<Unlinked>>,
    ) -> Result<()> {
        let lost = self.with(|volume| {
            let lost = act(volume)?.filter(|lost| lost.links == 0);
            // With the lock held: who gives it a name again comes wholly before or after.
            Ok(lost.map(|lost| {
                let node = self.known(lost.inode);
                if let Some(node) = &node {
                    node.set_unlinked();
                }
                (lost.inode, node)
            }))
        })?;
        match lost {
            Some((_, Some(node))) => self.unlist_if(&node, Node::is_unlinked),
            Some((number, None)) => self.forget(number),
            None => {}
        }
        Ok(())
    }

    /// Nobody uses an inode without names any more.
    pub(super) fn forget(&self, number: u32) {
        self.unused.lock().push(number);
    }

    /// Ends it, whoever uses it still: all is in its place, and from now on nothing is read or written.
    fn finish(&self) -> Result<()> {
        let (mut held, _turn) = self.commits.alone(|| self.volume.lock());
        let Some(mut volume) = held.take() else {
            return Ok(());
        };
        drop(held);
        self.evict_unused(&mut volume);
        let mut next = 0;
        // One by one: a list of all nodes would need memory.
        while let Some((number, node)) = self.node_from(next) {
            if node.is_some_and(|node| node.is_unlinked()) {
                // It stays on the list of orphans, and the next mount tries again.
                let _ = volume.evict(number, now());
            }
            next = number.saturating_add(1);
        }
        volume.unmount().map_err(error_of)
    }

    /// Somebody has to bring a node's pages down: it stays until then.
    pub(super) fn list(&self, node: &Node) {
        // Who gives it a name lists it.
        if node.is_unlinked() {
            return;
        }
        node.is_listed.store(true, Ordering::Release);
        let now = mach::time::now().as_nanos();
        node.listed_ns.store(now, Ordering::Relaxed);
        if let Some(node) = self.known(node.number) {
            self.listed.lock().insert(node.number, node);
        }
    }

    /// Nobody has to any more, if that is so.
    fn unlist_if(&self, node: &Node, is_done: impl Fn(&Node) -> bool) {
        let mut listed = self.listed.lock();
        let gone = is_done(node).then(|| listed.remove(&node.number));
        // The last of a node goes without a lock.
        drop(listed);
        drop(gone);
    }

    /// Brings down what is dirty since before `before`.
    ///
    /// Errors: the first. All are tried.
    pub(super) fn bring_down(&self, before: Instant) -> Result<()> {
        let (mut next, mut failed) = (0, Ok(()));
        loop {
            let found = {
                let listed = self.listed.lock();
                let first = listed.range(next..).next();
                first.map(|(number, node)| (*number, node.clone()))
            };
            let Some((number, node)) = found else {
                return failed;
            };
            if node.listed_ns.load(Ordering::Relaxed) <= before.as_nanos() {
                failed = failed.and(node.bring_down());
                self.unlist_if(&node, |node| !node.is_listed.load(Ordering::Acquire));
            }
            next = number.saturating_add(1);
        }
    }

    /// A file that takes the name of another is brought down first: programs that replace a file so
    /// seldom call fsync(2), and expect the old bytes or the new ones after a crash (as Linux'
    /// `auto_da_alloc`).
    pub(super) fn bring_down_replacing(
        &self,
        (from, name): (u32, &[u8]),
        (to, to_name): (u32, &[u8]),
    ) -> Result<()> {
        if self.listed.lock().is_empty() {
            return Ok(());
        }
        let replacing = self.beside(|volume| match volume.lookup(to, to_name) {
            Ok(_) => volume.lookup(from, name).map(Some),
            Err(_) => Ok(None),
        })?;
        let node = replacing.and_then(|number| self.listed.lock().get(&number).cloned());
        match node {
            Some(node) => node.bring_down(),
            None => Ok(()),
        }
    }

    fn node_from(&self, first: u32) -> Option<(u32, Option<Arc<Node>>)> {
        let known = self.known.lock();
        let (number, node) = known.range(first..).next()?;
        Some((*number, node.upgrade()))
    }
}

impl Drop for Shared {
    /// Nobody uses it any more: all is brought to its place.
    fn drop(&mut self) {
        let Some(mut volume) = self.volume.lock().take() else {
            return;
        };
        self.evict_unused(&mut volume);
        if let Err(error) = volume.unmount() {
            klog!("ext4: not unmounted cleanly: {error:?}");
        }
    }
}

impl Drop for Tree {
    /// Nobody has a file of it open. Who still holds it, as the flusher may, finds it ended: the disk
    /// is whole when umount(2) returns.
    fn drop(&mut self) {
        if let Err(error) = FileSystem::finish(self) {
            klog!("ext4: not unmounted cleanly: {error:?}");
        }
        let number = self.shared.device;
        MOUNTED.lock().retain(|(same, _)| *same != number);
        ENDS.fetch_add(1, Ordering::SeqCst);
        ENDED.wake_all();
    }
}

impl Flush for Shared {
    fn flush(&self, before: Instant) {
        // Who has a file open hears of its failures, and the log of the volume's.
        let _ = self.bring_down(before);
        let _ = self.sync_all();
    }
}

impl FileSystem for Tree {
    fn kind(&self) -> &'static str {
        "ext4"
    }

    fn root(&self) -> InodeRef {
        self.root.clone()
    }

    fn usage(&self) -> Usage {
        let usage = self.shared.with(|volume| Ok(volume.usage()));
        usage.map_or(Usage::default(), |usage| Usage {
            magic: MAGIC,
            block_bytes: u64::from(usage.block_bytes),
            blocks: usage.blocks,
            free_blocks: usage.free_blocks,
            inodes: u64::from(usage.inodes),
            free_inodes: u64::from(usage.free_inodes),
        })
    }

    fn sync(&self) -> Result<()> {
        let brought = self.shared.bring_down(Instant::NEVER);
        brought.and(self.shared.sync_all())
    }

    fn finish(&self) -> Result<()> {
        // Nothing of it is left to another mount, whatever fails.
        let synced = pagecache::insist(|| self.sync());
        synced.and(self.shared.finish())
    }

    fn give_up_pages(&self, wanted: usize) -> usize {
        let start = self.shared.hand.load(Ordering::Relaxed);
        let (mut first, mut has_wrapped, mut gone) = (start, start == 0, 0);
        // One by one: a list of all nodes would need memory.
        while gone < wanted {
            match self.shared.node_from(first) {
                Some((number, node)) if !has_wrapped || number < start || start == 0 => {
                    gone += node.map_or(0, |node| node.cache.give_up(wanted - gone));
                    first = number + 1;
                }
                None if !has_wrapped => (first, has_wrapped) = (0, true),
                _ => break,
            }
        }
        self.shared.hand.store(first, Ordering::Relaxed);
        gone
    }
}
