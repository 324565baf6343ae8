//! What is left of watches and files that ended: on ready lists, in maps, with objects.

use std::sync::Arc;

use crate::world::{File, World};
use epoll::{Events, Refusal, Set, Trigger, Watch};
use models::{Heap, Plain};

const LEVEL: Trigger = Trigger::empty();
/// Removed entries that may lie on a list whatever its length.
const STALE_MAX: u32 = 16;

fn watch(trigger: Trigger) -> Watch {
    Watch {
        interest: Events::IN,
        trigger,
        data: 7,
    }
}

fn ready_file() -> Arc<File<Plain>> {
    let file = File::new();
    file.set_ready(Events::IN);
    file
}

fn new_set() -> World<Plain> {
    Set::new()
}

fn reports(set: &World<Plain>) -> usize {
    let all = set.collect(usize::MAX, |_| Ok::<(), ()>(()));
    all.expect("all are taken")
}

/// Leaves `count` removed entries on the list of `set`.
fn leave_stale(set: &World<Plain>, count: u32) {
    let file = ready_file();
    for fd in 0..count {
        set.add(fd, &file, watch(LEVEL)).expect("it is new");
    }
    for fd in 0..count {
        set.remove(fd, &file).expect("it is there");
    }
}

#[test]
fn removed_entries_are_swept_out_once_they_are_more_than_the_others() {
    let (set, idle) = (new_set(), File::new());
    leave_stale(&set, STALE_MAX + 3);
    set.add(99, &idle, watch(LEVEL)).expect("it is new");
    assert!(!set.may_be_ready(), "nothing is left on the list");
}

#[test]
fn a_few_removed_entries_are_not_worth_a_sweep() {
    let (set, idle) = (new_set(), File::new());
    leave_stale(&set, STALE_MAX);
    set.add(99, &idle, watch(LEVEL)).expect("it is new");
    assert!(set.may_be_ready(), "they are looked at when somebody asks");
    assert_eq!(reports(&set), 0);
    assert!(!set.may_be_ready());
}

#[test]
fn a_sweep_leaves_what_is_watched() {
    let (set, watched) = (new_set(), ready_file());
    set.add(98, &watched, watch(Trigger::EDGE))
        .expect("it is new");
    leave_stale(&set, STALE_MAX + 10);
    set.add(99, &File::new(), watch(LEVEL)).expect("it is new");
    assert_eq!(reports(&set), 1, "its edge is still to be reported");
}

#[test]
fn removed_entries_on_the_list_take_room_that_others_do_not_count_on() {
    let (set, file) = (new_set(), ready_file());
    set.add(1, &file, watch(LEVEL)).expect("there is memory");
    Heap::refuse_nth(1);
    let mut refused = None;
    for _ in 0..STALE_MAX {
        set.remove(1, &file).expect("it is there");
        if let Err(why) = set.add(1, &file, watch(LEVEL)) {
            refused = Some(why);
            break;
        }
    }
    Heap::refuse_none();
    assert_eq!(refused, Some(Refusal::OutOfMemory), "the list is full");
}

#[test]
fn a_file_that_is_watched_no_longer_tells_nobody() {
    let (set, file, other) = (new_set(), File::new(), new_set());
    set.add(1, &file, watch(LEVEL)).expect("it is new");
    other.add(1, &file, watch(LEVEL)).expect("it is new");
    set.remove(1, &file).expect("it is there");
    assert_eq!(file.observers(), 1, "the other's");
    file.set_ready(Events::IN);
    file.notify(Events::IN);
    assert!(!set.may_be_ready());
    assert_eq!(reports(&other), 1);
}

#[test]
fn a_set_that_is_closed_is_forgotten_by_its_files() {
    let (set, file, gone) = (new_set(), File::new(), File::new());
    set.add(1, &file, watch(LEVEL)).expect("it is new");
    set.add(2, &gone, watch(LEVEL)).expect("it is new");
    drop(gone);
    set.close();
    assert_eq!(file.observers(), 0);
    set.close();
}

