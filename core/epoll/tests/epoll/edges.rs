//! Sets that watch sets, exclusive watches, numbers that are used again, lists that are swept.

use std::sync::Arc;

use crate::world::{File, World};
use epoll::{Events, Nesting, Refusal, Set, Trigger, Watch};
use models::{Heap, Plain, for_each_seed};

type Watched = File<Plain>;

fn watch(trigger: Trigger) -> Watch {
    Watch {
        interest: Events::IN,
        trigger,
        data: 7,
    }
}

const LEVEL: Trigger = Trigger::empty();

fn new_set() -> World<Plain> {
    Set::new()
}

fn reports(set: &World<Plain>) -> usize {
    let all = set.collect(usize::MAX, |_| Ok::<(), ()>(()));
    all.expect("all are taken")
}

/// `parent` watches `child` as number `fd`.
fn nest(parent: &World<Plain>, fd: u32, child: &World<Plain>) -> Result<Arc<Watched>, Refusal> {
    let file = File::of(child);
    let open = (&file, &**child);
    parent.add_set(fd, open, watch(LEVEL), &mut Nesting::new())?;
    Ok(file)
}

#[test]
fn a_set_reports_a_set_in_which_something_is_ready() {
    let (outer, inner, file) = (new_set(), new_set(), File::new());
    let as_file = nest(&outer, 1, &inner).expect("one level");
    inner.add(2, &file, watch(LEVEL)).expect("it is new");
    assert_eq!(reports(&outer), 0);
    file.set_ready(Events::IN);
    file.notify(Events::IN);
    assert_eq!(reports(&outer), 1);
    outer
        .remove_set(1, (&as_file, &inner), &mut Nesting::new())
        .expect("it is there");
    assert_eq!(reports(&outer), 0);
}

#[test]
fn sets_do_not_watch_each_other_and_no_more_than_five_lie_above_one_another() {
    let sets: Vec<_> = (0..6).map(|_| new_set()).collect();
    let mut files = Vec::new();
    assert_eq!(nest(&sets[0], 9, &sets[0]).err(), Some(Refusal::Invalid));
    for pair in sets.windows(2).take(4) {
        files.push(nest(&pair[0], 1, &pair[1]).expect("five levels at most"));
    }
    assert_eq!(nest(&sets[4], 1, &sets[5]).err(), Some(Refusal::TooDeep));
    assert_eq!(nest(&sets[5], 1, &sets[0]).err(), Some(Refusal::TooDeep));
    for above in 0..4 {
        assert_eq!(
            nest(&sets[4], 1, &sets[above]).err(),
            Some(Refusal::TooDeep)
        );
    }
    let middle = (&files[1], &*sets[2]);
    sets[1]
        .remove_set(1, middle, &mut Nesting::new())
        .expect("it is there");
    assert!(nest(&sets[4], 1, &sets[5]).is_ok());
}

#[test]
fn a_set_that_ended_is_above_nobody() {
    let (outer, inner, other) = (new_set(), new_set(), new_set());
    let _file = nest(&outer, 1, &inner).expect("one level");
    drop(outer);
    let sets: Vec<_> = (0..3).map(|_| new_set()).collect();
    let mut above = vec![inner, other];
    above.extend(sets);
    for pair in above.windows(2) {
        assert!(
            nest(&pair[0], 1, &pair[1]).is_ok(),
            "five levels without it"
        );
    }
}

#[test]
fn sets_that_ended_leave_room_for_those_that_watch_the_same_one() {
    let inner = new_set();
    for round in 0..100 {
        let outer = new_set();
        // The list of those above grows at first only; the other four requests are for the walk
        // and for the new set's own list.
        Heap::refuse_nth(if round == 0 { 0 } else { 5 });
        let nested = nest(&outer, 1, &inner);
        Heap::refuse_none();
        assert!(nested.is_ok(), "round {round}");
    }
}

#[test]
fn a_web_of_sets_is_walked_once_a_set_and_not_once_a_path() {
    const WIDTH: usize = 6;
    let levels: Vec<Vec<_>> = (0..4)
        .map(|_| (0..WIDTH).map(|_| new_set()).collect())
        .collect();
    let mut files = Vec::new();
    for pair in levels.windows(2) {
        for (fd, lower) in pair[1].iter().enumerate() {
            for upper in &pair[0] {
                files.push(nest(upper, fd as u32, lower).expect("four levels"));
            }
        }
    }
    // As many paths lead up as the width to the power of three.
    Heap::refuse_nth(3 * WIDTH * WIDTH);
    let nested = nest(&levels[3][0], 99, &new_set());
    Heap::refuse_none();
    assert!(nested.is_ok());
}

