//! What is asked of the file system, and what a name means after changes.

use std::sync::Arc;

use crate::world::{Dentry, Inode, directory, ended, held, questions, set_short};
use dcache::{KEPT_MAX, NAME_BYTES_MAX, Refusal};
use models::Heap;

fn names(count: usize) -> Vec<Vec<u8>> {
    (0..count)
        .map(|number| format!("{number}").into_bytes())
        .collect()
}

#[test]
fn a_name_is_asked_for_once_whether_it_is_there_or_not() {
    let top = directory(&[b"here"], true);
    for _ in 0..3 {
        assert!(top.child(b"here").unwrap().is_some());
        assert!(top.child(b"nowhere").unwrap().is_none());
    }
    assert_eq!(questions(), 2);
}

#[test]
fn a_name_leads_to_one_dentry() {
    let top = directory(&[b"a"], true);
    let one = top.child(b"a").unwrap().unwrap();
    let two = top.child(b"a").unwrap().unwrap();
    assert!(Arc::ptr_eq(&one, &two));
    assert_eq!(&*one.name(), b"a");
    assert!(Arc::ptr_eq(&one.parent().unwrap(), &top));
}

#[test]
fn that_a_name_is_missing_is_not_noted_while_memory_is_short() {
    let top = directory(&[b"here"], true);
    set_short(true);
    for _ in 0..3 {
        assert!(top.child(b"here").unwrap().is_some());
        assert!(top.child(b"nowhere").unwrap().is_none());
    }
    assert_eq!(questions(), 1 + 3);
}

#[test]
fn a_file_has_no_names() {
    let top = directory(&[b"file"], true);
    let file = top.child(b"file").unwrap().unwrap();
    assert!(!file.is_directory() && top.is_directory());
    assert_eq!(file.child(b"x").err(), Some(Refusal::NotDirectory));
    assert_eq!(file.lock_names().err(), Some(Refusal::NotDirectory));
    file.remember(b"x", None);
}

#[test]
fn a_name_that_is_too_long_is_not_asked_for() {
    let top = directory(&[], true);
    let longest = [b'n'; NAME_BYTES_MAX];
    assert!(top.child(&longest).unwrap().is_none());
    let longer = [b'n'; NAME_BYTES_MAX + 1];
    assert_eq!(top.child(&longer).err(), Some(Refusal::NameTooLong));
    assert_eq!(questions(), 1);
}

#[test]
fn without_memory_nothing_is_asked_and_nothing_noted() {
    let top = directory(&[b"a"], true);
    Heap::refuse_nth(1);
    assert_eq!(top.child(b"a").err(), Some(Refusal::NoMemory));
    assert_eq!(questions(), 0);
    Heap::refuse_nth(2);
    assert_eq!(top.child(b"a").err(), Some(Refusal::NoMemory));
    assert_eq!(questions(), 1);
    Heap::refuse_none();
    assert!(top.child(b"a").unwrap().is_some());
    assert_eq!(questions(), 1);
}

#[test]
fn a_look_makes_room_for_the_two_names_that_a_rename_adds() {
    let top = directory(&[], true);
    // The table holds three at first: with two in it there is room for one more only.
    top.child(b"one").unwrap();
    top.child(b"two").unwrap();
    Heap::refuse_nth(1);
    assert_eq!(top.child(b"three").err(), Some(Refusal::NoMemory));
    Heap::refuse_none();
    assert!(top.child(b"three").unwrap().is_none());
}

#[test]
fn a_directory_keeps_no_more_unused_names_than_it_may() {
    let all = names(10 * KEPT_MAX);
    let top = directory(&[], true);
    for name in &all {
        top.inode().insert(name, &Inode::new(false));
    }
    let before = held();
    for name in &all {
        top.child(name).unwrap();
        assert!(held() - before <= KEPT_MAX + 1, "{}", held() - before);
    }
    // The latest ones are there still.
    questions();
    top.child(&all[all.len() - 1]).unwrap();
    assert_eq!(questions(), 0);
}

#[test]
fn names_that_are_missing_are_dropped_likewise() {
    let all = names(4 * KEPT_MAX);
    let top = directory(&[], true);
    for name in &all {
        top.child(name).unwrap();
    }
    questions();
    for name in &all[..KEPT_MAX] {
        top.child(name).unwrap();
    }
    assert_eq!(questions(), KEPT_MAX);
}

#[test]
fn names_in_use_stay_however_many_there_are() {
    let all = names(4 * KEPT_MAX);
    let top = directory(&[], true);
    for name in &all {
        top.inode().insert(name, &Inode::new(false));
    }
    let look = |name: &Vec<u8>| top.child(name).unwrap().unwrap();
    let used: Vec<_> = all.iter().map(look).collect();
    questions();
    let again = all.iter().map(look);
    assert!(again.zip(&used).all(|(one, two)| Arc::ptr_eq(&one, two)));
    assert_eq!(questions(), 0);
}

#[test]
fn a_directory_in_use_looks_for_unused_names_seldom() {
    // Each look for unused names passes over all that are in use.
    let all = names(2 * KEPT_MAX);
    let top = directory(&[], true);
    let used: Vec<_> = all
        .iter()
        .map(|name| {
            top.inode().insert(name, &Inode::new(false));
            top.child(name).unwrap().unwrap()
        })
        .collect();
    // There is comfort for as many again before the next look.
    for name in names(4 * KEPT_MAX)
        .iter()
        .skip(2 * KEPT_MAX)
        .take(KEPT_MAX - 1)
    {
        top.child(name).unwrap();
    }
    questions();
    for name in names(4 * KEPT_MAX)
        .iter()
        .skip(2 * KEPT_MAX)
        .take(KEPT_MAX - 1)
    {
        top.child(name).unwrap();
    }
    assert_eq!(questions(), 0);
    drop(used);
}