#[test]
fn a_set_that_is_closed_keeps_nothing_on_its_list() {
    let (set, file) = (new_set(), ready_file());
    set.add(1, &file, watch(LEVEL)).expect("it is new");
    set.close();
    assert!(!set.may_be_ready());
    assert_eq!(set.remove(1, &file), Err(Refusal::NotFound));
}

#[test]
fn a_file_that_ended_makes_room_under_its_number_only() {
    let set = new_set();
    let (gone, other) = (File::new(), ready_file());
    let above = ready_file();
    set.add(1, &gone, watch(LEVEL)).expect("it is new");
    set.add(2, &other, watch(LEVEL)).expect("it is new");
    drop(gone);
    // Its number was given to another file, which two descriptors have.
    set.add(1, &above, watch(LEVEL)).expect("it is new");
    assert_eq!(set.add(1, &above, watch(LEVEL)), Err(Refusal::Exists));
    assert_eq!(reports(&set), 2);
    set.add(1, &other, watch(LEVEL)).expect("another file");
    assert_eq!(reports(&set), 3, "one number, two files that exist");
    for (fd, file) in [(1, &above), (1, &other), (2, &other)] {
        assert_eq!(set.remove(fd, file), Ok(()));
    }
}

#[test]
fn files_that_ended_do_not_fill_the_map() {
    let set = new_set();
    set.add(1, &File::new(), watch(LEVEL)).expect("it is new");
    // As many entries as before need no more room.
    Heap::refuse_nth(1);
    for _ in 0..100 {
        let added = set.add(1, &File::new(), watch(LEVEL));
        assert_eq!(added, Ok(()), "the one before is gone");
    }
    Heap::refuse_none();
}

#[test]
fn a_file_that_ended_is_not_reported_though_it_was_ready() {
    let (set, file) = (new_set(), ready_file());
    set.add(1, &file, watch(LEVEL)).expect("it is new");
    drop(file);
    assert!(set.may_be_ready());
    assert!(!set.has_ready());
    assert_eq!(reports(&set), 0);
}

#[test]
fn a_report_that_cannot_be_given_does_not_undo_a_later_change() {
    let (set, file) = (new_set(), ready_file());
    set.add(1, &file, watch(Trigger::ONESHOT))
        .expect("it is new");
    let outcome = set.collect(9, |_| {
        // While the report is stored, another thread asks for something else.
        let later = Watch {
            interest: Events::OUT,
            ..watch(LEVEL)
        };
        assert_eq!(set.modify(1, &file, later), Ok(()));
        Err(())
    });
    assert_eq!(outcome, Err(()));
    assert_eq!(reports(&set), 0, "nobody asks for that any more");
}

#[test]
fn an_entry_that_outlives_its_set_wakes_nobody() {
    let (set, file) = (new_set(), ready_file());
    set.add(1, &file, watch(Trigger::EXCLUSIVE | Trigger::EDGE))
        .expect("it is new");
    assert_eq!(reports(&set), 1);
    // As a notifier that found it just before.
    let entry = file.first_observer().expect("it observes");
    drop(set);
    assert!(!entry.notify(Events::IN), "another may act on it");
}

#[test]
fn only_what_is_watched_for_queues_an_entry() {
    let (set, file) = (new_set(), File::new());
    file.set_ready(Events::OUT);
    set.add(1, &file, watch(LEVEL)).expect("it is new");
    assert!(!set.may_be_ready(), "nobody asked whether it takes more");
    let both = Watch {
        interest: Events::IN | Events::OUT,
        ..watch(Trigger::ONESHOT)
    };
    set.modify(1, &file, both).expect("it is there");
    assert_eq!(reports(&set), 1);
    // Silent now, though its object still tells it.
    file.notify(Events::OUT);
    assert!(!set.may_be_ready());
    file.set_ready(Events::IN | Events::OUT);
    set.modify(1, &file, watch(LEVEL)).expect("it is there");
    let event = |set: &World<Plain>| {
        let mut seen = Events::empty();
        let all = set.collect(9, |event| {
            seen |= event.events;
            Ok::<(), ()>(())
        });
        assert_eq!(all, Ok(1));
        seen
    };
    assert_eq!(event(&set), Events::IN, "the rest was not asked for");
}
