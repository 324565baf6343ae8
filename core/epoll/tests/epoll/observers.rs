//! Who hears of an object's changes, and for how long.

use std::cell::RefCell;
use std::sync::Arc;

use epoll::{Events, Observers, Sharing};

/// An observer, which has a thread that acts on what it hears or not.
struct Ear {
    name: u32,
    has_thread: bool,
}

fn ear(name: u32, has_thread: bool) -> Arc<Ear> {
    Arc::new(Ear { name, has_thread })
}

/// The names of those who hear of `events`, in their order.
fn told(observers: &Observers<Ear>, events: Events) -> Vec<u32> {
    let names = RefCell::new(Vec::new());
    observers.notify(events, |ear| {
        names.borrow_mut().push(ear.name);
        ear.has_thread
    });
    names.into_inner()
}

/// Those of `ears` with the same interest and sharing.
fn observers(ears: &[Arc<Ear>], interest: Events, sharing: Sharing) -> Observers<Ear> {
    let mut observers = Observers::new();
    for ear in ears {
        observers.observe(Arc::downgrade(ear), interest, sharing);
    }
    observers
}

#[test]
fn each_hears_of_what_it_asked_for_and_of_errors_and_hang_ups() {
    let ears = [ear(1, true), ear(2, true)];
    let mut observers = observers(&ears[..1], Events::IN, Sharing::Shared);
    observers.observe(Arc::downgrade(&ears[1]), Events::OUT, Sharing::Shared);
    assert_eq!(told(&observers, Events::IN), [1]);
    assert_eq!(told(&observers, Events::OUT), [2]);
    assert_eq!(told(&observers, Events::READABLE | Events::OUT), [1, 2]);
    assert_eq!(told(&observers, Events::PRI), []);
    assert_eq!(told(&observers, Events::ERR), [1, 2]);
    assert_eq!(told(&observers, Events::HUP), [1, 2]);
}

#[test]
fn one_that_changes_its_mind_leaves_the_others_theirs() {
    let ears = [ear(1, true), ear(2, true)];
    let mut observers = observers(&ears, Events::IN, Sharing::Shared);
    observers.change_interest(&Arc::downgrade(&ears[0]), Events::OUT);
    assert_eq!(told(&observers, Events::IN), [2]);
    assert_eq!(told(&observers, Events::OUT), [1]);
}

#[test]
fn one_that_is_forgotten_hears_nothing_and_the_others_do() {
    let ears = [ear(1, true), ear(2, true), ear(3, true)];
    let mut observers = observers(&ears, Events::IN, Sharing::Shared);
    observers.forget(&Arc::downgrade(&ears[1]));
    assert_eq!(told(&observers, Events::IN), [1, 3]);
    assert_eq!(observers.len(), 2);
    observers.forget(&Arc::downgrade(&ears[1]));
    assert_eq!(observers.len(), 2, "it was gone already");
}

#[test]
fn those_that_ended_hear_nothing_and_make_room_for_the_next() {
    let first = ear(1, true);
    let mut observers = observers(&[first], Events::IN, Sharing::Shared);
    assert_eq!(told(&observers, Events::IN), []);
    for name in 2..20 {
        let next = ear(name, true);
        observers.observe(Arc::downgrade(&next), Events::IN, Sharing::Shared);
        assert_eq!(told(&observers, Events::IN), [name]);
    }
    assert_eq!(observers.len(), 1, "the last of them");
}

#[test]
fn of_exclusive_ones_the_first_that_acts_is_the_last_that_hears() {
    let ears = [ear(1, false), ear(2, true), ear(3, true)];
    let mut observers = observers(&ears, Events::IN, Sharing::Exclusive);
    assert_eq!(told(&observers, Events::IN), [1, 2]);
    assert_eq!(
        told(&observers, Events::IN),
        [1, 2],
        "each change is a new one"
    );
    let shared = [ear(4, true), ear(5, true)];
    for ear in &shared {
        observers.observe(Arc::downgrade(ear), Events::IN, Sharing::Shared);
    }
    assert_eq!(told(&observers, Events::IN), [1, 2, 4, 5]);
}

#[test]
fn a_shared_one_that_acts_takes_nothing_from_the_exclusive_ones() {
    let ears = [ear(1, true), ear(2, true)];
    let mut observers = observers(&ears[..1], Events::IN, Sharing::Shared);
    observers.observe(Arc::downgrade(&ears[1]), Events::IN, Sharing::Exclusive);
    assert_eq!(told(&observers, Events::IN), [1, 2]);
}