#[test]
fn all_that_nobody_uses_any_more_is_forgotten_at_once() {
    let top = directory(&[], true);
    let look = |name: &Vec<u8>| {
        top.inode().insert(name, &Inode::new(false));
        top.child(name).unwrap().unwrap()
    };
    let used: Vec<_> = names(3 * KEPT_MAX).iter().map(look).collect();
    drop(used);
    let before = held();
    top.forget_unused();
    assert_eq!(before - held(), 3 * KEPT_MAX);
}

#[test]
fn what_was_removed_is_missing_and_lives_on_with_who_has_it() {
    let top = directory(&[b"a"], true);
    let a = top.child(b"a").unwrap().unwrap();
    let still = top.lock_names().unwrap();
    top.inode().remove(b"a");
    top.remember(b"a", None);
    a.set_gone();
    drop(still);
    assert!(top.child(b"a").unwrap().is_none());
    assert_eq!(questions(), 1);
    assert!(a.is_gone());
    assert_eq!(&*a.name(), b"a");
}

#[test]
fn a_file_without_a_name_is_gone_from_the_start() {
    let nameless = Dentry::nameless(Inode::new(false), b"memfd:x");
    assert!(nameless.is_gone());
    assert!(!directory(&[], true).is_gone());
}

#[test]
fn a_directory_without_a_name_keeps_the_names_in_it() {
    let nameless = Dentry::nameless(Inode::new(true), b"#1");
    nameless.inode().insert(b"a", &Inode::new(false));
    for _ in 0..2 {
        assert!(nameless.child(b"a").unwrap().is_some());
    }
    assert_eq!(questions(), 1);
}

#[test]
fn what_a_new_directory_is_told_before_its_first_look_is_kept() {
    let top = directory(&[], true);
    let still = top.lock_names().unwrap();
    top.remember(b"missing", None);
    drop(still);
    assert!(top.child(b"other").unwrap().is_none());
    questions();
    assert!(top.child(b"missing").unwrap().is_none());
    assert_eq!(questions(), 0);
}

#[test]
fn the_end_of_a_file_is_told_when_its_last_name_and_user_are_gone() {
    let top = directory(&[b"a", b"b"], true);
    let a = top.child(b"a").unwrap().unwrap();
    let number = a.inode().number();
    top.remember(b"a", None);
    a.set_last();
    assert_eq!(ended(), []);
    drop(a);
    assert_eq!(ended(), [number]);
    let b = top.child(b"b").unwrap().unwrap();
    top.remember(b"b", None);
    drop(b);
    assert_eq!(ended(), []);
}

#[test]
fn a_moved_name_is_told_with_its_new_place() {
    let top = directory(&[b"a"], true);
    let other = Dentry::root(Inode::new(true), b"/", true);
    let a = top.child(b"a").unwrap().unwrap();
    a.move_to(&other, b"b");
    assert_eq!(&*a.name(), b"b");
    assert!(Arc::ptr_eq(&a.parent().unwrap(), &other));
    assert!(other.is_above(&a) && !top.is_above(&a));
}

#[test]
fn a_directory_is_above_itself_and_all_below() {
    let top = Dentry::root(Inode::new(true), b"/", true);
    let one = top.detached(b"one", Inode::new(true));
    let two = one.detached(b"two", Inode::new(true));
    let beside = top.detached(b"beside", Inode::new(true));
    assert!(top.is_above(&top) && top.is_above(&two) && one.is_above(&two));
    assert!(!two.is_above(&one) && !beside.is_above(&two));
}

#[test]
fn a_long_way_up_ends_without_a_deep_stack() {
    let mut at = Dentry::root(Inode::new(true), b"/", true);
    for _ in 0..200_000 {
        at = at.detached(b"d", Inode::new(true));
    }
    drop(at);
    assert_eq!(held(), 0);
}

#[test]
fn an_unmounted_system_leaves_nothing() {
    let top = directory(&[b"a"], true);
    let below = Inode::new(true);
    below.insert(b"b", &Inode::new(false));
    top.inode().insert(b"below", &below);
    drop(below);
    let below = top.child(b"below").unwrap().unwrap();
    below.child(b"b").unwrap().unwrap();
    top.child(b"a").unwrap();
    drop(below);
    top.forget_all();
    drop(top);
    assert_eq!(held(), 0);
}

#[test]
fn what_nobody_uses_is_forgotten_down_to_the_leaves() {
    let top = directory(&[b"a"], true);
    let below = Inode::new(true);
    below.insert(b"b", &Inode::new(false));
    below.insert(b"c", &Inode::new(false));
    top.inode().insert(b"below", &below);
    let below = top.child(b"below").unwrap().unwrap();
    let used = below.child(b"b").unwrap().unwrap();
    below.child(b"c").unwrap();
    top.child(b"a").unwrap();
    top.forget_unused();
    questions();
    assert!(Arc::ptr_eq(&used, &below.child(b"b").unwrap().unwrap()));
    assert_eq!(questions(), 0);
    below.child(b"c").unwrap();
    top.child(b"a").unwrap();
    assert_eq!(questions(), 2);
}
