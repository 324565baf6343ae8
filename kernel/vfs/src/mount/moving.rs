//! Mounts that change their place: MS_MOVE, pivot_root(2).

use alloc::sync::Arc;

use mach::mem::fallible;
use sync::{Error, Result};

use super::change::mount_point;
use super::context::{context, for_each_context};
use super::spread::Echoes;
use super::table::{self, CHANGING};
use super::tree::Tree;
use super::{MOST, Mount, MountFlags, Path};

/// Moves the mount whose top `from` is, with all that is mounted below, to `to`.
///
/// Errors: `Invalid` for what is no mount or where only one of both is a directory,
/// `TooManySymlinks` if it would be below itself, `NotFound`, `OutOfMemory`.
pub fn relocate(from: &Path, to: Path) -> Result<()> {
    let _still = CHANGING.lock();
    let mount = &from.mount;
    let has_place = mount.covers().is_some();
    if !from.is_mount_top() || !table::is_listed(mount) || has_place != table::is_in_tree(mount) {
        return Err(Error::Invalid);
    }
    let to = mount_point(to, mount).map_err(|error| match error {
        Error::NotDirectory => Error::Invalid,
        error => error,
    })?;
    let tree = Tree::below(mount)?;
    if to.mount.is_selected() {
        return Err(Error::TooManySymlinks);
    }
    check_propagation(&tree, &to)?;
    let echoes = Echoes::plan(&tree, &to)?;
    table::reserve(echoes.len(), echoes.len() + 1)?;
    let mut moved = fallible::vec(MOST)?;
    let to = to.pinned()?;
    table::move_selected_to_end(&mut moved);
    drop(table::detach(mount));
    table::attach(mount, to.clone());
    echoes.mount(&tree, &to.dentry);
    Ok(())
}

/// What is below a shared mount stays where its peers have it too, and who is told of a mount
/// has to be able to copy it.
fn check_propagation(tree: &Tree, to: &Path) -> Result<()> {
    let is_told = |mount: &Mount| mount.propagation().group.is_some();
    let parent = tree.top().covers();
    let is_tied = parent.is_some_and(|covered| is_told(&covered.mount));
    let is_unbindable = tree.mounts().any(|mount| mount.has(MountFlags::UNBINDABLE));
    match is_tied || is_unbindable && is_told(&to.mount) {
        true => Err(Error::Invalid),
        false => Ok(()),
    }
}

/// Makes the mount at `new` the root of all programs that have the caller's root, and moves
/// that to `put_old`.
///
/// Errors: `Busy` if one of both is on the root's mount, `Invalid` where something is no mount,
/// cannot be reached, or others would be told; `NotFound`, `OutOfMemory`.
pub fn pivot_root(new: &Path, put_old: Path) -> Result<()> {
    let root = context().root();
    exchange(&root, new, put_old)?;
    // Without the lock: who is the last to hold a namespace takes it.
    change_roots(&root, new);
    Ok(())
}

fn exchange(root: &Path, new: &Path, put_old: Path) -> Result<()> {
    let _still = CHANGING.lock();
    let old = mount_point(put_old, &root.mount)?;
    check_pivot(root, new, &old)?;
    table::reserve(0, 2)?;
    let mut moved = fallible::vec(MOST)?;
    let old = old.pinned()?;
    let place = table::detach(&root.mount).ok_or(Error::Invalid)?;
    drop(table::detach(&new.mount));
    for mount in [&new.mount, &root.mount] {
        table::select(mount);
        table::move_selected_to_end(&mut moved);
    }
    table::attach(&new.mount, place);
    table::attach(&root.mount, old);
    Ok(())
}

fn check_pivot(root: &Path, new: &Path, old: &Path) -> Result<()> {
    if new.dentry.is_gone() {
        return Err(Error::NotFound);
    }
    if [new, old]
        .iter()
        .any(|path| Arc::ptr_eq(&path.mount, &root.mount))
    {
        return Err(Error::Busy);
    }
    let are_movable =
        [root, new].iter().all(|path| is_movable(path)) && old.mount.propagation().group.is_none();
    match are_movable && new.is_above(old) && root.is_above(new) {
        true => Ok(()),
        false => Err(Error::Invalid),
    }
}

/// Whether nobody else is told of the mounts there.
fn is_movable(path: &Path) -> bool {
    let covered = path.mount.covers();
    let is_private = covered.is_some_and(|at| at.mount.propagation().group.is_none());
    path.is_mount_top() && is_private && table::is_in_tree(&path.mount)
}

/// Programs that stand at the old root stand at the new one from now on.
fn change_roots(old: &Path, new: &Path) {
    if table::root().is(old) {
        drop(table::set_root(new.clone()));
    }
    for_each_context(&mut |context| context.change_root(old, new));
}
