//! All mounts, and which one covers a place.
//!
//! The list keeps each mount behind the one that it covers, so one pass over it finds all that
//! is below a mount. The map answers walks. Mounts without a place are listed too, so that the
//! limit counts them.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use hashbrown::HashMap;
use mach::mem::fallible;
use mach::sync::ReadMostly;
use sync::{Error, Mutex, Result, Wait, WaitQueue};

use super::{Mount, Path, SuperBlock, namespace, propagation};
use crate::FileSystem;

/// As many mounts as there can be.
pub const MOST: usize = 1024;
/// As many as there may be (/proc/sys/fs/mount-max). The administrator's, for all namespaces
/// together.
pub static MOUNTS_MAX: AtomicUsize = AtomicUsize::new(MOST);

/// Held over every change of the tree. Changes spread from namespace to namespace, so one lock is
/// for all.
pub(super) static CHANGING: Mutex<()> = Mutex::new(());

/// A place, by the addresses of its mount and its dentry, which the mount on it keeps.
type Place = (usize, usize);

struct Table {
    mounts: Vec<Arc<Mount>>,
    covering: Option<HashMap<Place, Arc<Mount>>>,
    /// What programs of the first namespace know as `/`.
    root: Option<Path>,
}

/// What is mounted on what, in all namespaces: changes spread from one to another. Each walk looks
/// at it, on its CPU's part of the lock.
static TABLE: ReadMostly<Table> = ReadMostly::new(Table {
    mounts: Vec::new(),
    covering: None,
    root: None,
});

fn key(at: &Path) -> Place {
    let (mount, dentry) = (Arc::as_ptr(&at.mount), Arc::as_ptr(&at.dentry));
    (mount.addr(), dentry.addr())
}

/// The mount on `at`.
pub(super) fn covering(at: &Path) -> Option<Arc<Mount>> {
    TABLE.read().covering.as_ref()?.get(&key(at)).cloned()
}

/// The top of the tree that programs of the first namespace know.
pub fn root() -> Path {
    match TABLE.read().root.clone() {
        Some(root) => root,
        None => unreachable!("boot mounts the root before it starts a program"),
    }
}

/// Another one; gives back the old.
pub(super) fn set_root(root: Path) -> Option<Path> {
    TABLE.write().root.replace(root)
}

/// Makes room for `new` mounts more, and for giving `places` mounts a place. All walks wait
/// meanwhile; [`MOST`] entries are moved in some 15 µs, a few times in the machine's life.
///
/// Errors: `NoSpace` beyond the limit, `OutOfMemory`.
pub(super) fn reserve(new: usize, places: usize) -> Result<()> {
    let table = &mut *TABLE.write();
    let most = MOUNTS_MAX.load(Ordering::Relaxed).min(MOST);
    if new > 0 && table.mounts.len() + new > most {
        return Err(Error::NoSpace);
    }
    let map = table.covering.get_or_insert_default();
    fallible::reserve(|| table.mounts.try_reserve(new))?;
    Ok(fallible::reserve(|| map.try_reserve(places))?)
}

/// Lists a mount for which there is room.
pub(super) fn add(mount: &Arc<Mount>) {
    TABLE.write().mounts.push(mount.clone());
}

/// Whether it is listed: in the tree, or made for it.
pub(super) fn is_listed(mount: &Arc<Mount>) -> bool {
    let table = TABLE.read();
    table.mounts.iter().any(|known| Arc::ptr_eq(known, mount))
}

/// Gives a listed mount its place.
pub(super) fn attach(mount: &Arc<Mount>, at: Path) {
    at.dentry.mount_on();
    let mut table = TABLE.write();
    table
        .covering
        .get_or_insert_default()
        .insert(key(&at), mount.clone());
    *mount.covers.lock() = Some(at);
}

/// Takes its place from a mount.
pub(super) fn detach(mount: &Arc<Mount>) -> Option<Path> {
    let at = mount.covers()?;
    let known = {
        let mut table = TABLE.write();
        *mount.covers.lock() = None;
        table.covering.as_mut()?.remove(&key(&at))
    };
    drop(known);
    at.dentry.unmount_from();
    Some(at)
}

/// Selects `top` and all mounts below it. Like all that speaks of the selected ones, it is for
/// callers that hold [`CHANGING`].
pub(super) fn select(top: &Arc<Mount>) {
    for mount in listed() {
        let parent = mount.covers().map(|covered| covered.mount);
        let is_below = parent.is_some_and(|parent| parent.is_selected());
        mount.set_selected(is_below || Arc::ptr_eq(&mount, top));
    }
}

/// The mounts selected last, each behind the one that it covers.
pub(super) fn selected() -> impl Iterator<Item = Arc<Mount>> {
    listed().filter(|mount| mount.is_selected())
}

/// Puts the selected mounts at the end of the list, by way of a vector with room for them.
pub(super) fn move_selected_to_end(moved: &mut Vec<Arc<Mount>>) {
    let mut table = TABLE.write();
    moved.extend(table.mounts.extract_if(.., |mount| mount.is_selected()));
    table.mounts.append(moved);
}

