//! `loom` runs the cache's own code with two threads in all orders that matter.
//!
//! The last test takes a step away and expects loom to notice.

use std::sync::Arc;

use base::lock::{Family, Lock};
use dcache::{Host, Refusal};
use loom::thread;
use models::{Heap, Watched, explore};

type Dentry = dcache::Dentry<Kernel>;

struct Kernel;

/// A directory with at most one name in it, or a file.
struct File {
    is_directory: bool,
    has_name: <Watched as Family>::Lock<bool>,
}

type Inode = Arc<File>;

fn inode(is_directory: bool, has_name: bool) -> Inode {
    Arc::new(File {
        is_directory,
        has_name: <Watched as Family>::Lock::new(has_name),
    })
}

impl Host for Kernel {
    type Family = Watched;
    type Sleeping = Watched;
    type Memory = Heap;
    type Inode = Inode;
    type Kind = bool;
    type Error = Refusal;

    fn kind(inode: &Inode) -> bool {
        inode.is_directory
    }

    fn is_directory(kind: bool) -> bool {
        kind
    }

    fn look_up(directory: &Inode, _name: &[u8]) -> Result<Option<Inode>, Refusal> {
        Ok(directory.has_name.lock().then(|| inode(false, false)))
    }

    fn ended(_inode: &Inode) {}

    fn is_memory_short() -> bool {
        false
    }

    fn refuse(why: Refusal) -> Refusal {
        why
    }
}

const NAME: &[u8] = b"n";

fn look(top: &Arc<Dentry>) -> Option<Arc<Dentry>> {
    top.child(NAME).unwrap()
}

fn unlink(top: &Arc<Dentry>) {
    let _still = top.lock_names().unwrap();
    let Some(child) = top.child_while_locked(NAME).unwrap() else {
        return;
    };
    *top.inode().has_name.lock() = false;
    top.remember(NAME, None);
    child.set_gone();
}

fn create(top: &Arc<Dentry>) {
    let _still = top.lock_names().unwrap();
    if top.child_while_locked(NAME).unwrap().is_none() {
        *top.inode().has_name.lock() = true;
        let new = top.detached(NAME, inode(false, false));
        top.remember(NAME, Some(new));
    }
}

/// Runs `one` on another thread and `two` on this one, on a directory that has the name or not.
fn race<A: 'static>(
    has_name: bool,
    one: fn(&Arc<Dentry>) -> A,
    two: fn(&Arc<Dentry>),
    check: fn(Arc<Dentry>, A),
) {
    explore(move || {
        let top = Dentry::root(inode(true, has_name), b"/", true);
        let here = top.clone();
        let other = thread::spawn(move || one(&here));
        two(&top);
        let answer = other.join().expect("it ends");
        check(top.clone(), answer);
        top.forget_all();
    });
}

#[test]
fn a_removed_name_does_not_come_back() {
    race(true, look, unlink, |top, found| {
        assert!(look(&top).is_none());
        assert!(found.is_none_or(|found| found.is_gone()));
    });
}

#[test]
fn a_created_name_is_not_missed() {
    race(false, look, create, |top, found| {
        let there = look(&top).expect("it was created");
        assert!(found.is_none_or(|found| Arc::ptr_eq(&found, &there)));
    });
}

#[test]
fn who_looks_at_once_finds_one_dentry() {
    explore(|| {
        let top = Dentry::root(inode(true, true), b"/", true);
        let here = top.clone();
        let other = thread::spawn(move || look(&here));
        let (one, two) = (look(&top), other.join().expect("it ends"));
        let same = one
            .zip(two)
            .is_some_and(|(one, two)| Arc::ptr_eq(&one, &two));
        assert!(same);
        top.forget_all();
    });
}

#[test]
fn what_somebody_found_is_not_forgotten() {
    race(
        true,
        |top| {
            look(top);
            look(top)
        },
        Dentry::forget_unused,
        |top, found| {
            let found = found.expect("it is there");
            assert!(Arc::ptr_eq(&found, &look(&top).expect("it is there still")));
        },
    );
}

#[test]
fn a_known_name_waits_for_nobody_who_changes_the_directory() {
    explore(|| {
        let top = Dentry::root(inode(true, true), b"/", true);
        look(&top).expect("it is there");
        let still = top.lock_names().unwrap();
        look(&top).expect("it is known");
        drop(still);
        top.forget_all();
    });
}

#[test]
fn a_look_beside_does_not_take_a_pinned_name_away() {
    explore(|| {
        let top = Dentry::root(inode(true, true), b"/", false);
        let at = look(&top).expect("it is there");
        let here = top.clone();
        let other = thread::spawn(move || look(&here).map(drop));
        let pinned = at.pinned().unwrap();
        pinned.mount_on();
        other.join().expect("it ends");
        let found = look(&top).expect("it is mounted on");
        assert!(Arc::ptr_eq(&found, &pinned));
        drop(found);
        pinned.unmount_from();
    });
}

#[test]
#[should_panic(expected = "look(&top).is_none()")]
fn an_answer_that_is_noted_later_brings_a_removed_name_back() {
    fn look_without_lock(top: &Arc<Dentry>) {
        if let Ok(Some(inode)) = Kernel::look_up(top.inode(), NAME) {
            top.remember(NAME, Some(top.detached(NAME, inode)));
        }
    }
    race(true, look_without_lock, unlink, |top, ()| {
        assert!(look(&top).is_none());
    });
}
