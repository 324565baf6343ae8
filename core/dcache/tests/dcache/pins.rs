//! Mounts on names of a file system that changes by itself.

use std::sync::Arc;

use crate::world::{Dentry, Inode, held, questions};
use dcache::Refusal;
use models::Heap;

/// A tree `/a/b` that is asked for its names each time.
fn tree() -> Arc<Dentry> {
    let (top, a) = (Inode::new(true), Inode::new(true));
    a.insert(b"b", &Inode::new(true));
    top.insert(b"a", &a);
    Dentry::root(top, b"/", false)
}

fn walk(top: &Arc<Dentry>) -> Arc<Dentry> {
    let a = top.child(b"a").unwrap().unwrap();
    a.child(b"b").unwrap().unwrap()
}

#[test]
fn names_are_asked_for_each_time() {
    let top = tree();
    assert!(!Arc::ptr_eq(&walk(&top), &walk(&top)));
    assert_eq!(questions(), 4);
    assert!(top.child(b"x").unwrap().is_none());
    top.inode().insert(b"x", &Inode::new(false));
    assert!(top.child(b"x").unwrap().is_some());
}

#[test]
fn a_mounted_name_is_found_until_it_is_unmounted() {
    let top = tree();
    let at = walk(&top).pinned().unwrap();
    at.mount_on();
    questions();
    assert!(Arc::ptr_eq(&walk(&top), &at) && at.is_mounted_on());
    assert_eq!(questions(), 0);
    at.mount_on();
    at.unmount_from();
    assert!(Arc::ptr_eq(&walk(&top), &at) && at.is_mounted_on());
    at.unmount_from();
    assert!(!at.is_mounted_on());
    assert!(!Arc::ptr_eq(&walk(&top), &at));
    assert_eq!(questions(), 2);
}

#[test]
fn names_above_another_mount_stay() {
    let top = tree();
    let b = walk(&top).pinned().unwrap();
    b.mount_on();
    let a = b.parent().unwrap();
    a.pinned().unwrap().mount_on();
    b.unmount_from();
    assert!(Arc::ptr_eq(&top.child(b"a").unwrap().unwrap(), &a));
    a.unmount_from();
    assert!(!Arc::ptr_eq(&top.child(b"a").unwrap().unwrap(), &a));
}

#[test]
fn a_mount_above_another_may_go_first() {
    let top = tree();
    let b = walk(&top).pinned().unwrap();
    b.mount_on();
    let a = b.parent().unwrap();
    a.mount_on();
    a.unmount_from();
    assert!(Arc::ptr_eq(&walk(&top), &b));
    b.unmount_from();
    assert!(!Arc::ptr_eq(&top.child(b"a").unwrap().unwrap(), &a));
}

#[test]
fn who_pins_late_gets_what_was_pinned_before() {
    let top = tree();
    let (one, two) = (walk(&top), walk(&top));
    let one = one.pinned().unwrap();
    one.mount_on();
    assert!(Arc::ptr_eq(&two.pinned().unwrap(), &one));
}

#[test]
fn a_name_that_another_dentry_stands_for_above_is_asked_for() {
    // `two` hangs below an `a` that is not the pinned one, and `b` is none yet.
    let top = tree();
    let two = walk(&top);
    top.child(b"a")
        .unwrap()
        .unwrap()
        .pinned()
        .unwrap()
        .mount_on();
    let pinned = two.pinned().unwrap();
    assert!(!Arc::ptr_eq(&pinned, &two));
    let a = top.child(b"a").unwrap().unwrap();
    assert!(Arc::ptr_eq(&pinned.parent().unwrap(), &a));
}

#[test]
fn a_name_that_is_gone_meanwhile_cannot_be_pinned() {
    let top = tree();
    let two = walk(&top);
    let a = top.child(b"a").unwrap().unwrap().pinned().unwrap();
    a.mount_on();
    a.inode().remove(b"b");
    assert_eq!(two.pinned().err(), Some(Refusal::NotFound));
    // What is above stays, as it is mounted on.
    assert!(Arc::ptr_eq(&top.child(b"a").unwrap().unwrap(), &a));
}

#[test]
fn without_memory_nothing_stays_pinned() {
    for refused in 1..=2 {
        let top = tree();
        let file = top.inode().get(b"a").unwrap();
        // Nobody has looked for a name in these, so there is no room yet.
        let a = top.detached(b"a", file.clone());
        let b = a.detached(b"b", file.get(b"b").unwrap());
        Heap::refuse_nth(refused);
        assert_eq!(b.pinned().err(), Some(Refusal::NoMemory));
        Heap::refuse_none();
        assert!(!Arc::ptr_eq(&top.child(b"a").unwrap().unwrap(), &a));
        assert!(Arc::ptr_eq(&b.pinned().unwrap(), &b));
    }
}

#[test]
fn where_names_are_kept_nothing_need_be_pinned() {
    let inode = Inode::new(true);
    inode.insert(b"a", &Inode::new(true));
    let top = Dentry::root(inode, b"/", true);
    let a = top.child(b"a").unwrap().unwrap();
    assert!(Arc::ptr_eq(&a.pinned().unwrap(), &a));
    a.mount_on();
    a.unmount_from();
    questions();
    assert!(Arc::ptr_eq(&top.child(b"a").unwrap().unwrap(), &a));
    assert_eq!(questions(), 0);
}

#[test]
fn who_was_unmounted_is_listed_no_more() {
    let top = tree();
    let at = walk(&top).pinned().unwrap();
    let a = at.parent().unwrap();
    at.mount_on();
    at.unmount_from();
    a.remember(b"b", Some(at.clone()));
    assert!(!Arc::ptr_eq(&a.child(b"b").unwrap().unwrap(), &at));
}

#[test]
fn where_names_are_kept_a_file_without_one_is_its_own() {
    let top = Dentry::root(Inode::new(true), b"/", true);
    let nameless = top.detached(b"#1", Inode::new(false));
    assert!(Arc::ptr_eq(&nameless.pinned().unwrap(), &nameless));
    assert!(top.child(b"#1").unwrap().is_none());
}

#[test]
fn pinned_names_leave_nothing() {
    let top = tree();
    let at = walk(&top).pinned().unwrap();
    at.mount_on();
    at.unmount_from();
    drop(at);
    drop(top);
    assert_eq!(held(), 0);
}