/// Takes the selected mounts out of the tree and of the list. What covers the top of one of them
/// and is not selected covers then what that has covered.
pub(super) fn remove_selected() {
    for mount in selected() {
        let place = detach(&mount);
        if let Some((above, place)) = covering(&Path::top_of(&mount)).zip(place)
            && !above.is_selected()
        {
            drop(detach(&above));
            attach(&above, place);
        }
    }
    let pop = || {
        let mounts = &mut TABLE.write().mounts;
        let last = mounts.iter().rposition(|mount| mount.is_selected())?;
        Some(mounts.remove(last))
    };
    while let Some(gone) = pop() {
        propagation::leave_group(&gone);
        wait_for_visits(&gone);
    }
}

/// Whether the mount has its place in the tree that the current thread knows.
pub(super) fn is_in_tree(mount: &Arc<Mount>) -> bool {
    let mut at = mount.clone();
    while let Some(covered) = at.covers() {
        at = covered.mount;
    }
    Arc::ptr_eq(&namespace::own_top(), &at)
}

/// All mounts, each behind the one that it covers.
pub(super) fn listed() -> impl Iterator<Item = Arc<Mount>> {
    (0..).map_while(|index| TABLE.read().mounts.get(index).cloned())
}

/// The other way round.
pub(super) fn listed_from_last() -> impl Iterator<Item = Arc<Mount>> {
    let count = TABLE.read().mounts.len();
    (0..count)
        .rev()
        .map_while(|index| TABLE.read().mounts.get(index).cloned())
}

/// Shows all mounts, the tree standing still meanwhile.
pub fn for_each(mut show: impl FnMut(&Arc<Mount>)) {
    let _still = CHANGING.lock();
    listed().for_each(|mount| show(&mount));
}

/// A file system that somebody has found in the list, for a moment. Who takes its last mount away waits for the end of that, and so
/// ends the file system itself: all of it is in its place when umount2(2) returns.
struct Visit {
    block: Arc<SuperBlock>,
    // Dropped after the other.
    _counted: Counted,
}

/// One of a file system's visits.
struct Counted(Arc<AtomicUsize>);

/// Who waits for the end of visits. One for the machine, as unmounting is rare.
static VISITS_ENDED: WaitQueue = WaitQueue::new();

impl Visit {
    /// Of the file system of a mount in the list.
    fn of(index: usize) -> Option<Self> {
        let table = TABLE.read();
        let block = table.mounts.get(index)?.block.clone();
        block.visits.fetch_add(1, Ordering::SeqCst);
        let counted = Counted(block.visits.clone());
        Some(Self {
            block,
            _counted: counted,
        })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if self.0.fetch_sub(1, Ordering::SeqCst) == 1 {
            VISITS_ENDED.wake_all();
        }
    }
}

/// Waits until nobody visits the file system of a mount that was taken away, unless others show it.
fn wait_for_visits(gone: &Mount) {
    let block = &gone.block;
    let is_of = |mount: &Arc<Mount>| Arc::ptr_eq(&mount.block, block);
    if TABLE.read().mounts.iter().any(is_of) {
        return;
    }
    let are_over = || (block.visits.load(Ordering::SeqCst) == 0).then_some(());
    // Without a deadline it ends with what it waits for.
    let _ = VISITS_ENDED.wait(Wait::UNINTERRUPTIBLE, are_over);
}

/// The file systems of all mounts, which are not kept from being unmounted. From the last on, so that none is left out where one
/// of the others is taken away meanwhile.
fn blocks() -> impl Iterator<Item = Visit> {
    let count = TABLE.read().mounts.len();
    (0..count).rev().filter_map(Visit::of)
}

/// The super block of a file system that is mounted somewhere.
pub(super) fn block_of(system: &Arc<dyn FileSystem>) -> Option<Arc<SuperBlock>> {
    let address = |system: &Arc<dyn FileSystem>| Arc::as_ptr(system).addr();
    let found = blocks().find(|visit| address(&visit.block.system) == address(system));
    found.map(|visit| visit.block.clone())
}

/// Pages that go at once when memory is short.
const GIVEN_UP_PAGES: usize = 4096;

/// Memory is short: forgets names that nobody uses, and some pages.
pub fn shrink() {
    forget_unused_names();
    // Pages that were used lately go at the second look.
    if give_up_pages(GIVEN_UP_PAGES) == 0 {
        give_up_pages(GIVEN_UP_PAGES);
    }
}

/// Forgets names that nobody uses.
pub fn forget_unused_names() {
    for visit in blocks() {
        visit.block.root.forget_unused();
    }
}

/// Ends all file systems, because the machine does.
pub fn finish_all() -> Result<()> {
    let results = blocks().map(|visit| visit.block.system.finish());
    // One that fails keeps no other from its end.
    results.fold(Ok(()), Result::and)
}

/// Has file systems give up pages that nobody uses, until `wanted` are gone or there are no
/// more; returns how many. Another file system is the first each time.
pub fn give_up_pages(wanted: usize) -> usize {
    /// Which one begins.
    static FIRST: AtomicUsize = AtomicUsize::new(0);
    let count = TABLE.read().mounts.len();
    let first = FIRST.fetch_add(1, Ordering::Relaxed);
    let mut gone = 0;
    for step in 0..count {
        let index = first.wrapping_add(step) % count;
        if let Some(visit) = Visit::of(index).filter(|_| gone < wanted) {
            gone += visit.block.system.give_up_pages(wanted - gone);
        }
    }
    gone
}

/// Writes back all file systems.
pub fn sync_all() -> Result<()> {
    let results = blocks().map(|visit| visit.block.system.sync());
    // One that fails keeps no other from it.
    results.fold(Ok(()), Result::and)
}