/// In random nestings, what is refused would close a cycle or be too deep, and nothing else.
#[test]
fn exactly_cycles_and_long_chains_are_refused() {
    const SETS: usize = 7;
    for_each_seed(300, |seed, mut random| {
        let sets: Vec<_> = (0..SETS).map(|_| new_set()).collect();
        let mut edges: Vec<(usize, usize, Arc<Watched>)> = Vec::new();
        for _ in 0..60 {
            let (parent, child) = (random.below(SETS), random.below(SETS));
            let known = edges
                .iter()
                .position(|edge| (edge.0, edge.1) == (parent, child));
            if let Some(index) = known {
                let (_, _, file) = edges.swap_remove(index);
                let removed = sets[parent].remove_set(
                    child as u32,
                    (&file, &sets[child]),
                    &mut Nesting::new(),
                );
                assert_eq!(removed, Ok(()), "SEED={seed}");
                continue;
            }
            let pairs: Vec<_> = edges.iter().map(|edge| (edge.0, edge.1)).collect();
            let fits = fits(&pairs, parent, child);
            let outcome = nest(&sets[parent], child as u32, &sets[child]);
            assert_eq!(outcome.is_ok(), fits, "SEED={seed}");
            edges.extend(outcome.map(|file| (parent, child, file)));
        }
    });
}

/// Whether no chain has a cycle or more than five sets with one edge more.
fn fits(edges: &[(usize, usize)], parent: usize, child: usize) -> bool {
    let reaches = |from: usize, to: usize| {
        let mut reached = vec![from];
        let mut at = 0;
        while let Some(&set) = reached.get(at) {
            let next = edges.iter().filter(|edge| edge.0 == set).map(|edge| edge.1);
            let next: Vec<_> = next.filter(|set| !reached.contains(set)).collect();
            reached.extend(next);
            at += 1;
        }
        reached.contains(&to)
    };
    fn height(edges: &[(usize, usize)], set: usize, down: bool) -> usize {
        let next = edges.iter().filter_map(|&(above, below)| match down {
            true => (above == set).then_some(below),
            false => (below == set).then_some(above),
        });
        1 + next.map(|set| height(edges, set, down)).max().unwrap_or(0)
    }
    parent != child
        && !reaches(child, parent)
        && height(edges, parent, false) + height(edges, child, true) <= 5
}

#[test]
fn a_set_that_is_refused_twice_is_no_parent_more() {
    let (outer, inner) = (new_set(), new_set());
    let file = nest(&outer, 1, &inner).expect("one level");
    let open = (&file, &*inner);
    let again = outer.add_set(1, open, watch(LEVEL), &mut Nesting::new());
    assert_eq!(again, Err(Refusal::Exists));
    outer
        .remove_set(1, open, &mut Nesting::new())
        .expect("it is there");
    assert!(
        nest(&inner, 1, &outer).is_ok(),
        "nobody is above it any more"
    );
}

#[test]
fn of_exclusive_sets_one_with_a_waiter_hears_of_a_change() {
    let file = File::new();
    let sets: Vec<_> = (0..3).map(|_| new_set()).collect();
    for set in &sets {
        set.add(1, &file, watch(Trigger::EXCLUSIVE | Trigger::EDGE))
            .expect("it is new");
    }
    let shared = new_set();
    shared.add(1, &file, watch(LEVEL)).expect("it is new");
    sets[1].waiters.queue(|| false);
    sets[2].waiters.queue(|| false);
    file.set_ready(Events::IN);
    file.notify(Events::IN);
    // The first has nobody to act on it, the second has, the third is not asked.
    let told: Vec<_> = sets.iter().map(|set| set.may_be_ready()).collect();
    assert_eq!(told, [true, true, false]);
    assert_eq!((sets[1].waiters.asleep(), sets[2].waiters.asleep()), (0, 1));
    assert!(shared.may_be_ready());
}

