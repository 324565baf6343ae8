//! inotify(7): programs that watch files and directories.
//!
//! Watches are kept in one table by inode; a counter of all watches makes the common
//! case, in which nobody watches, one load. Events go to the queues of their instances,
//! which are bounded: one overflow event stands for all that did not fit.
//!
//! Lock order: the table, then an instance's queue; both are short spin locks.

mod instance;

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use bitflags::bitflags;
use cred::Charge;
use hashbrown::HashMap;
use mach::mem::fallible::{self, TryGrow};
use mach::sync::Spin;
use sync::{Error, Result};

pub use instance::{INSTANCES_MAX, Instance, QUEUED_MAX, watches_max};

use crate::file::{OpenFile, StatusFlags};
use crate::{Dentry, InodeRef};

bitflags! {
    /// What happened, and options of a watch; the bits are Linux's `IN_*`.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Mask: u32 {
        /// Read.
        const ACCESS = 0x1;
        /// Written or truncated.
        const MODIFY = 0x2;
        /// Mode, owner, times or links changed.
        const ATTRIB = 0x4;
        /// Closed after writing.
        const CLOSE_WRITE = 0x8;
        /// Closed after reading.
        const CLOSE_NOWRITE = 0x10;
        /// Opened.
        const OPEN = 0x20;
        /// A name moved out of the directory.
        const MOVED_FROM = 0x40;
        /// A name moved into it.
        const MOVED_TO = 0x80;
        /// A name was created in it.
        const CREATE = 0x100;
        /// A name was removed from it.
        const DELETE = 0x200;
        /// The watched file itself was removed.
        const DELETE_SELF = 0x400;
        /// The watched file itself was moved.
        const MOVE_SELF = 0x800;
        /// Events were lost.
        const Q_OVERFLOW = 0x4000;
        /// The watch has ended.
        const IGNORED = 0x8000;
        /// Files that have lost their names matter no more to the watch.
        const EXCL_UNLINK = 0x400_0000;
        /// The event concerns a directory.
        const ISDIR = 0x4000_0000;
        /// The watch ends with its first event.
        const ONESHOT = 0x8000_0000;
    }
}

struct Watch {
    instance: Weak<Instance>,
    id: i32,
    mask: Mask,
    _charge: Charge,
}

struct Watched {
    /// Keeps the inode, so that its address is not given to another.
    inode: InodeRef,
    watches: Vec<Watch>,
}

/// How many inodes are watched at all, so that a change of another costs one load.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Watches by inode: inodes, which are many, have no room for what few have.
static TABLE: Spin<Option<HashMap<usize, Watched>>> = Spin::new(None);

fn key(inode: &InodeRef) -> usize {
    Arc::as_ptr(inode).addr()
}

/// What becomes of a watch of the same file that an instance has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Existing {
    /// It looks for what is new instead.
    Replaced,
    /// It looks for that too (IN_MASK_ADD).
    Extended,
    /// There must be none (IN_MASK_CREATE).
    Refused,
}

/// Watches `inode`; a second watch of the same instance changes the first.
///
/// Errors: `OutOfMemory`, `NoSpace` if the user has too many, `Exists`.
pub fn watch(
    instance: &Arc<Instance>,
    inode: &InodeRef,
    mask: Mask,
    existing: Existing,
) -> Result<i32> {
    let mut guard = TABLE.lock();
    let table = guard.get_or_insert_default();
    fallible::reserve(|| table.try_reserve(1))?;
    let entry = table.entry(key(inode)).or_insert_with(|| Watched {
        inode: inode.clone(),
        watches: Vec::new(),
    });
    let mine = |watch: &&mut Watch| watch.instance.as_ptr() == Arc::as_ptr(instance);
    if let Some(watch) = entry.watches.iter_mut().find(mine) {
        watch.mask = match existing {
            Existing::Replaced => mask,
            Existing::Extended => watch.mask | mask,
            Existing::Refused => return Err(Error::Exists),
        };
        return Ok(watch.id);
    }
    let added = entry
        .watches
        .make_room(1)
        .map_err(Error::from)
        .and_then(|()| instance.new_watch().ok_or(Error::NoSpace));
    let (id, charge) = match added {
        Ok(new) => new,
        Err(error) => {
            let unused = entry.watches.is_empty();
            let unused = unused.then(|| table.remove(&key(inode)));
            drop(guard);
            drop(unused);
            return Err(error);
        }
    };
    entry.watches.push(Watch {
        instance: Arc::downgrade(instance),
        id,
        mask,
        _charge: charge,
    });
    COUNT.fetch_add(1, Ordering::Release);
    Ok(id)
}

/// Ends a watch; the instance gets a last event.
pub fn unwatch(instance: &Arc<Instance>, id: i32) -> Result<()> {
    let removed =
        retain(|watch| !(watch.id == id && watch.instance.as_ptr() == Arc::as_ptr(instance)));
    if removed == 0 {
        return Err(Error::Invalid);
    }
    instance.push(id, Mask::IGNORED, 0, &[]);
    Ok(())
}

/// Ends all watches of an instance that is closed.
fn unwatch_all(instance: *const Instance) {
    retain(|watch| watch.instance.as_ptr() != instance);
}

/// Keeps the watches that `keep` names; returns how many went.
fn retain(keep: impl Fn(&Watch) -> bool) -> usize {
    let mut table = TABLE.lock();
    let Some(entries) = table.as_mut() else {
        return 0;
    };
    let mut removed = 0;
    for entry in entries.values_mut() {
        let before = entry.watches.len();
        entry.watches.retain(&keep);
        removed += before - entry.watches.len();
    }
    COUNT.fetch_sub(removed, Ordering::Release);
    drop(table);
    if removed > 0 {
        forget_unwatched(removed);
    }
    removed
}

/// Files without watches that are dropped at a time where there is no memory for more.
const FORGOTTEN_MIN: usize = 16;

/// Forgets the files that nobody watches any more, about `count` of them. Their last owner may
/// be the table, so they are dropped without its lock.
fn forget_unwatched(count: usize) {
    let room = fallible::vec(count);
    let mut gone: Vec<Watched> = room.unwrap_or_else(|_| Vec::with_capacity(FORGOTTEN_MIN));
    loop {
        if let Some(entries) = TABLE.lock().as_mut() {
            let unused = entries.extract_if(|_, entry| entry.watches.is_empty());
            let room = gone.capacity();
            gone.extend(unused.take(room).map(|(_, entry)| entry));
        }
        if gone.is_empty() {
            return;
        }
        gone.clear();
    }
}

/// Tells the watches of `inode` that `what` happened (to `name` in it).
fn tell(inode: &InodeRef, what: Mask, cookie: u32, name: &[u8]) {
    tell_unless(Mask::empty(), inode, what, cookie, name);
}

/// The same, but for watches with an option of `except`.
fn tell_unless(except: Mask, inode: &InodeRef, what: Mask, cookie: u32, name: &[u8]) {
    if COUNT.load(Ordering::Acquire) == 0 {
        return;
    }
    let mut has_spent = false;
    {
        let mut table = TABLE.lock();
        let Some(entry) = table.as_mut().and_then(|table| table.get_mut(&key(inode))) else {
            return;
        };
        let told =
            |watch: &&mut Watch| watch.mask.intersects(what) && !watch.mask.intersects(except);
        for watch in entry.watches.iter_mut().filter(told) {
            let Some(instance) = watch.instance.upgrade() else {
                continue;
            };
            instance.push(watch.id, what, cookie, name);
            if watch.mask.contains(Mask::ONESHOT) {
                instance.push(watch.id, Mask::IGNORED, 0, &[]);
                // It sees nothing any more, and goes below.
                watch.mask = Mask::empty();
                has_spent = true;
            }
        }
    }
    if has_spent {
        retain(|watch| !watch.mask.is_empty());
    }
}

fn directory_bit(dentry: &Dentry) -> Mask {
    if dentry.is_directory() {
        Mask::ISDIR
    } else {
        Mask::empty()
    }
}