#[test]
fn who_waits_exclusively_does_so_from_the_beginning_and_for_no_set() {
    let (set, file) = (new_set(), File::new());
    let exclusive = watch(Trigger::EXCLUSIVE);
    set.add(1, &file, exclusive).expect("it is new");
    assert_eq!(set.modify(1, &file, watch(LEVEL)), Err(Refusal::Invalid));
    let other = File::new();
    set.add(2, &other, watch(LEVEL)).expect("it is new");
    assert_eq!(set.modify(2, &other, exclusive), Err(Refusal::Invalid));
    let inner = new_set();
    let open = (&File::of(&inner), &*inner);
    let nested = set.add_set(3, open, exclusive, &mut Nesting::new());
    assert_eq!(nested, Err(Refusal::Invalid));
}

#[test]
fn a_number_whose_file_is_gone_can_be_watched_anew() {
    let set = new_set();
    for _ in 0..3 {
        let file = File::new();
        file.set_ready(Events::IN);
        set.add(1, &file, watch(LEVEL))
            .expect("the one before is gone");
        assert_eq!(reports(&set), 1);
    }
    assert_eq!(reports(&set), 0);
}

#[test]
fn removed_entries_do_not_fill_the_ready_list() {
    let (set, file) = (new_set(), File::new());
    file.set_ready(Events::IN);
    for _ in 0..1000 {
        set.add(1, &file, watch(LEVEL)).expect("it was removed");
        set.remove(1, &file).expect("it is there");
    }
    // With no room for more, those that are there still find some.
    set.add(1, &file, watch(LEVEL)).expect("it was removed");
    let mut looked_at = 0;
    while set.may_be_ready() && looked_at < 1000 {
        looked_at += 1;
        if set.collect(1, |_| Ok::<(), ()>(())) == Ok(1) {
            break;
        }
    }
    assert!(looked_at < 40, "{looked_at}");
}

#[test]
fn without_memory_nothing_is_watched() {
    let (set, inner, file) = (new_set(), new_set(), File::new());
    file.set_ready(Events::IN);
    Heap::refuse_nth(1);
    let refused = set.add(1, &file, watch(LEVEL));
    assert_eq!(refused, Err(Refusal::OutOfMemory));
    for nth in 1..=5 {
        Heap::refuse_nth(nth);
        assert_eq!(nest(&set, 2, &inner).err(), Some(Refusal::OutOfMemory));
    }
    Heap::refuse_none();
    assert_eq!(reports(&set), 0);
    assert!(nest(&inner, 1, &set).is_ok(), "it has no child");
}

#[test]
fn a_report_that_cannot_be_given_is_for_the_next() {
    for trigger in [LEVEL, Trigger::EDGE, Trigger::ONESHOT] {
        let (set, file) = (new_set(), File::new());
        file.set_ready(Events::IN);
        set.add(1, &file, watch(trigger)).expect("it is new");
        set.waiters.queue(|| false);
        assert_eq!(set.collect(9, |_| Err(())), Err(()));
        assert_eq!(set.waiters.asleep(), 0);
        assert_eq!(reports(&set), 1, "{trigger:?}");
    }
}

#[test]
fn who_leaves_something_ready_wakes_another() {
    let (set, file) = (new_set(), File::new());
    file.set_ready(Events::IN);
    set.add(1, &file, watch(LEVEL)).expect("it is new");
    set.waiters.queue(|| false);
    assert_eq!(reports(&set), 1);
    assert_eq!(set.waiters.asleep(), 0);
    set.waiters.queue(|| false);
    set.remove(1, &file).expect("it is there");
    assert_eq!(reports(&set), 0);
    assert_eq!(set.waiters.asleep(), 1, "there is nothing for it");
    set.add(1, &file, watch(Trigger::EDGE)).expect("it is new");
    set.waiters.queue(|| false);
    assert_eq!(reports(&set), 1);
    assert_eq!(set.waiters.asleep(), 1, "nothing is left for it");
}

#[test]
fn a_set_that_is_closed_watches_nothing() {
    let (set, file) = (new_set(), File::new());
    set.add(1, &file, watch(LEVEL)).expect("it is new");
    set.close();
    file.set_ready(Events::IN);
    file.notify(Events::IN);
    assert!(!set.may_be_ready());
}