/// Tells the watches of a directory with the name, and those of the file itself.
fn tell_both(dentry: &Dentry, what: Mask) {
    if COUNT.load(Ordering::Acquire) == 0 {
        return;
    }
    let what = what | directory_bit(dentry);
    let except = match dentry.is_gone() {
        true => Mask::EXCL_UNLINK,
        false => Mask::empty(),
    };
    if let Some(parent) = dentry.parent() {
        tell_unless(except, parent.inode(), what, 0, &dentry.name());
    }
    tell_unless(except, dentry.inode(), what, 0, &[]);
}

/// A name was created.
pub fn created(directory: &Dentry, dentry: &Dentry, name: &[u8]) {
    tell(
        directory.inode(),
        Mask::CREATE | directory_bit(dentry),
        0,
        name,
    );
}

/// A name was removed.
pub fn removed(directory: &Dentry, dentry: &Dentry, name: &[u8]) {
    replaced(dentry);
    tell(
        directory.inode(),
        Mask::DELETE | directory_bit(dentry),
        0,
        name,
    );
}

/// A file lost a name. With the last one it is gone once nobody has it open any more.
pub fn replaced(dentry: &Dentry) {
    if COUNT.load(Ordering::Acquire) == 0 {
        return;
    }
    let links = dentry
        .inode()
        .metadata()
        .map_or(0, |metadata| metadata.links);
    if links == 0 {
        dentry.set_last();
    }
    if !dentry.is_directory() {
        links_changed(dentry.inode());
    }
}

/// A file has got a name, or lost one.
pub fn links_changed(inode: &InodeRef) {
    tell(inode, Mask::ATTRIB, 0, &[]);
}

/// A file without names was let go of by the last who used it: its watches end.
pub(crate) fn ended(inode: &InodeRef) {
    tell(inode, Mask::DELETE_SELF, 0, &[]);
    let gone = TABLE
        .lock()
        .as_mut()
        .and_then(|table| table.remove(&key(inode)));
    let Some(gone) = gone else { return };
    COUNT.fetch_sub(gone.watches.len(), Ordering::Release);
    for watch in &gone.watches {
        if let Some(instance) = watch.instance.upgrade() {
            instance.push(watch.id, Mask::IGNORED, 0, &[]);
        }
    }
    drop(gone.inode);
}

/// A name moved; both events carry the same cookie.
pub fn moved(old: &Dentry, old_name: &[u8], new: &Dentry, new_name: &[u8], dentry: &Dentry) {
    if COUNT.load(Ordering::Acquire) == 0 {
        return;
    }
    /// The last number given: it joins the two halves of a rename for every watcher.
    static COOKIE: AtomicU32 = AtomicU32::new(1);
    let cookie = COOKIE.fetch_add(1, Ordering::Relaxed);
    let bit = directory_bit(dentry);
    tell(old.inode(), Mask::MOVED_FROM | bit, cookie, old_name);
    tell(new.inode(), Mask::MOVED_TO | bit, cookie, new_name);
    tell(dentry.inode(), Mask::MOVE_SELF, 0, &[]);
}

/// A file was opened.
pub fn opened(open: &OpenFile) {
    tell_opening(open, Mask::OPEN);
}

/// It was read.
pub fn read(open: &OpenFile) {
    tell_opening(open, Mask::ACCESS);
}

/// It was written.
pub fn written(open: &OpenFile) {
    tell_opening(open, Mask::MODIFY);
}

/// Its mode, owner or times changed, or its size.
pub fn changed(dentry: &Dentry, what: Mask) {
    tell_both(dentry, what);
}

/// An open file ended.
pub fn closed(open: &OpenFile) {
    let writes = open.is_writable();
    tell_opening(
        open,
        if writes {
            Mask::CLOSE_WRITE
        } else {
            Mask::CLOSE_NOWRITE
        },
    );
}

fn tell_opening(open: &OpenFile, what: Mask) {
    if COUNT.load(Ordering::Acquire) == 0 || open.flags().contains(StatusFlags::PATH) {
        return;
    }
    if let Some(path) = &open.path {
        tell_both(&path.dentry, what);
    }
}
